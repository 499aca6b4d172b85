#pragma once

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/system/system.h"

namespace braid {

/// A System with everything it depends on, so that a plan is complete in itself; reads back equal.
Json to_json(const System& system);
System system_from_json(const Value& value);
Json to_json(const Chip& chip);
Chip chip_from_json(const Value& value);

}  // namespace braid
