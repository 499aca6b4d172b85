#pragma once

#include "braid/chip/accelerator/accelerator.h"
#include "braid/chip/accelerator/energy.h"
#include "braid/chip/accelerator/price.h"

namespace braid {

/// An accelerator, and what its power and price are computed with.
struct AcceleratorDesign {
  Accelerator chip;
  EnergyFigures energy;
  PriceFigures price;
  friend bool operator==(const AcceleratorDesign&, const AcceleratorDesign&) = default;
};

}  // namespace braid
