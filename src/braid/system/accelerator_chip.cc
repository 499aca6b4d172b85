#include "braid/system/accelerator_chip.h"

#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/chip/accelerator/area.h"
#include "braid/system/defaults.h"

namespace braid {
namespace {

/// Where the figures of an accelerator's chip are from.
void say_derived(const AcceleratorDesign& design, std::vector<Provenance>& provenance) {
  const Accelerator& chip = design.chip;
  provenance.push_back(
      {"peak",
       fmt::format("of the accelerator: 2 x {} x {} x {} units at {:g} GHz", chip.tensor.count,
                   chip.tensor.width, chip.tensor.depth, chip.clock_hz / 1e9),
       false});
  provenance.push_back({"vector",
                        fmt::format("of the accelerator: {} x {} lanes at {:g} GHz, one operation "
                                    "a cycle",
                                    chip.vector.count, chip.vector.lanes, chip.clock_hz / 1e9),
                        false});
  provenance.push_back({"on_chip",
                        fmt::format("of the accelerator: its global buffer, {:g} words a cycle",
                                    chip.rates.global_buffer_words),
                        false});
}

std::optional<double> if_plausible(double figure, Unit unit) {
  if (!std::isfinite(figure) || implausible(figure, unit)) return std::nullopt;
  return figure;
}

void set_power_and_price(const AcceleratorDesign& design, Chip& chip) {
  chip.power_w = if_plausible(peak_power_w(design.chip, design.energy), Unit::watts);
  if (chip.power_w) {
    chip.provenance.push_back(
        {"power", "of the accelerator: every unit and level busy in every cycle", true});
  }
  chip.price_usd = if_plausible(chip_price(design.chip, design.price).total_usd(), Unit::usd);
  if (chip.price_usd) {
    chip.provenance.push_back(
        {"price", "of the accelerator: its die, scaled to DFModel's TPU v4, and its HBM", true});
  }
}

}  // namespace

Chip accelerator_chip(const AcceleratorDesign& design, const std::string& name) {
  const Accelerator& accelerator = design.chip;
  Chip chip;
  chip.name = name;
  chip.accelerator = design;
  chip.peaks = {{accelerator.operand, matmul_peak_flops(accelerator)}};
  chip.vector_flops_per_s = vector_peak_flops(accelerator);
  chip.compute_units = static_cast<int>(accelerator.tensor.count);
  chip.memory = {"HBM", accelerator.hbm_bytes, accelerator.hbm_bytes_per_s};
  chip.on_chip = Memory{
      "global buffer", accelerator.global_buffer_bytes,
      accelerator.rates.global_buffer_words * word_bytes(accelerator) * accelerator.clock_hz};
  chip.kind = ChipKind::other;
  chip.execution = ChipExecution::cores;
  chip.efficiency = default_efficiency(ChipExecution::kernels);
  chip.efficiency.host_operator_s = 0;
  chip.efficiency.overlap_loss = 0;
  chip.efficiency.tile_m = static_cast<int>(accelerator.tensor.width);
  chip.efficiency.tile_n = static_cast<int>(accelerator.tensor.width);
  chip.efficiency.tile_k = static_cast<int>(accelerator.tensor.depth);
  say_derived(design, chip.provenance);
  set_power_and_price(design, chip);
  return chip;
}

}  // namespace braid
