#pragma once

#include <string>

namespace braid {

/// Makes a folder and those that it lies in, where they are not there. Throws Error naming it, with
/// `remedy`, when that is not possible.
void make_folder(const std::string& path, const std::string& remedy);

}  // namespace braid
