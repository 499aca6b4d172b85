#pragma once

#include <string>

namespace braid {

/// The file that a command line names, as it is named or in the folder of `beside`, the file with
/// that command line; empty: it is not there.
std::string found_file(const std::string& name, const std::string& beside);

}  // namespace braid
