#include "chip/systolic/nest_oracle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace braid {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;  // [first, last)
using Key = std::vector<std::int64_t>;

/// [0, count) cut into so many parts, larger ones first.
std::vector<Range> even_parts(std::int64_t count, std::int64_t parts) {
  std::vector<Range> ranges;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t next = first + count / parts + (i < count % parts ? 1 : 0);
    ranges.emplace_back(first, next);
    first = next;
  }
  return ranges;
}

/// One dimension as a mapping cuts it.
struct Dimension {
  std::int64_t size = 1, unit = 1, units = 1, cores = 1, rounds = 1, steps = 1;
  std::vector<Range> pieces;       // Units, by round and core.
  std::vector<Range> step_rounds;  // Rounds, by step.

  std::int64_t elements(const Range& of_units) const {
    return std::min(size, of_units.second * unit) - std::min(size, of_units.first * unit);
  }
  const Range& piece(std::int64_t round, std::int64_t core) const {
    return pieces[static_cast<std::size_t>(round * cores + core)];
  }
  std::int64_t round_elements(std::int64_t round) const {
    return elements({piece(round, 0).first, piece(round, cores - 1).second});
  }
  std::int64_t step_elements(std::int64_t step) const {
    std::int64_t sum = 0;
    const Range& range = step_rounds[static_cast<std::size_t>(step)];
    for (std::int64_t round = range.first; round < range.second; ++round) {
      sum += round_elements(round);
    }
    return sum;
  }
  std::int64_t largest_piece() const {
    std::int64_t most = 0;
    for (const Range& range : pieces) most = std::max(most, range.second - range.first);
    return std::min(size, most * unit);
  }
  std::int64_t largest_step() const {
    std::int64_t most = 0;
    for (const Range& range : pieces) most = std::max(most, range.second - range.first);
    std::int64_t together = 0;
    for (const Range& range : step_rounds)
      together = std::max(together, range.second - range.first);
    return std::min(size, most * unit * cores * together);
  }
};

/// The buffer of one level: which tile of each operand is there, and what moved.
struct Level {
  std::array<Key, 3> here;
  std::set<Key> begun;  // Tiles of the output with sums in them.
  double words = 0;

  /// `words` of the tile `key` of an operand are needed; `partial` sums of it come at a time.
  void need(int operand, const Key& key, double tile, double partial) {
    Key& present = here[static_cast<std::size_t>(operand)];
    if (present == key) return;
    present = key;
    if (operand != 2) {
      words += tile;
      return;
    }
    words += tile * partial;  // Written when it leaves.
    words += tile * (partial - (begun.insert(key).second ? 1 : 0));
  }
};

struct Walk {
  const LoopNest& nest;
  const SystolicMachine& machine;
  const NestMapping& mapping;
  std::array<Dimension, 3> dims;
  int rows = 0, columns = 0, streamed = 0;
  Level global, hbm;
  double array_cycles = 0, busiest_words = 0;
  double rounds_walked = 0;
  std::map<std::vector<std::int64_t>, std::set<Key>>
      sums;  // Of each core: begun groups of outputs.

  double window_part(int operand, std::int64_t part, std::int64_t parts, double other) const {
    const auto positions = static_cast<std::size_t>(nest.window.positions);
    static_cast<void>(operand);
    const Range range = even_parts(dims[positions].size, parts)[static_cast<std::size_t>(part)];
    const auto p = static_cast<double>(range.second - range.first);
    return std::min(p, nest.window.slope * p + nest.window.offset) * other;
  }

  /// Words of an operand in a round (`of_step` false) or a step.
  double words(int operand, const std::array<std::int64_t, 3>& at, bool of_step) const {
    const bool windowed = nest.window.used && static_cast<int>(nest.window.operand) == operand;
    double product = 1;
    for (int d = 0; d < 3; ++d) {
      if (d == operand) continue;
      if (windowed && static_cast<int>(nest.window.positions) == d) continue;
      const Dimension& dim = dims[static_cast<std::size_t>(d)];
      const std::int64_t i = at[static_cast<std::size_t>(d)];
      product *= static_cast<double>(of_step ? dim.step_elements(i) : dim.round_elements(i));
    }
    if (!windowed) return product;
    const auto positions = static_cast<std::size_t>(nest.window.positions);
    return window_part(operand, at[positions],
                       of_step ? dims[positions].steps : dims[positions].rounds, product);
  }

