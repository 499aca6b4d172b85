#pragma once

#include <string>
#include <string_view>

namespace braid {

/// Whole content of a file or pipe; `-` reads standard input. Throws Error (missing, a directory, a
/// device, unreadable, a pipe that goes on past 2 GiB).
std::string read_file(const std::string& path);

/// Writes `content` so that `path` holds either all of it or what it held before: a temporary file
/// in the same folder is written, flushed and renamed. Throws Error and leaves nothing behind on
/// failure. `-` writes to standard output; devices and pipes are written in place; a
/// symbolic link stays and its target is replaced.
void write_file(const std::string& path, std::string_view content);

}  // namespace braid
