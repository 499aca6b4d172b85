#include "braid/cli/written.h"

#include <fmt/format.h>

namespace braid {
namespace {

bool is_file(const WrittenFile& written) { return !written.file.empty() && written.file != "-"; }

}  // namespace

WrittenFile written_picture(const std::string& file) {
  if (file.ends_with(".html")) return {"Page", file, kOpenPage};
  return {"Picture", file};
}

void say_written(const WrittenFile& written) {
  if (!is_file(written)) return;
  fmt::print("{} written to {}{}{}\n", written.what, written.file, written.then.empty() ? "" : "; ",
             written.then);
}

void say_written_below(const std::vector<WrittenFile>& files) {
  bool is_first = true;
  for (const WrittenFile& each : files) {
    if (!is_file(each)) continue;
    if (is_first) fmt::print("\n");
    is_first = false;
    say_written(each);
  }
}

}  // namespace braid
