#pragma once

#include "braid/chip/accelerator/accelerator.h"
#include "braid/chip/accelerator/area.h"

namespace braid {

/// What a chip's price is made of. Wafers are those of 22 nm, the area model's process.
struct PriceFigures {
  /// Between 3,677 USD of 20 nm and 2,891 of 28 nm (Feng and Ma, "Chiplet Actuary", DAC 2022,
  /// artifact, parameter.ini; after Khan and Mann, "AI Chips", CSET 2020), linear in the nm.
  double wafer_usd = 3480.5;
  double wafer_mm = 300, edge_mm = 5, scribe_mm = 0.2;  ///< The same artifact.
  double defects_per_cm2 = 0.07;                        ///< The same, of 20 and of 28 nm.
  double clustering = 10;                               ///< The same, critical level.
  /// Price of a chip without its memory over the cost of its die: DFModel's 4,474.82 USD of TPU v4
  /// (Ko et al., artifact) over that of its template. So package, design and margin, which no model
  /// here has, go with the silicon.
  double markup = 204.73;
  double hbm_usd_per_gb_per_s = 1;  ///< Ko et al., DFModel, artifact, by bandwidth alone.
  double hbm_usd_per_gib = 0;       ///< Not in DFModel.
  friend bool operator==(const PriceFigures&, const PriceFigures&) = default;
};

/// Share of dies without a defect: (1 + A·D/c)^−c for area A, defects D and clustering c (negative
/// binomial; Chiplet Actuary, equation 2).
double die_yield(double area_um2, const PriceFigures& figures);

/// Dies of a wafer, good or not: π·(r − e)²/S − π·2·(r − e)/√(2·S), S being the die with its scribe
/// lanes (the same). Less than 1 for dies that are too large.
double dies_per_wafer(double area_um2, const PriceFigures& figures);

/// What a good die costs at the foundry; infinite where a wafer has none.
double die_usd(double area_um2, const PriceFigures& figures);

struct ChipPrice {
  double die_usd = 0;   ///< Of a good die, at cost.
  double chip_usd = 0;  ///< With all but its memory.
  double hbm_usd = 0;
  double total_usd() const { return chip_usd + hbm_usd; }
};

/// Of an accelerator without fault (accelerator_fault.h).
ChipPrice chip_price(const Accelerator& chip, const PriceFigures& figures);

}  // namespace braid
