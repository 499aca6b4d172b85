#include "braid/chip/accelerator/price.h"

#include <cmath>
#include <numbers>

#include "braid/base/infinity.h"

namespace braid {

double die_yield(double area_um2, const PriceFigures& figures) {
  constexpr double kUm2PerCm2 = 1e8;
  const double defects = area_um2 / kUm2PerCm2 * figures.defects_per_cm2;
  return std::pow(1 + defects / figures.clustering, -figures.clustering);
}

double dies_per_wafer(double area_um2, const PriceFigures& figures) {
  constexpr double kUm2PerMm2 = 1e6;
  const double side_mm = std::sqrt(area_um2 / kUm2PerMm2) + figures.scribe_mm;
  const double die_mm2 = side_mm * side_mm;
  const double radius_mm = figures.wafer_mm / 2 - figures.edge_mm;
  return std::numbers::pi *
         (radius_mm * radius_mm / die_mm2 - 2 * radius_mm / std::sqrt(2 * die_mm2));
}

double die_usd(double area_um2, const PriceFigures& figures) {
  const double dies = dies_per_wafer(area_um2, figures);
  return dies < 1 ? kInfinity : figures.wafer_usd / (dies * die_yield(area_um2, figures));
}

ChipPrice chip_price(const Accelerator& chip, const PriceFigures& figures) {
  ChipPrice price;
  price.die_usd = die_usd(die_area(chip).total_um2(), figures);
  price.chip_usd = price.die_usd * figures.markup;
  price.hbm_usd = chip.hbm_bytes_per_s / 1e9 * figures.hbm_usd_per_gb_per_s +
                  chip.hbm_bytes / 0x1p30 * figures.hbm_usd_per_gib;
  return price;
}

}  // namespace braid
