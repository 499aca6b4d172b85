#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/explore/space_reader.h"

#include "explore/small_space_text.h"

namespace braid {

inline Space space_from(const std::string& text) {
  return parse_space(Document::parse(text, Document::Syntax::yaml, "space.yaml"));
}

}  // namespace braid
