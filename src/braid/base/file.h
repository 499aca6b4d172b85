#pragma once

#include <string>
#include <string_view>

namespace braid {

/// Whole content of a regular file. Throws Error (missing, a directory, unreadable).
std::string read_file(const std::string& path);

/// Writes `content` so that `path` holds either all of it or what it held before: a temporary file
/// in the same folder is written, flushed and renamed. Throws Error and leaves nothing behind on
/// failure. `-` writes to standard output.
void write_file(const std::string& path, std::string_view content);

}  // namespace braid
