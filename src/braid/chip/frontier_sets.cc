#include "braid/chip/frontier_sets.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "braid/chip/frontier_order.h"
#include "braid/graph/bitset.h"

namespace braid {
namespace {

using Units = std::int32_t;
constexpr Units kNever = std::numeric_limits<Units>::min();
constexpr double kMostUnits = 1U << 30U;  // Of all prices and traffic together.
constexpr double kLevelCare = 1 + 1e-9;   // Sums in another order differ in the last digits.

constexpr std::size_t bit_at(std::size_t place) { return std::size_t{1} << place; }

/// The row with one more place, at `place`, that is empty.
constexpr std::size_t widened(std::size_t row, std::size_t place) {
  const std::size_t low = bit_at(place) - 1;
  return (row & ~low) << 1U | (row & low);
}

void sort_out(std::vector<std::uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

/// A row for each subset of the frontier, of the greatest excess by level of SRAM in use.
class FrontierSets::Tables {
 public:
  Tables(const FrontierSets& sets, std::span<const double> prices)
      : sets_(sets), prices_(prices), levels_(sets.levels_), bests_(sets.steps_.size()) {
    double bytes = 1e-300;
    for (const double price : prices) bytes += std::abs(price);
    for (const Tensor& tensor : sets.tensors_) {
      bytes += tensor.bytes * static_cast<double>(2 * tensor.readers.size() + 2);
    }
    unit_bytes_ = bytes / kMostUnits;
    table_.assign(levels_, kNever);
    forget_what_left();
    for (std::size_t at = 0; at < sets.steps_.size(); ++at) {
      take(sets.steps_[at], bests_[at]);
      first_merge_.push_back(merges_.size());
      for (const std::uint32_t place : sets.steps_[at].leaving) leave(place);
      forget_what_left();
    }
  }

  /// Of the sets whose last kernel is that of the step.
  bool any(std::size_t step) const { return bests_[step].units != kNever; }
  double excess_bytes(std::size_t step) const { return unit_bytes_ * bests_[step].units; }

  std::vector<std::uint32_t> kernels(std::size_t step) const {
    std::vector<std::uint32_t> set;
    std::size_t row = bests_[step].row, level = bests_[step].level;
    for (std::size_t at = step;; --at) {
      const Step& now = sets_.steps_[at];
      const std::size_t bit = bit_at(now.places);
      if ((row & bit) != 0) {
        row -= bit;
        set.push_back(now.kernel);
        level -= levels_added(now, row);
      }
      if (row == 0) return set;
      const auto& leaving = sets_.steps_[at - 1].leaving;
      for (std::size_t i = leaving.size(); i-- > 0;) {
        const bool taken = merges_[first_merge_[at - 1] + i][row * levels_ + level] != 0;
        row = widened(row, leaving[i]) | (taken ? bit_at(leaving[i]) : 0);
      }
    }
  }

 private:
  struct Best {
    Units units = kNever;
    std::size_t row = 0, level = 0;
  };

  std::size_t levels_added(const Step& step, std::size_t row) const {
    double bytes = step.sram_bytes;
    for (const Neighbour& neighbour : step.neighbours) {
      if ((row & neighbour.bit) != 0) bytes -= neighbour.saved_bytes;
    }
    const auto most = static_cast<double>(levels_);
    return static_cast<std::size_t>(std::clamp(bytes / sets_.level_bytes_, 0.0, most));
  }

  Units units_added(const Step& step, std::size_t row) const {
    double bytes = prices_[step.kernel];
    for (const Link& link : step.links) {
      const int inside = std::popcount(link.readers & row);
      if (link.writes) {
        if (inside > 0) bytes += link.bytes;            // No longer read.
        if (inside < link.others) bytes -= link.bytes;  // Written.
      } else if ((link.writer & row) == 0) {
        if (inside == 0) bytes -= link.bytes;  // Read.
      } else if (inside == link.others) {
        bytes += link.bytes;  // No longer written.
      }
    }
    return static_cast<Units>(std::ceil(bytes / unit_bytes_));
  }

  /// Adds a row with the kernel for each without it.
  void take(const Step& step, Best& best) {
    const std::size_t rows = bit_at(step.places);
    table_.resize(2 * rows * levels_);
    lowest_.resize(2 * rows);
    between_.assign(rows, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      if (row != 0) {
        const auto first = static_cast<std::size_t>(std::countr_zero(row));
        between_[row] = between_[row & (row - 1)] | step.between[first];
      }
      const std::size_t begin = lowest_[row];
      lowest_[rows + row] = levels_;
      if ((row & step.above) != 0 && (row & step.below) != 0) lowest_[row] = levels_;
      if (begin == levels_ || (row & step.apart) != 0 || (between_[row] & ~row) != 0) continue;
      const std::size_t shift = levels_added(step, row);
      if (begin + shift >= levels_) continue;
      lowest_[rows + row] = begin + shift;
      const Units gain = units_added(step, row);
      const Units* const from = &table_[row * levels_];
      Units* const to = &table_[(rows + row) * levels_] + shift;
      Units most = kNever;
      for (std::size_t level = begin; level < levels_ - shift; ++level) {
        const Units sum = from[level] == kNever ? kNever : from[level] + gain;
        to[level] = sum;
        most = std::max(most, sum);
      }
      if (most <= best.units) continue;
      const auto found = std::find(to + begin, to + levels_ - shift, most);
      best = {most, rows + row, static_cast<std::size_t>(found - to) + shift};
    }
  }

  /// Keeps the better of rows that differ in the place alone.
  void leave(std::size_t place) {
    const std::size_t rows = lowest_.size() / 2;
    std::vector<std::uint8_t>& taken = merges_.emplace_back(rows * levels_);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t left = widened(row, place), right = left | bit_at(place);
      const std::size_t left_lowest = lowest_[left], right_lowest = lowest_[right];
      const std::size_t both = std::max(left_lowest, right_lowest);
      const Units* const without = &table_[left * levels_];
      const Units* const with = &table_[right * levels_];
      Units* const to = &table_[row * levels_];
      std::uint8_t* const bits = &taken[row * levels_];
      std::size_t level = lowest_[row] = std::min(left_lowest, right_lowest);
      if (right_lowest < left_lowest) {
        std::copy(with + level, with + both, to + level);
        std::fill(bits + level, bits + both, std::uint8_t{1});
      } else if (to != without) {
        std::copy(without + level, without + both, to + level);
      }
      for (level = both; level < levels_; ++level) {
        bits[level] = with[level] > without[level] ? 1 : 0;
        to[level] = std::max(without[level], with[level]);
      }
    }
    lowest_.resize(rows);
    table_.resize(rows * levels_);
  }

  /// Sets that have left the frontier gain nothing by what comes apart from them.
  void forget_what_left() {
    std::fill(table_.begin(), table_.begin() + static_cast<std::ptrdiff_t>(levels_), kNever);
    table_[0] = 0;
    lowest_[0] = 0;
  }

  const FrontierSets& sets_;
  std::span<const double> prices_;
  std::size_t levels_;
  double unit_bytes_ = 0;
  std::vector<Units> table_;
  std::vector<std::size_t> lowest_ = {0};  ///< Level that a row reaches; its entries below are any.
  std::vector<std::uint32_t> between_;
  std::vector<Best> bests_;
  std::vector<std::vector<std::uint8_t>> merges_;  ///< Whether what left had been taken.
  std::vector<std::size_t> first_merge_;           ///< Of each step.
};

FrontierSets::FrontierSets(const MapperTables& tables, const FrontierBudget& budget)
    : tables_(tables), levels_(budget.levels), place_(tables.kernels.size()) {
  assert(levels_ > 1 && budget.widest <= 30);
  for (std::uint32_t at = 0; at < place_.size(); ++at) place_[tables.order[at]] = at;
  level_bytes_ = tables.chip.sram_bytes * kLevelCare / static_cast<double>(levels_ - 1);
  const std::vector<std::vector<std::uint32_t>> near = list_tensors();
  if (!tables.rules.sram_limit || level_bytes_ <= 0) return;
  const FrontierOrder order = frontier_order(near, budget.steps);
  if (order.subsets > budget.subsets || order.widest > budget.widest) return;
  work_ = static_cast<std::int64_t>(order.subsets) * static_cast<std::int64_t>(levels_) * 3;
  plan(order.nodes, near);
}

std::vector<std::vector<std::uint32_t>> FrontierSets::list_tensors() {
  const std::size_t count = tables_.kernels.size();
  for (std::uint32_t writer = 0; writer < count; ++writer) {
    const MapperTables::Kernel& kernel = tables_.kernels[writer];
    if (tables_.rules.share_tensors) {
      if (kernel.outputs.empty()) continue;
      Tensor tensor{writer, {}, kernel.output_bytes};
      for (const MapperTables::Tensor& output : kernel.outputs) {
        tensor.readers.push_back(output.other);
      }
      sort_out(tensor.readers);
      tensors_.push_back(std::move(tensor));
      continue;
    }
    for (const MapperTables::Tensor& output : kernel.outputs) {
      tensors_.push_back({writer, {output.other}, output.bytes});
    }
  }
  std::vector<std::vector<std::uint32_t>> near(count);
  tensors_of_.resize(count);
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    std::vector<std::uint32_t> members = tensors_[t].readers;
    members.push_back(tensors_[t].writer);
    for (const std::uint32_t a : members) {
      tensors_of_[a].push_back(t);
      for (const std::uint32_t b : members) {
        if (a != b) near[a].push_back(b);
      }
    }
  }
  for (std::vector<std::uint32_t>& others : near) sort_out(others);
  return near;
}

FrontierSets::Step FrontierSets::step_of(std::uint32_t kernel,
                                         const std::vector<std::uint32_t>& frontier) const {
  Step step;
  step.kernel = kernel;
  step.places = static_cast<std::uint32_t>(frontier.size());
  const auto bit_of = [&](std::uint32_t other) -> std::uint32_t {
    const auto found = std::find(frontier.begin(), frontier.end(), other);
    return found == frontier.end() ? 0 : 1U << static_cast<unsigned>(found - frontier.begin());
  };
  for (const std::uint32_t other : frontier) {
    if (tables_.kernels[other].waits != tables_.kernels[kernel].waits) step.apart |= bit_of(other);
  }
  for (const std::uint32_t t : tensors_of_[kernel]) {
    const Tensor& tensor = tensors_[t];
    Link link;
    link.bytes = tensor.bytes;
    link.writes = tensor.writer == kernel;
    link.writer = bit_of(tensor.writer);
    for (const std::uint32_t reader : tensor.readers) {
      if (reader == kernel) continue;
      ++link.others;
      link.readers |= bit_of(reader);
    }
    step.links.push_back(link);
  }
  const MapperTables::Kernel& entry = tables_.kernels[kernel];
  step.sram_bytes = entry.weight_bytes;
  const auto add = [&](const MapperTables::Tensor& tensor) {
    const double crossing = std::min(tensor.crossing_bytes, tensor.inner_bytes);
    step.sram_bytes += crossing;
    const std::uint32_t bit = bit_of(tensor.other);
    // The other, when taken, has counted the crossing already.
    if (bit != 0) step.neighbours.push_back({bit, 2 * crossing - tensor.inner_bytes});
  };
  for (const MapperTables::Tensor& tensor : entry.inputs) add(tensor);
  for (const MapperTables::Tensor& tensor : entry.outputs) add(tensor);
  return step;
}

void FrontierSets::plan(const std::vector<std::uint32_t>& order,
                        const std::vector<std::vector<std::uint32_t>>& near) {
  const std::size_t count = order.size();
  std::vector<Bitset> above(count, Bitset(count));
  for (const std::uint32_t kernel : tables_.order) {
    for (const MapperTables::Tensor& input : tables_.kernels[kernel].inputs) {
      above[kernel] |= above[input.other];
      above[kernel].set(input.other);
    }
  }
  const auto are_in_line = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return above[b].test(a) && above[c].test(b);
  };
  std::vector<std::size_t> open(count);
  for (std::size_t i = 0; i < count; ++i) open[i] = near[i].size();
  std::vector<std::uint32_t> frontier;
  for (const std::uint32_t kernel : order) {
    Step step = step_of(kernel, frontier);
    step.between.resize(frontier.size());
    for (std::size_t p = 0; p < frontier.size(); ++p) {
      const std::uint32_t other = frontier[p];
      if (above[kernel].test(other)) step.above |= 1U << p;
      if (above[other].test(kernel)) step.below |= 1U << p;
      for (std::size_t q = 0; q < frontier.size(); ++q) {
        const bool apart =
            are_in_line(kernel, frontier[q], other) || are_in_line(other, frontier[q], kernel);
        if (apart) step.between[p] |= 1U << q;
      }
    }
    frontier.push_back(kernel);
    for (const std::uint32_t other : near[kernel]) --open[other];
    for (std::size_t place = frontier.size(); place-- > 0;) {
      if (open[frontier[place]] > 0) continue;
      step.leaving.push_back(static_cast<std::uint32_t>(place));
      frontier.erase(frontier.begin() + static_cast<std::ptrdiff_t>(place));
    }
    steps_.push_back(std::move(step));
  }
}

