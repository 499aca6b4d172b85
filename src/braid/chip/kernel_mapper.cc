#include "braid/chip/kernel_mapper.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/chip/downset_search.h"
#include "braid/chip/linear_cuts.h"
#include "braid/chip/partition_annealing.h"
#include "braid/chip/partition_sums.h"
#include "braid/chip/partition_time.h"
#include "braid/chip/traffic_floor.h"

namespace braid {
namespace {

constexpr std::size_t kMostKernelsToSearch = 4096;
constexpr std::int64_t kFloorsFrom = 1'000'000;  ///< Partitions in the budget.
constexpr std::int32_t kMostPartitionsToJoin = 200;

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
    if (cost.violation || cost.time_s > time_s * kAboveRounding) {
      ++p;
      continue;
    }
    time_s = cost.time_s;
    mapping = std::move(fewer);
  }
  return mapping;
}

/// One call of map_kernels().
class KernelMapper {
 public:
  KernelMapper(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules,
               const MapperBudget& budget, std::span<const TileCurve> known)
      : work_(work),
        chip_(chip),
        rules_(rules),
        budget_(budget),
        tables_(work, chip, rules, known) {
    for (const MapperTables::Kernel& kernel : tables_.kernels) {
      compute_s_ += kernel.compute_s;
      network_s_ += kernel.network_s;
      traffic_bytes_ += kernel.traffic_bytes;
    }
    bound_s_ = bound_s(0);
    outcome_.lower_bound_s = bound_s_;
    // Enough to leave the search little to do; it takes over soon.
    const auto count = static_cast<std::int64_t>(tables_.kernels.size());
    first_runs_ = std::min(budget.partitions / 100, budget.first_orders * count * count);
  }

  MappingOutcome run() {
    if (bound_s_ >= budget_.target_s) {
      outcome_.status = MappingStatus::exhausted;
      return std::move(outcome_);
    }
    cuts_ = find_cuts(tables_, first_runs_, bound_s_ / kBelowTolerance, outcome_.partitions);
    if (cuts_.time_s == PartitionSums::kImpossible) {
      budget_.partitions = std::min(budget_.partitions, budget_.unfit_partitions);
    }
    complete_ = cuts_.time_s * kBelowTolerance <= bound_s_;
    known_s_ = std::min(cuts_.time_s, budget_.target_s);
    if (!complete_ && tables_.kernels.size() <= kMostKernelsToSearch) search_downsets();
    if (!complete_) {
      keep_faster(find_cuts(tables_, budget_.partitions / 2,
                            outcome_.lower_bound_s / kBelowTolerance, outcome_.partitions,
                            cuts_.order));
    }
    take_cuts();
    if (outcome_.mapping.partition_of.empty()) {
      set_nothing_found();
    } else {
      set_cost();
    }
    return std::move(outcome_);
  }

 private:
  /// No mapping that moves `floor_bytes` of tensors through DRAM takes less.
  double bound_s(double floor_bytes) const {
    return remaining_bound_s(tables_, compute_s_, network_s_, traffic_bytes_, floor_bytes);
  }

  double time_s(const Mapping& mapping) const {
    return evaluate_mapping(work_, chip_, mapping, rules_, tables_.curves).time_s;
  }

  void keep_faster(LinearCuts cuts) {
    if (cuts.time_s < cuts_.time_s) cuts_ = std::move(cuts);
  }

  void search(const std::vector<double>& floors, const MapperBudget& limits) {
    DownsetSearch downsets(tables_, limits, floors, known_s_);
    complete_ = downsets.run();
    outcome_.partitions += downsets.looked_at();
    outcome_.downsets += downsets.kept();
    if (!complete_) {
      outcome_.lower_bound_s = std::max(outcome_.lower_bound_s, downsets.lower_bound_s());
    }
    const std::vector<Bitset> partitions = downsets.partitions();
    if (partitions.empty()) return;
    outcome_.mapping = mapping_of(partitions, tables_.kernels.size());
    known_s_ = time_s(outcome_.mapping);
  }

