#pragma once

#include "braid/chip/accelerator/accelerator.h"
#include "braid/chip/accelerator/energy.h"
#include "braid/chip/accelerator/price.h"
#include "braid/chip/accelerator/stated_latency.h"

namespace braid {

/// An accelerator, what its power and price are computed with, and what of its operators' latencies
/// is another mapper's.
struct AcceleratorDesign {
  Accelerator chip;
  EnergyFigures energy;
  PriceFigures price;
  StatedLatencies latencies;
  friend bool operator==(const AcceleratorDesign&, const AcceleratorDesign&) = default;
};

}  // namespace braid
