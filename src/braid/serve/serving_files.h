#pragma once

#include <string_view>

#include "braid/base/document.h"

namespace braid {

/// A file of data/serving by its name without extension, which there must be.
Document serving_file(std::string_view name);

}  // namespace braid
