#pragma once

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/chip/accelerator/accelerator_design.h"

namespace braid {

/// A design with all of its figures, in base units; reads back equal.
Json to_json(const AcceleratorDesign& design);
/// Throws Error, also for every fault of accelerator_fault.h.
AcceleratorDesign design_from_json(const Value& value);

}  // namespace braid