std::vector<FittingSet> FrontierSets::most_excess(std::span<const double> prices) const {
  const Tables tables(*this, prices);
  std::vector<FittingSet> found(steps_.size());
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    if (!tables.any(at)) continue;
    FittingSet& set = found[steps_[at].kernel];
    set.kernels = tables.kernels(at);
    std::sort(set.kernels.begin(), set.kernels.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place_[a] < place_[b]; });
    set.traffic_bytes = traffic_bytes(set.kernels);
    set.excess_bytes = tables.excess_bytes(at);
  }
  return found;
}

double FrontierSets::traffic_bytes(const std::vector<std::uint32_t>& set) const {
  const auto is_inside = [&](std::uint32_t kernel) {
    return std::find(set.begin(), set.end(), kernel) != set.end();
  };
  double bytes = 0;
  for (const std::uint32_t kernel : set) {
    for (const std::uint32_t t : tensors_of_[kernel]) {
      const Tensor& tensor = tensors_[t];
      if (tensor.writer == kernel) {
        if (!std::all_of(tensor.readers.begin(), tensor.readers.end(), is_inside)) {
          bytes += tensor.bytes;
        }
      } else if (!is_inside(tensor.writer)) {
        // Once, at its first reader inside.
        const auto first = std::find_if(tensor.readers.begin(), tensor.readers.end(), is_inside);
        if (*first == kernel) bytes += tensor.bytes;
      }
    }
  }
  return bytes;
}

}  // namespace braid
