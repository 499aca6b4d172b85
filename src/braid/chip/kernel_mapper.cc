#include "braid/chip/kernel_mapper.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/chip/grown_sets.h"
#include "braid/chip/linear_cuts.h"
#include "braid/chip/partition_annealing.h"
#include "braid/chip/partition_sums.h"
#include "braid/chip/partition_time.h"
#include "braid/chip/traffic_floor.h"

namespace braid {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr double kCloseEnough = 1 - 1e-9;
constexpr std::size_t kMostKernelsToSearch = 4096;
/// Kernels that may join, of all downsets together: 256 MB.
constexpr std::size_t kMostJoining = 32'000'000;
constexpr std::int64_t kWorthFloors = 1'000'000;  ///< Partitions in the budget.
constexpr std::int32_t kMostPartitionsToJoin = 200;

/// A* over downsets.
class DownsetSearch {
 public:
  /// `floors`: traffic_floors(), or zeros.
  DownsetSearch(const MapperTables& tables, const MapperBudget& budget,
                const std::vector<double>& floors, double upper_s)
      : tables_(tables),
        budget_(budget),
        floors_(floors),
        sums_(tables),
        upper_s_(upper_s),
        sets_(tables.kernels.size()) {
    Node root;
    for (std::size_t i = 0; i < tables.kernels.size(); ++i) {
      compute_s_ += tables.kernels[i].compute_s;
      network_s_ += tables.kernels[i].network_s;
      traffic_bytes_ += tables.kernels[i].traffic_bytes;
      floor_bytes_ += floors[i];
      if (!tables.kernels[i].inputs.empty()) continue;
      joining_.emplace_back(static_cast<std::uint32_t>(i), kNone);
      ++root.joining;
    }
    root.so_far_s = 0;
    root.bound_s = bound_of(root, 0);
    nodes_.push_back(root);
    open_.emplace(root.bound_s, 0U);
  }

  /// True when nothing better than the upper bound is left out.
  bool run() {
    while (!open_.empty()) {
      const auto [total_s, id] = open_.top();
      open_.pop();
      if (total_s >= upper_s_ * kCloseEnough) break;
      if (nodes_[id].closed) continue;
      nodes_[id].closed = true;
      if (id == whole_) return true;
      sums_.begin(sets_.set(id));
      start_ = id;
      ++stamp_;
      if (!walk(id)) {
        lower_bound_s_ = total_s;
        return false;
      }
    }
    return true;
  }

