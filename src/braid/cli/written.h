#pragma once

#include <string>
#include <vector>

namespace braid {

/// A file that a verb has written, or a folder.
struct WrittenFile {
  std::string what;  ///< "Page".
  /// Empty where no such file was asked for, "-" where it is standard output: nothing is said then.
  std::string file;
  std::string then = {};  ///< What to do with it, if anything.
};

/// What to do with pages and traces.
inline constexpr const char* kOpenPage = "open it in a browser";
inline constexpr const char* kOpenTrace = "open it at ui.perfetto.dev or chrome://tracing";

/// A picture, or by its name a page.
WrittenFile written_picture(const std::string& file);

/// Says on standard output, in a line, which file now holds what: "Page written to page.html; open
/// it in a browser". All verbs say it so, last of what they print, and none with --json.
void say_written(const WrittenFile& written);

/// The same of several, below an empty line that parts them from what else was printed.
void say_written_below(const std::vector<WrittenFile>& files);

}  // namespace braid
