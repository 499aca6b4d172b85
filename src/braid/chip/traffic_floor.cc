#include "braid/chip/traffic_floor.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "braid/chip/covering_program.h"
#include "braid/chip/set_order.h"
#include "braid/graph/bitset.h"

namespace braid {
namespace {

/// Lists the connected sets of kernels that fit on chip together and lie between two downsets, each
/// once: by its first kernel in topological order, every neighbour is in turn taken or left for
/// good. What a set needs on chip, counted so that it only grows, cuts branches off.
class FittingSets {
 public:
  FittingSets(const MapperTables& tables, const TrafficFloorBudget& budget)
      : tables_(tables),
        budget_(budget),
        count_(tables.kernels.size()),
        above_(count_, Bitset(count_)),
        below_(count_, Bitset(count_)),
        near_(count_) {
    for (const std::uint32_t kernel : tables.order) {
      for (const MapperTables::Tensor& input : tables.kernels[kernel].inputs) {
        above_[kernel] |= above_[input.other];
        above_[kernel].set(input.other);
        meet(kernel, input.other);
      }
    }
    for (auto kernel = tables.order.rbegin(); kernel != tables.order.rend(); ++kernel) {
      const auto& outputs = tables.kernels[*kernel].outputs;
      for (const MapperTables::Tensor& output : outputs) {
        below_[*kernel] |= below_[output.other];
        below_[*kernel].set(output.other);
        if (!tables.rules.share_tensors) continue;
        for (const MapperTables::Tensor& other : outputs) {
          if (other.other != output.other) meet(output.other, other.other);
        }
      }
    }
    for (std::vector<std::uint32_t>& near : near_) {
      std::sort(near.begin(), near.end());
      near.erase(std::unique(near.begin(), near.end()), near.end());
    }
  }

  /// False when there are too many.
  bool list(CoveringProgram& program) {
    program_ = &program;
    state_.assign(count_, State::free);
    for (const std::uint32_t root : tables_.order) {
      members_.clear();
      candidates_.clear();
      const bool all = grow(root, Bitset(count_), Bitset(count_), Bitset(count_), 0);
      state_[root] = State::left;
      if (!all) return false;
    }
    return true;
  }

 private:
  enum class State : std::uint8_t { free, candidate, left, taken };

  void meet(std::uint32_t a, std::uint32_t b) {
    near_[a].push_back(b);
    near_[b].push_back(a);
  }

  /// What the kernel adds to the SRAM of the taken ones, at least and never negative.
  double added_bytes(std::uint32_t kernel) const {
    const MapperTables::Kernel& entry = tables_.kernels[kernel];
    double bytes = entry.weight_bytes;
    const auto add = [&](const MapperTables::Tensor& tensor) {
      const double crossing = std::min(tensor.crossing_bytes, tensor.inner_bytes);
      const bool inside = state_[tensor.other] == State::taken;
      bytes += inside ? tensor.inner_bytes - crossing : crossing;
    };
    for (const MapperTables::Tensor& tensor : entry.inputs) add(tensor);
    for (const MapperTables::Tensor& tensor : entry.outputs) add(tensor);
    return bytes;
  }

  double traffic_bytes() const {
    const bool share = tables_.rules.share_tensors;
    double bytes = 0;
    for (const std::uint32_t kernel : members_) {
      const MapperTables::Kernel& entry = tables_.kernels[kernel];
      bool written = false;
      for (const MapperTables::Tensor& tensor : entry.outputs) {
        if (state_[tensor.other] == State::taken || (share && written)) continue;
        bytes += share ? entry.output_bytes : tensor.bytes;
        written = true;
      }
      for (const MapperTables::Tensor& tensor : entry.inputs) {
        if (state_[tensor.other] == State::taken) continue;
        if (!share) {
          bytes += tensor.bytes;
        } else if (reads_first(kernel, tensor.other)) {
          bytes += tables_.kernels[tensor.other].output_bytes;
        }
      }
    }
    return bytes;
  }

  /// Whether no other member that reads the output of `writer` has a lower number.
  bool reads_first(std::uint32_t kernel, std::uint32_t writer) const {
    const auto& readers = tables_.kernels[writer].outputs;
    return std::none_of(readers.begin(), readers.end(), [&](const MapperTables::Tensor& reader) {
      return reader.other < kernel && state_[reader.other] == State::taken;
    });
  }

