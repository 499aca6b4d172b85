#pragma once

#include <string_view>

#include "braid/base/document.h"
#include "braid/system/system.h"

namespace braid {

/// As files name it: `fully-connected`.
std::string_view name_of(Topology topology);

/// Throws Error with the names there are.
Topology read_topology(const Value& value);

}  // namespace braid
