#include "braid/chip/systolic/nest_mapping.h"

#include <algorithm>

#include "braid/chip/systolic/nest_terms.h"

namespace braid {
namespace {

constexpr int kOutput = static_cast<int>(NestOperand::output);

/// Pieces of a dimension's units: the largest, and how they fall to the busiest cores.
struct Cut {
  std::int64_t smaller = 0;        ///< Units of a smaller piece.
  std::int64_t larger_rounds = 0;  ///< Rounds in which some core has a piece of one more.
  std::int64_t rounds = 1;
  std::int64_t largest() const { return smaller + (larger_rounds > 0 ? 1 : 0); }
  /// Sum over rounds of the groups of `together` units that the busiest core's piece makes.
  double groups(std::int64_t together) const {
    return static_cast<double>(larger_rounds * quotient_up(smaller + 1, together) +
                               (rounds - larger_rounds) * quotient_up(smaller, together));
  }
};

Cut cut_units(std::int64_t units, std::int64_t cores, std::int64_t rounds) {
  const std::int64_t pieces = cores * rounds;
  return {.smaller = units / pieces,
          .larger_rounds = quotient_up(units % pieces, cores),
          .rounds = rounds};
}

/// Elements that the busiest core goes through, over all rounds.
double busiest_elements(std::int64_t size, std::int64_t units, std::int64_t elements,
                        std::int64_t cores) {
  return static_cast<double>(cores == 1 ? size : quotient_up(units, cores) * elements);
}

std::array<std::int64_t, 3> sizes_of(const LoopNest& nest) { return {nest.m, nest.n, nest.k}; }

/// Words between L2 and array of the busiest core, of one round of the batch.
double array_words(const LoopNest& nest, const FlowUnits& flow, const NestMapping& mapping,
                   const std::array<Cut, 3>& cuts) {
  const std::array<std::int64_t, 3> sizes = sizes_of(nest);
  std::array<double, 3> elements{};
  for (std::size_t d = 0; d < 3; ++d) {
    elements[d] = busiest_elements(sizes[d], flow.units[d], flow.elements[d], mapping.cores[d]);
  }
  std::array<double, 3> times{};  // How often each operand passes.
  times[at(flow.streamed)] = static_cast<double>(mapping.rounds[at(flow.streamed)]);
  times[at(flow.rows)] = cuts[at(flow.rows)].groups(mapping.folds[0]);
  times[at(flow.columns)] = cuts[at(flow.columns)].groups(mapping.folds[1]);
  double words = 0;
  for (int operand = 0; operand < kNestDims; ++operand) {
    words += passed_words(elements[at((operand + 1) % 3)] * elements[at((operand + 2) % 3)],
                          times[at(operand)], operand == kOutput);
  }
  return words;
}

struct TileSizes {
  std::array<double, 3> l2{}, global{};  ///< Elements along m, n and k.
};

TileSizes tile_sizes(const LoopNest& nest, const FlowUnits& flow, const NestMapping& mapping,
                     const std::array<Cut, 3>& cuts) {
  const std::array<std::int64_t, 3> sizes = sizes_of(nest);
  TileSizes tiles;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t piece = cuts[d].largest() * flow.elements[d];
    const std::int64_t together =
        quotient_up(mapping.rounds[d], mapping.steps[d]) * mapping.cores[d];
    tiles.l2[d] = static_cast<double>(std::min(sizes[d], piece));
    tiles.global[d] = static_cast<double>(std::min(sizes[d], piece * together));
  }
  return tiles;
}

bool tiles_fit(const LoopNest& nest, const BufferLevels& buffers, const NestMapping& mapping,
               const TileSizes& tiles) {
  double l2 = 0, global = 0;
  for (int operand = 0; operand < kNestDims; ++operand) {
    const double words = tile_words(nest, static_cast<NestOperand>(operand), tiles.l2);
    l2 = buffers.l2_per_operand ? std::max(l2, words) : l2 + words;
    global += tile_words(nest, static_cast<NestOperand>(operand), tiles.global);
  }
  return l2 * (mapping.l2_doubled ? 2 : 1) <= buffers.l2_words &&
         global * static_cast<double>(mapping.batch_cores) * (mapping.global_doubled ? 2 : 1) <=
             buffers.global_words;
}

/// How often L2 read each operand from the global buffer.
std::array<double, 3> l2_times(const NestMapping& mapping) {
  std::array<double, 3> times{};
  bool steps_of_one_round = true;  // In the dimensions that turn outside of the innermost one.
  const int stays = static_cast<int>(mapping.l2_stays);
  for (int d = 0; d < kNestDims; ++d) {
    times[at(d)] = static_cast<double>(mapping.rounds[at(d)]);
    if (d != stays && mapping.steps[at(d)] != mapping.rounds[at(d)]) steps_of_one_round = false;
  }
  const bool through = steps_of_one_round && mapping.global_stays == mapping.l2_stays;
  times[at(stays)] = through ? 1 : static_cast<double>(mapping.steps[at(stays)]);
  return times;
}

}  // namespace