  // Takes the kernel, lists the set if it can be a partition, then all larger ones. Depth: the
  // members.
  // NOLINTNEXTLINE(misc-no-recursion)
  bool grow(std::uint32_t kernel, Bitset set, Bitset above, Bitset below, double sram_bytes) {
    sram_bytes += added_bytes(kernel);
    const bool alone = members_.empty();
    const bool fits = !tables_.rules.sram_limit || sram_bytes <= tables_.chip.sram_bytes * kCare;
    if (!alone && !fits) return true;
    if (++looked_at_ > budget_.sets) return false;
    set.set(kernel);
    above |= above_[kernel];
    below |= below_[kernel];
    const State before = state_[kernel];
    state_[kernel] = State::taken;
    members_.push_back(kernel);
    bool all = true;
    // Kernels between members must be members, too, and still be free.
    const Bitset between = (above & below) - set;
    bool possible = true, closed = true;
    double missing_bytes = 0;
    between.for_each([&](std::size_t i) {
      closed = false;
      possible = possible && state_[i] != State::left;
      missing_bytes += tables_.kernels[i].weight_bytes;
    });
    possible = possible && (!tables_.rules.sram_limit || alone ||
                            sram_bytes + missing_bytes <= tables_.chip.sram_bytes * kCare);
    const bool room = fits && (!tables_.rules.whole_tiles ||
                               static_cast<std::int64_t>(members_.size()) < tables_.chip.tiles);
    if (possible) {
      if (closed) {
        all = static_cast<std::int64_t>(program_->columns()) < budget_.columns;
        program_->add_column(members_, traffic_bytes());
      }
      if (room && all) all = grow_by_one(kernel, set, above, below, sram_bytes);
    }
    members_.pop_back();
    state_[kernel] = before;
    return all;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  bool grow_by_one(std::uint32_t latest, const Bitset& set, const Bitset& above,
                   const Bitset& below, double sram_bytes) {
    const std::size_t begin = candidates_.size();
    for (const std::uint32_t other : near_[latest]) {
      if (state_[other] != State::free) continue;
      if (tables_.kernels[other].waits != tables_.kernels[latest].waits) continue;
      state_[other] = State::candidate;
      candidates_.push_back(other);
    }
    // Candidates of earlier members that were not decided yet come after this one's.
    std::vector<std::uint32_t> decided;
    bool all = true;
    for (std::size_t at = candidates_.size(); all && at-- > 0;) {
      const std::uint32_t other = candidates_[at];
      if (state_[other] != State::candidate) continue;
      all = grow(other, set, above, below, sram_bytes);
      state_[other] = State::left;
      decided.push_back(other);
    }
    for (const std::uint32_t other : decided) state_[other] = State::candidate;
    for (std::size_t at = begin; at < candidates_.size(); ++at) {
      state_[candidates_[at]] = State::free;
    }
    candidates_.resize(begin);
    return all;
  }

  static constexpr double kCare = 1 + 1e-9;  ///< Sums in another order differ in the last digits.

  const MapperTables& tables_;
  const TrafficFloorBudget& budget_;
  std::size_t count_;
  std::vector<Bitset> above_, below_;  ///< Kernels that one needs, and that need it.
  std::vector<std::vector<std::uint32_t>> near_;
  std::vector<State> state_;
  std::vector<std::uint32_t> members_, candidates_;
  CoveringProgram* program_ = nullptr;
  std::int64_t looked_at_ = 0;
};

/// Turns the fractions of the program into an order of kernels: round by round it takes the sets
/// whose fraction is all but 1, or else the largest, without those that would have to wait for each
/// other in turn, of which it takes one; drops the columns that go no longer with what is taken;
/// and solves the rest again.
class Rounding {
 public:
  Rounding(const MapperTables& tables, const CoveringProgram& program,
           const CoveringProgram::Solution& relaxed)
      : tables_(tables),
        program_(program),
        solution_(relaxed),
        sets_(tables),
        taken_(tables.kernels.size(), false),
        kernel_of_(tables.kernels.size()) {
    std::iota(kernel_of_.begin(), kernel_of_.end(), 0U);
  }