  /// Once with a part of the budget where it is large, then with what SRAM forces through DRAM.
  void search_downsets() {
    const bool worth_floors = budget_.partitions >= kFloorsFrom;
    MapperBudget first = budget_;
    if (worth_floors) {
      first.partitions /= 20;
      first.downsets /= 10;
    }
    std::vector<double> floors(tables_.kernels.size(), 0);
    search(floors, first);
    if (complete_ || !worth_floors) return;
    TrafficFloors found = traffic_floors(tables_);
    if (!found.bytes.empty()) {
      floors = std::move(found.bytes);
      bound_s_ = std::max(bound_s_, bound_s(std::accumulate(floors.begin(), floors.end(), 0.0)));
      outcome_.lower_bound_s = std::max(outcome_.lower_bound_s, bound_s_);
    }
    if (found.order.empty() && !cuts_.ends.empty()) {
      found.order = anneal_partitions(tables_, cuts_.order, cuts_.ends);
    }
    if (!found.order.empty()) {
      keep_faster(find_cuts(tables_, first_runs_, bound_s_ / kBelowTolerance, outcome_.partitions,
                            found.order));
      known_s_ = std::min(known_s_, cuts_.time_s);
    }
    search(floors, budget_);
  }

  /// The cuts of a linear order, where these are the fastest mapping.
  void take_cuts() {
    if (!(cuts_.time_s < std::min(PartitionSums::kImpossible, budget_.target_s))) return;
    Mapping linear = mapping_of(cuts_);
    if (outcome_.mapping.partition_of.empty() || time_s(linear) < time_s(outcome_.mapping)) {
      outcome_.mapping = std::move(linear);
    }
  }

  void set_nothing_found() {
    const bool all_looked_for = budget_.target_s == kInfinity;
    if (complete_ && !all_looked_for) outcome_.lower_bound_s = budget_.target_s * kBelowTolerance;
    outcome_.status =
        complete_ && all_looked_for ? MappingStatus::infeasible : MappingStatus::exhausted;
  }

  void set_cost() {
    outcome_.mapping = joined(work_, chip_, rules_, tables_.curves, std::move(outcome_.mapping));
    outcome_.cost = evaluate_mapping(work_, chip_, outcome_.mapping, rules_, tables_.curves);
    assert(!outcome_.cost.violation);
    outcome_.status = complete_ ? MappingStatus::optimal : MappingStatus::feasible;
    if (complete_ || outcome_.lower_bound_s > outcome_.cost.time_s) {
      outcome_.lower_bound_s = outcome_.cost.time_s;
    }
  }

  const ChipWork& work_;
  const DataflowChip& chip_;
  const MappingRules& rules_;
  MapperBudget budget_;
  const MapperTables tables_;
  double compute_s_ = 0, network_s_ = 0, traffic_bytes_ = 0;
  std::int64_t first_runs_ = 0;
  double bound_s_ = 0;  ///< Known before any search.
  double known_s_ = 0;  ///< Only faster mappings are looked for.
  bool complete_ = false;
  LinearCuts cuts_;
  MappingOutcome outcome_;
};

}  // namespace

double work_bound_s(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules) {
  double flops = 0, network_s = 0, traffic_bytes = 0;
  for (const ChipKernel& kernel : work.kernels) {
    flops += kernel.flops;
    network_s += kernel.network_s;
    traffic_bytes += kernel.dram_bytes + (rules.weight_traffic ? kernel.weight_bytes : 0);
  }
  for (const ChipTensor& tensor : work.tensors) network_s += tensor.network_s;
  const double rate = rules.compute_fraction * peak_flops_per_s(chip);
  const double bytes_per_s = std::max(chip.dram_bytes_per_s, chip.spill_bytes_per_s);
  return kBelowRounding *
         partition_time_s(flops / rate, traffic_bytes / bytes_per_s, network_s, rules.overlap);
}

MappingOutcome map_kernels(const ChipWork& work, const DataflowChip& chip,
                           const MappingRules& rules, const MapperBudget& budget,
                           std::span<const TileCurve> curves) {
  assert(!work.kernels.empty());
  return KernelMapper(work, chip, rules, budget, curves).run();
}

}  // namespace braid
