#pragma once

#include <string>

#include "braid/base/file.h"

#include "support/source_path.h"

namespace braid {

/// Three products in a row, each followed by an elementwise kernel, on four chips in a ring.
inline std::string small_setup_text() {
  return read_file(test::source_path("tests/dataflow/small_setup.txt"));
}

/// `text` with the first `from` replaced by `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace braid