  double core_words(const std::array<Range, 3>& piece, const Key& core, std::int64_t batch) {
    const auto length = [&](int d, const Range& r) {
      return static_cast<double>(dims[static_cast<std::size_t>(d)].elements(r));
    };
    const Range& row = piece[static_cast<std::size_t>(rows)];
    const Range& column = piece[static_cast<std::size_t>(columns)];
    const Range& stream = piece[static_cast<std::size_t>(streamed)];
    double moved = 0;
    for (std::int64_t a = row.first; a < row.second; a += mapping.folds[0]) {
      const Range rs{a, std::min(row.second, a + mapping.folds[0])};
      for (std::int64_t b = column.first; b < column.second; b += mapping.folds[1]) {
        const Range cs{b, std::min(column.second, b + mapping.folds[1])};
        const std::array<double, 3> tile = {length(columns, cs) * length(streamed, stream),
                                            length(rows, rs) * length(streamed, stream),
                                            length(rows, rs) * length(columns, cs)};
        const std::array<int, 3> lacks = {rows, columns, streamed};
        for (std::size_t i = 0; i < 3; ++i) {
          moved += tile[i];
          if (lacks[i] != 2) continue;
          // The output: a sum that is continued is read, too.
          Key group = {batch};
          for (const int d : {0, 1}) {
            group.push_back(d == rows ? rs.first : d == columns ? cs.first : stream.first);
          }
          if (!sums[core].insert(group).second) moved += tile[i];
        }
      }
    }
    return moved;
  }

  double core_passes(const std::array<Range, 3>& piece) const {
    double cycles = 0;
    const Range& row = piece[static_cast<std::size_t>(rows)];
    const Range& column = piece[static_cast<std::size_t>(columns)];
    const Range& stream = piece[static_cast<std::size_t>(streamed)];
    for (std::int64_t a = row.first; a < row.second; ++a) {
      for (std::int64_t b = column.first; b < column.second; ++b) {
        cycles += static_cast<double>(std::max(stream.second - stream.first, machine.array.rows));
      }
    }
    return cycles;
  }

  void round(const std::array<std::int64_t, 3>& at, const std::array<std::int64_t, 3>& step,
             std::int64_t batch, std::int64_t batch_slices) {
    const auto slices = static_cast<double>(batch_slices);
    for (int operand = 0; operand < 3; ++operand) {
      Key in_l2 = {batch}, in_global = {batch};
      for (std::size_t d = 0; d < 3; ++d) {
        if (static_cast<int>(d) == operand) continue;
        in_l2.push_back(at[d]);
        in_global.push_back(step[d]);
      }
      global.need(operand, in_l2, slices * words(operand, at, false),
                  operand == 2 ? static_cast<double>(mapping.cores[2]) : 1);
      if ((nest.on_chip >> operand & 1) != 0) continue;
      hbm.need(operand, in_global, slices * words(operand, step, true), 1);
    }
    double passes = 0, moved = 0;
    for (std::int64_t m = 0; m < dims[0].cores; ++m) {
      for (std::int64_t n = 0; n < dims[1].cores; ++n) {
        for (std::int64_t k = 0; k < dims[2].cores; ++k) {
          const std::array<Range, 3> piece = {dims[0].piece(at[0], m), dims[1].piece(at[1], n),
                                              dims[2].piece(at[2], k)};
          passes = std::max(passes, core_passes(piece));
          moved = std::max(moved, core_words(piece, {m, n, k}, batch));
        }
      }
    }
    array_cycles += passes;
    busiest_words += moved;
    rounds_walked += 1;
  }
};