FlowUnits flow_units(const LoopNest& nest, const SystolicArray& array, ArrayFlow flow) {
  constexpr int m = 0, n = 1, k = 2;
  FlowUnits units;
  switch (flow) {
    case ArrayFlow::weight_stationary:
      units.rows = k, units.columns = n, units.streamed = m;
      break;
    case ArrayFlow::input_stationary:
      units.rows = k, units.columns = m, units.streamed = n;
      break;
    case ArrayFlow::output_stationary:
      units.rows = m, units.columns = n, units.streamed = k;
      break;
    case ArrayFlow::output_stationary_turned:
      units.rows = n, units.columns = m, units.streamed = k;
      break;
  }
  units.elements[at(units.rows)] = array.rows;
  units.elements[at(units.columns)] = array.columns;
  const std::array<std::int64_t, 3> sizes = sizes_of(nest);
  for (std::size_t d = 0; d < 3; ++d) units.units[d] = quotient_up(sizes[d], units.elements[d]);
  return units;
}

std::optional<NestCost> nest_cost(const LoopNest& nest, const SystolicMachine& machine,
                                  const NestMapping& mapping) {
  const FlowUnits flow = flow_units(nest, machine.array, mapping.flow);
  std::array<Cut, 3> cuts;
  double cores = static_cast<double>(mapping.batch_cores);
  double rounds = static_cast<double>(quotient_up(nest.batch, mapping.batch_cores));
  const double batch_rounds = rounds;
  for (std::size_t d = 0; d < 3; ++d) {
    cuts[d] = cut_units(flow.units[d], mapping.cores[d], mapping.rounds[d]);
    cores *= static_cast<double>(mapping.cores[d]);
    rounds *= static_cast<double>(mapping.rounds[d]);
  }
  if (!tiles_fit(nest, machine.buffers, mapping, tile_sizes(nest, flow, mapping, cuts))) {
    return std::nullopt;
  }
  NestCost cost;
  const double passes = cuts[at(flow.rows)].groups(1) * cuts[at(flow.columns)].groups(1);
  cost.array_cycles = batch_rounds * passes *
                          streamed_cycles(quotient_up(flow.units[at(flow.streamed)],
                                                      mapping.cores[at(flow.streamed)]),
                                          mapping.rounds[at(flow.streamed)], machine.array.rows) +
                      fill_cycles(machine.array) * (mapping.l2_doubled ? 1 : rounds);
  const double busiest = batch_rounds * array_words(nest, flow, mapping, cuts);
  cost.l2_words = busiest * cores;
  cost.l2_cycles = cycles_at(busiest, machine.array.words_per_cycle);

  const std::array<double, 3> times = l2_times(mapping);
  const auto batch = static_cast<double>(nest.batch);
  for (int d = 0; d < kNestDims; ++d) {
    const auto operand = static_cast<NestOperand>(d);
    const double partial = d == kOutput ? static_cast<double>(mapping.cores[2]) : 1;
    cost.global_words += batch * passed_words(swept_words(nest, operand, mapping.rounds),
                                              partial * times[at(d)], d == kOutput);
    if (is_on_chip(nest, operand)) continue;
    const double steps =
        operand == mapping.global_stays ? 1 : static_cast<double>(mapping.steps[at(d)]);
    cost.hbm_words +=
        batch * passed_words(swept_words(nest, operand, mapping.steps), steps, d == kOutput);
  }
  cost.global_cycles = cycles_at(cost.global_words, machine.buffers.global_words_per_cycle);
  cost.hbm_cycles = cycles_at(cost.hbm_words, machine.buffers.hbm_words_per_cycle);
  cost.cycles = overlapped_cycles(mapping.l2_doubled, mapping.global_doubled,
                                  std::max(cost.array_cycles, cost.l2_cycles), cost.global_cycles,
                                  cost.hbm_cycles);
  return cost;
}

}  // namespace braid