  /// Sets of kernels, first partition first; empty when nothing beats the upper bound.
  std::vector<Bitset> partitions() const {
    std::vector<Bitset> found;
    if (whole_ == kNone || nodes_[whole_].parent == kNone) return found;
    for (std::uint32_t id = whole_; id != 0; id = nodes_[id].parent) {
      found.push_back(sets_.set(id) - sets_.set(nodes_[id].parent));
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  double lower_bound_s() const { return lower_bound_s_; }
  std::int64_t looked_at() const { return looked_at_; }
  std::int64_t kept() const { return static_cast<std::int64_t>(nodes_.size()); }

 private:
  /// A downset; its number is that of its set.
  struct Node {
    double so_far_s = PartitionSums::kImpossible;
    double bound_s = 0;
    double compute_s = 0, network_s = 0, traffic_bytes = 0, floor_bytes = 0;  ///< Of its kernels.
    std::uint32_t parent = kNone;
    std::uint32_t seen = 0;
    std::uint32_t first_joining = 0, joining = 0;  ///< In joining_.
    bool closed = false;
  };

  double bound_of(const Node& node, double cut_bytes) const {
    return remaining_bound_s(tables_, std::max(0.0, compute_s_ - node.compute_s),
                             std::max(0.0, network_s_ - node.network_s),
                             std::max(0.0, traffic_bytes_ - node.traffic_bytes),
                             std::max(cut_bytes, floor_bytes_ - node.floor_bytes));
  }

  // The downset `id` with the kernel of joining_[at]; the sums are those of the larger one.
  std::uint32_t follow(std::uint32_t id, std::size_t at) {
    const auto [kernel, known] = joining_[at];
    if (known != kNone) return known;
    const std::uint32_t larger = sets_.with(id, kernel);
    joining_[at].second = larger;
    if (larger < nodes_.size()) return larger;
    const Node& before = nodes_[id];
    const MapperTables::Kernel& added = tables_.kernels[kernel];
    Node node;
    node.compute_s = before.compute_s + added.compute_s;
    node.network_s = before.network_s + added.network_s;
    node.traffic_bytes = before.traffic_bytes + added.traffic_bytes;
    node.floor_bytes = before.floor_bytes + floors_[kernel];
    node.first_joining = static_cast<std::uint32_t>(joining_.size());
    for (std::size_t i = 0; i < before.joining; ++i) {
      const std::uint32_t other = joining_[before.first_joining + i].first;
      if (other != kernel) joining_.emplace_back(other, kNone);
    }
    for (const MapperTables::Tensor& tensor : added.outputs) {
      const auto& inputs = tables_.kernels[tensor.other].inputs;
      // Of writers that are missing the last is the likeliest.
      const bool ready = std::all_of(inputs.rbegin(), inputs.rend(), [&](const auto& input) {
        return sets_.has(larger, input.other);
      });
      const bool listed = std::any_of(joining_.begin() + node.first_joining, joining_.end(),
                                      [&](const auto& have) { return have.first == tensor.other; });
      if (ready && !listed) joining_.emplace_back(tensor.other, kNone);
    }
    node.joining = static_cast<std::uint32_t>(joining_.size()) - node.first_joining;
    node.bound_s = bound_of(node, sums_.cut_bytes());
    if (node.joining == 0) {
      node.bound_s = 0;
      whole_ = larger;
    }
    nodes_.push_back(node);
    return larger;
  }

  // Considers all partitions that continue the present one, which ends at the downset `id`. False
  // when the budget is used up. Depth: the number of kernels.
  // NOLINTNEXTLINE(misc-no-recursion)
  bool walk(std::uint32_t id) {
    const std::size_t first = nodes_[id].first_joining, last = first + nodes_[id].joining;
    for (std::size_t at = first; at < last; ++at) {
      const auto [kernel, known] = joining_[at];
      if (known != kNone && nodes_[known].seen == stamp_) continue;
      if (!sums_.accepts(kernel)) continue;
      if (looked_at_ >= budget_.partitions || kept() >= budget_.downsets) return false;
      if (joining_.size() >= kMostJoining) return false;
      const PartitionSums::Sums earlier = sums_.add(kernel);
      const std::uint32_t larger = follow(id, at);
      Node& node = nodes_[larger];
      bool more = true;
      if (node.seen != stamp_) {
        node.seen = stamp_;
        ++looked_at_;
        if (!node.closed) improve(larger);
        if (!sums_.is_full()) more = walk(larger);
      }
      sums_.undo(earlier);
      if (!more) return false;
    }
    return true;
  }

  void improve(std::uint32_t id) {
    Node& node = nodes_[id];
    const double start_s = nodes_[start_].so_far_s;
    const double enough = std::min(node.so_far_s, upper_s_ * kCloseEnough - node.bound_s) - start_s;
    const double total_s = start_s + sums_.time_s(enough);
    if (total_s >= node.so_far_s || total_s + node.bound_s >= upper_s_ * kCloseEnough) return;
    node.so_far_s = total_s;
    node.parent = start_;
    if (id == whole_) upper_s_ = total_s / kCloseEnough;
    open_.emplace(total_s + node.bound_s, id);
  }

  using Entry = std::pair<double, std::uint32_t>;

  const MapperTables& tables_;
  const MapperBudget& budget_;
  const std::vector<double>& floors_;
  PartitionSums sums_;
  double upper_s_;
  double compute_s_ = 0, network_s_ = 0, traffic_bytes_ = 0, floor_bytes_ = 0;
  double lower_bound_s_ = 0;
  std::int64_t looked_at_ = 0;
  GrownSets sets_;
  std::vector<Node> nodes_;
  /// Kernels that may join, downset after downset, with the downset that each leads to.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> joining_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
  std::uint32_t whole_ = kNone, start_ = 0, stamp_ = 0;
};

Mapping mapping_of(const std::vector<Bitset>& partitions, std::size_t kernels) {
  Mapping mapping;
  mapping.partition_of.assign(kernels, 0);
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    partitions[p].for_each(
        [&](std::size_t i) { mapping.partition_of[i] = static_cast<std::int32_t>(p); });
  }
  return mapping;
}

Mapping mapping_of(const LinearCuts& cuts) {
  Mapping mapping;
  mapping.partition_of.assign(cuts.order.size(), 0);
  std::int32_t partition = 0;
  for (std::size_t i = 0; i < cuts.order.size(); ++i) {
    if (i == cuts.ends[static_cast<std::size_t>(partition)]) ++partition;
    mapping.partition_of[cuts.order[i]] = partition;
  }
  return mapping;
}

// Joins neighbouring partitions where that costs nothing: of equally fast mappings the plainest.
Mapping joined(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules,
               std::span<const TileCurve> curves, Mapping mapping) {
  double time_s = evaluate_mapping(work, chip, mapping, rules, curves).time_s;
  const auto last = [](const Mapping& of) {
    return *std::max_element(of.partition_of.begin(), of.partition_of.end());
  };
  if (last(mapping) > kMostPartitionsToJoin) return mapping;
  for (std::int32_t p = 0; p < last(mapping);) {
    Mapping fewer = mapping;
    for (std::int32_t& partition : fewer.partition_of) {
      if (partition > p) --partition;
    }
    const MappingCost cost = evaluate_mapping(work, chip, fewer, rules, curves);
    if (cost.violation || cost.time_s > time_s * (1 + 1e-12)) {
      ++p;
      continue;
    }
    time_s = cost.time_s;
    mapping = std::move(fewer);
  }
  return mapping;
}

}  // namespace

double work_bound_s(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules) {
  constexpr double kCaution = 1 - 1e-12;  // Sums were rounded.
  double flops = 0, network_s = 0, traffic_bytes = 0;
  for (const ChipKernel& kernel : work.kernels) {
    flops += kernel.flops;
    network_s += kernel.network_s;
    traffic_bytes += kernel.dram_bytes + (rules.weight_traffic ? kernel.weight_bytes : 0);
  }
  for (const ChipTensor& tensor : work.tensors) network_s += tensor.network_s;
  const double rate = rules.compute_fraction * peak_flops_per_s(chip);
  const double bytes_per_s = std::max(chip.dram_bytes_per_s, chip.spill_bytes_per_s);
  return kCaution *
         partition_time_s(flops / rate, traffic_bytes / bytes_per_s, network_s, rules.overlap);
}

MappingOutcome map_kernels(const ChipWork& work, const DataflowChip& chip,
                           const MappingRules& rules, const MapperBudget& most,
                           std::span<const TileCurve> known) {
  MapperBudget budget = most;
  assert(!work.kernels.empty());
  const MapperTables tables(work, chip, rules, known);
  const std::span<const TileCurve> curves = tables.curves;
  MappingOutcome outcome;
  double compute_s = 0, network_s = 0, traffic = 0;
  for (const MapperTables::Kernel& kernel : tables.kernels) {
    compute_s += kernel.compute_s;
    network_s += kernel.network_s;
    traffic += kernel.traffic_bytes;
  }
  double bound_s = remaining_bound_s(tables, compute_s, network_s, traffic, 0);
  if (bound_s >= budget.target_s) {
    outcome.status = MappingStatus::exhausted;
    outcome.lower_bound_s = bound_s;
    return outcome;
  }
  // Enough to leave the search little to do; it takes over soon.
  const auto count = static_cast<std::int64_t>(tables.kernels.size());
  const std::int64_t first_runs =
      std::min(budget.partitions / 100, budget.first_orders * count * count);
  LinearCuts cuts = find_cuts(tables, first_runs, bound_s / kCloseEnough, outcome.partitions);
  if (cuts.time_s == PartitionSums::kImpossible) {
    budget.partitions = std::min(budget.partitions, budget.unfit_partitions);
  }
  bool complete = cuts.time_s * kCloseEnough <= bound_s;
  outcome.lower_bound_s = bound_s;
  double known_s = std::min(cuts.time_s, budget.target_s);
  const auto search = [&](const std::vector<double>& floors, const MapperBudget& limits) {
    DownsetSearch downsets(tables, limits, floors, known_s);
    complete = downsets.run();
    outcome.partitions += downsets.looked_at();
    outcome.downsets += downsets.kept();
    if (!complete) {
      outcome.lower_bound_s = std::max(outcome.lower_bound_s, downsets.lower_bound_s());
    }
    const std::vector<Bitset> partitions = downsets.partitions();
    if (partitions.empty()) return;
    outcome.mapping = mapping_of(partitions, tables.kernels.size());
    known_s = evaluate_mapping(work, chip, outcome.mapping, rules, curves).time_s;
  };
  if (!complete && tables.kernels.size() <= kMostKernelsToSearch) {
    const bool worth_floors = budget.partitions >= kWorthFloors;
    MapperBudget first = budget;
    if (worth_floors) {
      first.partitions /= 20;
      first.downsets /= 10;
    }
    std::vector<double> floors(tables.kernels.size(), 0);
    search(floors, first);
    if (!complete && worth_floors) {
      TrafficFloors found = traffic_floors(tables);
      if (!found.bytes.empty()) {
        floors = std::move(found.bytes);
        const double floor = std::accumulate(floors.begin(), floors.end(), 0.0);
        bound_s =
            std::max(bound_s, remaining_bound_s(tables, compute_s, network_s, traffic, floor));
        outcome.lower_bound_s = std::max(outcome.lower_bound_s, bound_s);
      }
      if (found.order.empty() && !cuts.ends.empty()) {
        found.order = anneal_partitions(tables, cuts.order, cuts.ends);
      }
      if (!found.order.empty()) {
        const LinearCuts better =
            find_cuts(tables, first_runs, bound_s / kCloseEnough, outcome.partitions, found.order);
        if (better.time_s < cuts.time_s) cuts = better;
        known_s = std::min(known_s, cuts.time_s);
      }
      search(floors, budget);
    }
  }
  if (!complete) {
    const LinearCuts further =
        find_cuts(tables, budget.partitions / 2, outcome.lower_bound_s / kCloseEnough,
                  outcome.partitions, cuts.order);
    if (further.time_s < cuts.time_s) cuts = further;
  }
  if (cuts.time_s < std::min(PartitionSums::kImpossible, budget.target_s)) {
    const Mapping linear = mapping_of(cuts);
    if (outcome.mapping.partition_of.empty() ||
        evaluate_mapping(work, chip, linear, rules, curves).time_s <
            evaluate_mapping(work, chip, outcome.mapping, rules, curves).time_s) {
      outcome.mapping = linear;
    }
  }
  if (outcome.mapping.partition_of.empty()) {
    const bool all_looked_for = budget.target_s == kInfinity;
    if (complete && !all_looked_for) outcome.lower_bound_s = budget.target_s * kCloseEnough;
    outcome.status =
        complete && all_looked_for ? MappingStatus::infeasible : MappingStatus::exhausted;
    return outcome;
  }
  outcome.mapping = joined(work, chip, rules, curves, std::move(outcome.mapping));
  outcome.cost = evaluate_mapping(work, chip, outcome.mapping, rules, curves);
  assert(!outcome.cost.violation);
  outcome.status = complete ? MappingStatus::optimal : MappingStatus::feasible;
  if (complete || outcome.lower_bound_s > outcome.cost.time_s) {
    outcome.lower_bound_s = outcome.cost.time_s;
  }
  return outcome;
}

}  // namespace braid