void set_dimensions(Walk& walk) {
  const std::array<std::int64_t, 3> sizes = {walk.nest.m, walk.nest.n, walk.nest.k};
  switch (walk.mapping.flow) {
    case ArrayFlow::weight_stationary:
      walk.rows = 2, walk.columns = 1, walk.streamed = 0;
      break;
    case ArrayFlow::input_stationary:
      walk.rows = 2, walk.columns = 0, walk.streamed = 1;
      break;
    case ArrayFlow::output_stationary:
      walk.rows = 0, walk.columns = 1, walk.streamed = 2;
      break;
    case ArrayFlow::output_stationary_turned:
      walk.rows = 1, walk.columns = 0, walk.streamed = 2;
      break;
  }
  for (int d = 0; d < 3; ++d) {
    const auto i = static_cast<std::size_t>(d);
    Dimension& dim = walk.dims[i];
    dim.size = sizes[i];
    dim.unit = d == walk.rows      ? walk.machine.array.rows
               : d == walk.columns ? walk.machine.array.columns
                                   : 1;
    while (dim.units * dim.unit < dim.size) ++dim.units;
    dim.cores = walk.mapping.cores[i];
    dim.rounds = walk.mapping.rounds[i];
    dim.steps = walk.mapping.steps[i];
    dim.pieces = even_parts(dim.units, dim.cores * dim.rounds);
    dim.step_rounds = even_parts(dim.rounds, dim.steps);
  }
}

bool held(const Walk& walk) {
  double l2 = 0, global = 0;
  for (int operand = 0; operand < 3; ++operand) {
    double in_l2 = 1, in_global = 1;
    for (int d = 0; d < 3; ++d) {
      if (d == operand) continue;
      const Dimension& dim = walk.dims[static_cast<std::size_t>(d)];
      auto p = static_cast<double>(dim.largest_piece()),
           g = static_cast<double>(dim.largest_step());
      if (walk.nest.window.used && static_cast<int>(walk.nest.window.operand) == operand &&
          static_cast<int>(walk.nest.window.positions) == d) {
        p = std::min(p, walk.nest.window.slope * p + walk.nest.window.offset);
        g = std::min(g, walk.nest.window.slope * g + walk.nest.window.offset);
      }
      in_l2 *= p;
      in_global *= g;
    }
    l2 = walk.machine.buffers.l2_per_operand ? std::max(l2, in_l2) : l2 + in_l2;
    global += in_global;
  }
  return l2 * (walk.mapping.l2_doubled ? 2 : 1) <= walk.machine.buffers.l2_words &&
         global * static_cast<double>(walk.mapping.batch_cores) *
                 (walk.mapping.global_doubled ? 2 : 1) <=
             walk.machine.buffers.global_words;
}

/// Visits all combinations of indices below `counts`, the first turning slowest.
template <typename Visit>
void nested(const std::vector<Range>& ranges, std::vector<std::int64_t>& index, std::size_t depth,
            const Visit& visit) {
  if (depth == ranges.size()) {
    visit();
    return;
  }
  for (index[depth] = ranges[depth].first; index[depth] < ranges[depth].second; ++index[depth]) {
    nested(ranges, index, depth + 1, visit);
  }
}

double cycles_of(double words, double rate) { return rate > 0 ? words / rate : 0; }

double combined(const NestCost& cost, bool l2_doubled, bool global_doubled) {
  const double core = std::max(cost.array_cycles, cost.l2_cycles);
  const double inner = l2_doubled ? std::max(core, cost.global_cycles) : core + cost.global_cycles;
  return global_doubled ? std::max(inner, cost.hbm_cycles) : inner + cost.hbm_cycles;
}

std::vector<std::int64_t> core_counts(std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (std::int64_t c = 1; c <= most; c *= 2) counts.push_back(c);
  return counts;
}

}  // namespace

