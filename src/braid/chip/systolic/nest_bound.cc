#include "braid/chip/systolic/nest_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/chip/systolic/nest_mapping.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid {
namespace {

/// The second term of least_words().
double reused_words(double macs, double words) { return 2 * macs / std::sqrt(words) - 2 * words; }

}  // namespace

double least_words(const LoopNest& nest, double words) {
  const double once = compulsory_words(nest);
  if (nest.window.used || !(words > 0)) return once;
  return std::max(once, reused_words(nest_macs(nest), words));
}

double least_cycles(const LoopNest& nest, const SystolicMachine& machine) {
  const BufferLevels& buffers = machine.buffers;
  const auto cores = static_cast<double>(machine.cores);
  double array = kInfinity;
  for (int f = 0; f < kArrayFlows; ++f) {
    if ((machine.array.flows >> f & 1) == 0) continue;
    const FlowUnits flow = flow_units(nest, machine.array, static_cast<ArrayFlow>(f));
    // However the folds and the stream are cut and dealt out, all cores together pass this long.
    const double passes = static_cast<double>(nest.batch) *
                          static_cast<double>(flow.units[at(flow.rows)]) *
                          static_cast<double>(flow.units[at(flow.columns)]) *
                          streamed_cycles(flow.units[at(flow.streamed)], 1, machine.array.rows);
    array = std::min(array, passes / cores);
  }
  // A unit has its stationary words, as many of the next, a streamed one and a sum.
  const double held = static_cast<double>(machine.array.rows * machine.array.columns *
                                          (2 * machine.array.unit_words + 2));
  const double passed = nest.window.used ? 0 : reused_words(nest_macs(nest) / cores, held);
  const double l2 = buffers.l2_words * cores * (buffers.l2_per_operand ? kNestDims : 1);
  return std::max({array + fill_cycles(machine.array),
                   cycles_at(passed, machine.array.words_per_cycle),
                   cycles_at(least_words(nest, l2), buffers.global_words_per_cycle),
                   cycles_at(nest.on_chip == 0 ? least_words(nest, buffers.global_words)
                                               : compulsory_hbm_words(nest),
                             buffers.hbm_words_per_cycle)});
}

}  // namespace braid
