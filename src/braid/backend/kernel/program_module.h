#pragma once

#include <string>

namespace braid {

/// Where the shared module of that file name is: beside the program, where it is built, or in
/// `folder` beside the program's own, where it is installed.
std::string module_path(const std::string& file_name, const std::string& folder);

}  // namespace braid