std::optional<NestCost> walked_cost(const LoopNest& nest, const SystolicMachine& machine,
                                    const NestMapping& mapping, const LoopOrders& orders) {
  Walk walk{nest, machine, mapping, {}, 0, 0, 0, {}, {}, 0, 0, 0, {}};
  set_dimensions(walk);
  if (!held(walk)) return std::nullopt;
  const std::vector<Range> slices = [&] {
    std::vector<Range> found;
    for (std::int64_t b = 0; b < nest.batch; b += mapping.batch_cores) {
      found.emplace_back(b, std::min(nest.batch, b + mapping.batch_cores));
    }
    return found;
  }();
  std::vector<Range> outer;
  for (const int d : orders.steps) {
    outer.emplace_back(0, d == 3 ? static_cast<std::int64_t>(slices.size())
                                 : walk.dims[static_cast<std::size_t>(d)].steps);
  }
  std::vector<std::int64_t> o(4), i(3);
  nested(outer, o, 0, [&] {
    std::array<std::int64_t, 4> step{};
    for (std::size_t p = 0; p < 4; ++p) step[static_cast<std::size_t>(orders.steps[p])] = o[p];
    std::vector<Range> inner;
    for (const int d : orders.rounds) {
      const auto dim = static_cast<std::size_t>(d);
      inner.push_back(walk.dims[dim].step_rounds[static_cast<std::size_t>(step[dim])]);
    }
    nested(inner, i, 0, [&] {
      std::array<std::int64_t, 3> at{};
      for (std::size_t p = 0; p < 3; ++p) at[static_cast<std::size_t>(orders.rounds[p])] = i[p];
      const Range& slice = slices[static_cast<std::size_t>(step[3])];
      walk.round(at, {step[0], step[1], step[2]}, step[3], slice.second - slice.first);
    });
  });
  const auto fill = static_cast<double>(2 * machine.array.rows + machine.array.columns - 2);
  NestCost cost;
  cost.array_cycles = walk.array_cycles + fill * (mapping.l2_doubled ? 1 : walk.rounds_walked);
  cost.l2_cycles = cycles_of(walk.busiest_words, machine.array.words_per_cycle);
  cost.global_words = walk.global.words;
  cost.hbm_words = walk.hbm.words;
  cost.global_cycles = cycles_of(walk.global.words, machine.buffers.global_words_per_cycle);
  cost.hbm_cycles = cycles_of(walk.hbm.words, machine.buffers.hbm_words_per_cycle);
  cost.cycles = combined(cost, mapping.l2_doubled, mapping.global_doubled);
  return cost;
}

namespace {

/// Fewest cycles in any order of loops.
double fewest_of_orders(const LoopNest& nest, const SystolicMachine& machine,
                        const NestMapping& mapping) {
  double fewest = std::numeric_limits<double>::infinity();
  // A batch of one does not turn: outermost is as good as anywhere.
  LoopOrders orders;
  if (nest.batch > 1) orders.steps = {0, 1, 2, 3};
  do {
    orders.rounds = {0, 1, 2};
    do {
      const std::optional<NestCost> cost = walked_cost(nest, machine, mapping, orders);
      if (!cost) return fewest;
      fewest = std::min(fewest, cost->cycles);
    } while (std::next_permutation(orders.rounds.begin(), orders.rounds.end()));
  } while (std::next_permutation(orders.steps.begin(), orders.steps.end()));
  return fewest;
}

/// Visits every way to cut: cores, rounds and steps of dimension d and of those after it.
template <typename Visit>
void cut_from(std::size_t d, const std::array<std::int64_t, 3>& units, std::int64_t cores,
              NestMapping& mapping, const Visit& visit) {
  if (d == 3) {
    visit();
    return;
  }
  for (const std::int64_t c : core_counts(std::min(cores, units[d]))) {
    mapping.cores[d] = c;
    for (std::int64_t rounds = 1; rounds * c <= units[d]; ++rounds) {
      mapping.rounds[d] = rounds;
      for (std::int64_t steps = 1; steps <= rounds; ++steps) {
        mapping.steps[d] = steps;
        cut_from(d + 1, units, cores / c, mapping, visit);
      }
    }
  }
}

}  // namespace

double fewest_cycles(const LoopNest& nest, const SystolicMachine& machine) {
  double fewest = std::numeric_limits<double>::infinity();
  NestMapping mapping;
  for (int f = 0; f < kArrayFlows; ++f) {
    if ((machine.array.flows >> f & 1) == 0) continue;
    mapping.flow = static_cast<ArrayFlow>(f);
    Walk walk{nest, machine, mapping, {}, 0, 0, 0, {}, {}, 0, 0, 0, {}};
    set_dimensions(walk);
    const std::array<std::int64_t, 3> units = {walk.dims[0].units, walk.dims[1].units,
                                               walk.dims[2].units};
    for (const std::int64_t b : core_counts(std::min(machine.cores, nest.batch))) {
      mapping.batch_cores = b;
      cut_from(0, units, machine.cores / b, mapping, [&] {
        for (std::int64_t folds = 1; folds <= machine.array.unit_words; ++folds) {
          mapping.folds = {folds, machine.array.unit_words / folds};
          for (const bool l2_doubled : {true, false}) {
            for (const bool global_doubled : {true, false}) {
              mapping.l2_doubled = l2_doubled;
              mapping.global_doubled = global_doubled;
              fewest = std::min(fewest, fewest_of_orders(nest, machine, mapping));
            }
          }
        }
      });
    }
  }
  return fewest;
}

}  // namespace braid
