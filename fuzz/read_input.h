#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "braid/base/document.h"
#include "braid/base/error.h"

namespace braid::fuzz {

/// Gives libFuzzer's input to `read`. An Error is an answer like any other, as long as it is one
/// line. Whatever else `read` throws ends the program.
template <class Read>
int read_text(const std::uint8_t* bytes, std::size_t size, const Read& read) {
  try {
    read(std::string_view(reinterpret_cast<const char*>(bytes), size));
  } catch (const Error& error) {
    const std::string_view line = error.what();
    if (line.empty() || line.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

/// The same with the root of the document that the input is.
template <class Read>
int read_document(const std::uint8_t* bytes, std::size_t size, Document::Syntax syntax,
                  const Read& read) {
  return read_text(bytes, size, [&](std::string_view text) {
    const Document document = Document::parse(text, syntax, "input");
    read(document.root());
  });
}

/// Ends the program unless `holds`, in all builds.
inline void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace braid::fuzz