  std::vector<std::uint32_t> run(std::int64_t work) {
    while (program_.rows() > 0 && work > 0) {
      take();
      const std::vector<std::size_t> first = reduce();
      if (program_.rows() == 0) break;
      solution_ = program_.solve(work, first);
      work -= solution_.work;
    }
    return sets_.order();
  }

 private:
  std::vector<std::uint32_t> kernels_of(std::size_t column) const {
    std::vector<std::uint32_t> kernels;
    for (const std::uint32_t row : program_.column(column)) kernels.push_back(kernel_of_[row]);
    return kernels;
  }

  void take() {
    constexpr double kAllBut = 0.9;  // So large, they have no kernel in common.
    std::vector<std::vector<std::uint32_t>> chosen;
    for (std::size_t u = 0; u < solution_.used.size(); ++u) {
      if (u > 0 && solution_.shares[u] < kAllBut) break;
      chosen.push_back(kernels_of(solution_.used[u]));
    }
    const std::vector<bool> safe = sets_.never_in_cycle(chosen);
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      if (safe[c]) add(chosen[c]);
    }
    // Of the others the largest; one at least can be taken, as each could alone.
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const std::vector<std::uint32_t>& set : chosen) {
      if (!taken_[set[0]] && add(set)) break;
    }
  }

  bool add(const std::vector<std::uint32_t>& set) {
    if (!sets_.add(set)) return false;
    for (const std::uint32_t kernel : set) taken_[kernel] = true;
    return true;
  }

  /// Leaves columns of kernels that are not taken and that could be taken next. What was in use
  /// comes first.
  std::vector<std::size_t> reduce() {
    std::vector<std::uint32_t> row_of(program_.rows(), 0), kernels;
    for (std::size_t row = 0; row < program_.rows(); ++row) {
      row_of[row] = static_cast<std::uint32_t>(kernels.size());
      if (!taken_[kernel_of_[row]]) kernels.push_back(kernel_of_[row]);
    }
    const std::vector<Bitset> behind = sets_.behind();
    std::vector<std::size_t> place(program_.columns(), program_.columns());
    CoveringProgram left(kernels.size());
    for (std::size_t c = 0; c < program_.columns(); ++c) {
      std::vector<std::uint32_t> set = kernels_of(c);
      if (std::any_of(set.begin(), set.end(), [&](std::uint32_t k) { return taken_[k]; })) continue;
      if (waits_for_itself(set, behind)) continue;
      set.clear();
      for (const std::uint32_t row : program_.column(c)) set.push_back(row_of[row]);
      place[c] = left.columns();
      left.add_column(set, program_.cost(c));
    }
    std::vector<std::size_t> first;
    for (const std::size_t column : solution_.used) {
      if (place[column] < program_.columns()) first.push_back(place[column]);
    }
    program_ = std::move(left);
    kernel_of_ = std::move(kernels);
    return first;
  }

  bool waits_for_itself(const std::vector<std::uint32_t>& set,
                        const std::vector<Bitset>& behind) const {
    const auto in_set = [&](std::uint32_t kernel) {
      return std::find(set.begin(), set.end(), kernel) != set.end();
    };
    return std::any_of(set.begin(), set.end(), [&](std::uint32_t kernel) {
      const auto& outputs = tables_.kernels[kernel].outputs;
      return std::any_of(outputs.begin(), outputs.end(), [&](const MapperTables::Tensor& tensor) {
        return !in_set(tensor.other) &&
               std::any_of(set.begin(), set.end(),
                           [&](std::uint32_t other) { return behind[tensor.other].test(other); });
      });
    });
  }

  const MapperTables& tables_;
  CoveringProgram program_;
  CoveringProgram::Solution solution_;
  SetOrder sets_;
  std::vector<bool> taken_;
  std::vector<std::uint32_t> kernel_of_;  ///< By row.
};

}  // namespace

TrafficFloors traffic_floors(const MapperTables& tables, const TrafficFloorBudget& budget) {
  TrafficFloors floors;
  if (tables.kernels.size() > budget.kernels) return floors;
  CoveringProgram program(tables.kernels.size());
  if (!FittingSets(tables, budget).list(program)) return floors;
  CoveringProgram::Solution solution = program.solve(budget.work);
  floors.order = Rounding(tables, program, solution).run(budget.work);
  floors.bytes = std::move(solution.prices);
  return floors;
}

}  // namespace braid
