#include "braid/serve/serving_files.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <string>

#include "braid/base/embedded_file.h"

namespace braid {

std::span<const EmbeddedFile> embedded_serving();

Document serving_file(std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_serving();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const EmbeddedFile& each) { return each.name == name; });
  assert(file != files.end());
  return Document::parse(file->text, Document::Syntax::yaml, std::string(file->file));
}

}  // namespace braid
