#include "braid/dataflow/joint_sharding.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "braid/base/rounding.h"
#include "braid/chip/elimination.h"
#include "braid/chip/partition_time.h"
#include "braid/dataflow/sharding_tables.h"

namespace braid {
namespace {

constexpr std::size_t kMostTableEntries = std::size_t{1} << 16;
constexpr std::size_t kUndecided = ~std::size_t{0};
/// Of the budget: all boxes' share, and one mapping's for a box.
constexpr std::int64_t kBoxesShare = 4, kBoxShare = 100;
/// A sharding that is this near to the best with another's mapping is mapped itself.
constexpr double kMappedWithin = 1.02;
/// Weight of what hides behind something else, when a sharding is chosen for a mapping or a box.
constexpr double kHidden = 0.05;
constexpr double kHiddenCompute = 0.3;

using Choice = std::vector<std::size_t>;

bool is_mapped(const MappingOutcome& outcome) { return !outcome.mapping.partition_of.empty(); }

/// How often each kernel's output goes to or comes from main memory with a mapping.
std::vector<double> crossings_of(const ChipWork& work, const Mapping& mapping, bool share) {
  std::vector<std::set<std::int32_t>> readers(work.kernels.size());
  std::vector<double> crossings(work.kernels.size(), 0);
  for (const ChipTensor& tensor : work.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const std::int32_t to = mapping.partition_of[static_cast<std::size_t>(tensor.to)];
    if (mapping.partition_of[from] == to) continue;
    if (!share) {
      crossings[from] += 2;
    } else if (readers[from].insert(to).second) {
      crossings[from] += readers[from].size() == 1 ? 2 : 1;
    }
  }
  return crossings;
}

/// What an option's costs weigh, besides messages.
struct Weights {
  double compute = 0;
  double traffic = 0;
  std::vector<double> crossings;  ///< Of each kernel's output; empty: none.
};

class JointSearch {
 public:
  JointSearch(const DataflowSetup& setup, const DataflowPlanRules& rules, double target_s)
      : setup_(setup),
        rules_(rules),
        tables_(setup, rules.job, rules.mapping),
        bytes_per_s_(std::max(setup.chip.dram_bytes_per_s, setup.chip.spill_bytes_per_s)),
        known_s_(target_s),
        box_budget_(rules.budget),
        work_left_(rules.budget.partitions / kBoxesShare) {
    box_budget_.partitions = std::max<std::int64_t>(rules.budget.partitions / kBoxShare, 1);
    box_budget_.first_orders = 0;
    // What options add to every mapping's time for certain.
    if (rules.mapping.overlap == PartitionOverlap::none) {
      certain_.compute = rules.mapping.whole_tiles && !rules.kernel_by_kernel ? 0 : 1;
      certain_.traffic = 1;
      if (rules.kernel_by_kernel) {
        ShardingBox all = whole_box();
        const ChipWork work = box_work(tables_, all, setup, rules.job, rules.mapping).work;
        certain_.crossings =
            crossings_of(work, kernel_by_kernel(work), rules.mapping.share_tensors);
      }
    }
  }

  /// Improves on `best`, the fastest of the shardings that were mapped.
  void run(ShardedMapping& best) {
    best_ = &best;
    if (is_mapped(best.outcome)) known_s_ = std::min(known_s_, best.outcome.cost.time_s);
    std::priority_queue<Box, std::vector<Box>, IsLater> open;
    double least_left_s = kInfinity;
    Box root;
    root.allowed = whole_box();
    if (bound(root)) open.push(std::move(root));
    while (!open.empty()) {
      Box box = open.top();
      open.pop();
      if (is_too_slow(box.bound_s)) break;
      if (work_left_ <= 0 || box.branch == kUndecided) {
        least_left_s = std::min(least_left_s, box.bound_s);
        if (work_left_ <= 0) break;
        continue;
      }
      const std::uint64_t options = box.allowed[box.branch];
      for (const std::uint64_t part : {options & box.keep, options & ~box.keep}) {
        Box half = box;
        half.allowed[box.branch] = part;
        half.number = ++numbers_;
        if (bound(half)) open.push(std::move(half));
      }
    }
    finish(std::min(least_left_s, known_s_));
  }

 private:
  struct Box {
    ShardingBox allowed;
    double bound_s = 0;
    double mapped_s = 0;  ///< Of the bound, what the mapping takes.
    Mapping mapping;      ///< Best, or best found, for box_work().
    std::size_t branch = kUndecided;
    std::uint64_t keep = 0;  ///< Options of `branch` that go to one half.
    std::int64_t number = 0;
  };
  struct IsLater {
    bool operator()(const Box& a, const Box& b) const {
      return a.bound_s != b.bound_s ? a.bound_s > b.bound_s : a.number < b.number;
    }
  };

  ShardingBox whole_box() const {
    ShardingBox box;
    box.reserve(tables_.options.size());
    for (const auto& options : tables_.options) {
      box.push_back(~std::uint64_t{0} >> (64 - options.size()));
    }
    return box;
  }

  bool is_too_slow(double time_s) const { return is_proven(time_s, known_s_); }
  bool is_additive() const { return rules_.mapping.overlap != PartitionOverlap::all; }

  /// Calls `visit` for each option that a box leaves a kernel.
  template <typename Visit>
  void for_options(const ShardingBox& box, std::size_t kernel, const Visit& visit) const {
    for (std::uint64_t left = box[kernel]; left != 0; left &= left - 1) {
      visit(static_cast<std::size_t>(std::countr_zero(left)));
    }
  }

  double traffic_bytes(const ShardingTables::Option& option) const {
    const ChipKernel& kernel = option.share.kernel;
    return kernel.dram_bytes + (rules_.mapping.weight_traffic ? kernel.weight_bytes : 0);
  }

  // Messages, and what each option has more than the least of its box, weighed.
  PairwiseProblem problem_of(const ShardingBox& box, const Weights& weights) const {
    PairwiseProblem problem;
    problem.costs.resize(box.size());
    for (std::size_t i = 0; i < box.size(); ++i) {
      const double crossings = weights.crossings.empty() ? 0 : weights.crossings[i];
      double compute_s = kInfinity, traffic = kInfinity, bytes = kInfinity;
      for_options(box, i, [&](std::size_t o) {
        const ShardingTables::Option& option = tables_.options[i][o];
        compute_s = std::min(compute_s, option.alone_s);
        traffic = std::min(traffic, traffic_bytes(option));
        bytes = std::min(bytes, option.share.output.bytes);
      });
      for_options(box, i, [&](std::size_t o) {
        const ShardingTables::Option& option = tables_.options[i][o];
        const double moved = weights.traffic * (traffic_bytes(option) - traffic) +
                             crossings * (option.share.output.bytes - bytes);
        problem.costs[i].push_back({option.share.kernel.network_s +
                                        weights.compute * (option.alone_s - compute_s) +
                                        moved / bytes_per_s_,
                                    0, 0});
      });
    }
    problem.pairs.reserve(tables_.tensors.size());
    for (const ShardingTables::Tensor& tensor : tables_.tensors) {
      PairwiseProblem::Pair pair{tensor.from, tensor.to, {}};
      pair.costs.reserve(tensor.changes.size());
      for_options(box, tensor.from, [&](std::size_t out) {
        for_options(box, tensor.to, [&](std::size_t in) {
          pair.costs.push_back({tables_.change(tensor, out, in).seconds, 0, 0});
        });
      });
      problem.pairs.push_back(std::move(pair));
    }
    return problem;
  }

  Choice choice_of(const ShardingBox& box, const std::vector<std::size_t>& values) const {
    Choice choice;
    choice.reserve(box.size());
    for (std::size_t i = 0; i < box.size(); ++i) {
      std::uint64_t left = box[i];
      for (std::size_t v = 0; v < values[i]; ++v) left &= left - 1;
      choice.push_back(static_cast<std::size_t>(std::countr_zero(left)));
    }
    return choice;
  }

  /// A sharding as it is mapped.
  struct MappedSharding {
    Sharding dims;
    ChipWork work;
    std::vector<TileCurve> curves;
  };
  MappedSharding sharding_of(const Choice& choice) const {
    MappedSharding sharding;
    sharding.dims.reserve(choice.size());
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const ShardingTables::Option& option = tables_.options[i][choice[i]];
      sharding.dims.push_back(option.dims);
      if (!rules_.mapping.whole_tiles) continue;
      sharding.curves.push_back(tables_.curves[option.curve]);
    }
    sharding.work = chip_work(setup_, sharding.dims, rules_.job);
    return sharding;
  }

  MappingOutcome map(const ChipWork& work, std::span<const TileCurve> curves, double target_s) {
    MapperBudget budget = box_budget_;
    budget.target_s = target_s;
    MappingOutcome outcome = map_work(work, setup_.chip, rules_, budget, curves);
    work_left_ -= outcome.partitions;
    looked_at_ += outcome.partitions;
    downsets_ += outcome.downsets;
    return outcome;
  }

  void try_sharding(const Choice& choice, MappedSharding sharding) {
    if (!tried_.insert(choice).second) return;
    MappingOutcome outcome = map(sharding.work, sharding.curves, known_s_);
    if (!is_mapped(outcome) || outcome.cost.time_s >= known_s_) return;
    known_s_ = outcome.cost.time_s;
    best_->dims = std::move(sharding.dims);
    best_->work = std::move(sharding.work);
    best_->outcome = std::move(outcome);
  }

  // The bound of a box that has its parent's; false when nothing in it beats the best known.
  bool bound(Box& box) {
    ++boxes_;
    const auto count = static_cast<std::int64_t>(box.allowed.size());
    work_left_ -= count * count * count / 64 + 1;
    BoxWork least = box_work(tables_, box.allowed, setup_, rules_.job, rules_.mapping);
    const PairwiseProblem problem = problem_of(box.allowed, certain_);
    const auto values = minimise(problem, kMostTableEntries);
    const double messages_s = values ? cost_of(problem, *values)[0] / kAboveRounding : 0;
    box.bound_s = std::max(box.bound_s, messages_s);
    if (is_too_slow(box.bound_s)) return false;
    const double added_s = is_additive() ? messages_s : 0;
    if (is_additive()) {
      for (ChipKernel& kernel : least.work.kernels) kernel.network_s = 0;
    }
    if (!find_mapping(box, least, known_s_ - added_s)) return false;
    box.bound_s = std::max(box.bound_s, box.mapped_s + added_s);
    if (is_too_slow(box.bound_s)) return false;
    choose_branch(box, least);
    return !is_too_slow(box.bound_s);
  }

  // The best mapping of a box's least work and its time, at least; false when it takes `target_s`.
  bool find_mapping(Box& box, const BoxWork& least, double target_s) {
    double before_s = kInfinity;  // Of the parent's mapping.
    if (!box.mapping.partition_of.empty()) {
      const MappingCost cost =
          evaluate_mapping(least.work, setup_.chip, box.mapping, rules_.mapping, least.curves);
      if (!cost.violation) before_s = cost.time_s;
      if (before_s <= box.mapped_s * kAboveRounding) return before_s < target_s;
    }
    MappingOutcome outcome = map(least.work, least.curves, std::min(target_s, before_s));
    if (rules_.kernel_by_kernel && is_mapped(outcome)) outcome.lower_bound_s = outcome.cost.time_s;
    if (!is_mapped(outcome) && outcome.status == MappingStatus::infeasible) return false;
    box.mapped_s = std::max(box.mapped_s, outcome.lower_bound_s);
    if (is_mapped(outcome)) {
      box.mapping = std::move(outcome.mapping);
    } else if (before_s == kInfinity) {
      box.mapping = {};
    }
    return true;
  }

  // Tries a sharding that suits the box's mapping, and finds where it misses the box's bound most.
  void choose_branch(Box& box, const BoxWork& least) {
    Choice choice(box.allowed.size());
    std::vector<double> misses(choice.size(), 0);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      choice[i] = static_cast<std::size_t>(std::countr_zero(box.allowed[i]));
    }
    if (!box.mapping.partition_of.empty()) {
      Weights weights{rules_.mapping.overlap == PartitionOverlap::none ? 1 : kHiddenCompute, 1,
                      crossings_of(least.work, box.mapping, rules_.mapping.share_tensors)};
      const PairwiseProblem priced = problem_of(box.allowed, weights);
      auto values = minimise(priced, kMostTableEntries);
      if (!values) values = descend(priced);
      choice = choice_of(box.allowed, *values);
      MappedSharding sharding = sharding_of(choice);
      const MappingCost cost = evaluate_mapping(sharding.work, setup_.chip, box.mapping,
                                                rules_.mapping, sharding.curves);
      misses = misses_of(box, least, choice, weights.crossings, cost);
      if (!cost.violation && cost.time_s < known_s_ * kMappedWithin) {
        try_sharding(choice, std::move(sharding));
      }
    }
    box.branch = kUndecided;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (std::popcount(box.allowed[i]) < 2) continue;
      if (box.branch == kUndecided || misses[i] > misses[box.branch]) box.branch = i;
    }
    if (box.branch == kUndecided) {
      try_sharding(choice, sharding_of(choice));
    } else {
      box.keep = std::uint64_t{1} << choice[box.branch];
    }
  }

  // Seconds, about, that each kernel's choice adds to the least of its box.
  std::vector<double> misses_of(const Box& box, const BoxWork& least, const Choice& choice,
                                const std::vector<double>& crossings,
                                const MappingCost& cost) const {
    const PartitionOverlap overlap = rules_.mapping.overlap;
    const auto weight = [&](std::size_t kernel, PartitionBound what) {
      if (overlap == PartitionOverlap::none || cost.violation) return 1.0;
      const auto p = static_cast<std::size_t>(box.mapping.partition_of[kernel]);
      return cost.partitions[p].bound == what ? 1.0 : kHidden;
    };
    std::vector<double> misses(choice.size(), 0), read_s(choice.size(), 0);
    for (const ShardingTables::Tensor& tensor : tables_.tensors) {
      read_s[tensor.to] += tables_.change(tensor, choice[tensor.from], choice[tensor.to]).seconds;
    }
    std::vector<double> sent_s(choice.size(), 0);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const ShardingTables::Option& option = tables_.options[i][choice[i]];
      double compute_s = option.alone_s;
      for_options(box.allowed, i, [&](std::size_t o) {
        compute_s = std::min(compute_s, tables_.options[i][o].alone_s);
      });
      double least_bytes = option.share.output.bytes;
      for_options(box.allowed, i, [&](std::size_t o) {
        least_bytes = std::min(least_bytes, tables_.options[i][o].share.output.bytes);
      });
      // Larger tensors take room even where they do not move.
      constexpr double kRoom = 0.2;
      misses[i] += weight(i, PartitionBound::compute) * (option.alone_s - compute_s) +
                   weight(i, PartitionBound::memory) * std::max(kRoom, crossings[i]) *
                       (option.share.output.bytes - least_bytes) / bytes_per_s_;
      if (is_additive()) continue;
      sent_s[i] = weight(i, PartitionBound::network) *
                  std::max(0.0, option.share.kernel.network_s + read_s[i] -
                                    least.work.kernels[i].network_s);
      misses[i] += sent_s[i];
    }
    // It may be the writer that has to be decided for the reader's messages to be known.
    constexpr double kWriter = 0.9;
    for (const ShardingTables::Tensor& tensor : tables_.tensors) {
      misses[tensor.from] += kWriter * sent_s[tensor.to];
    }
    return misses;
  }

  void finish(double bound_s) {
    MappingOutcome& outcome = best_->outcome;
    best_->boxes = boxes_;
    outcome.partitions += looked_at_;
    outcome.downsets += downsets_;
    if (is_mapped(outcome)) {
      outcome.lower_bound_s = std::min(bound_s, outcome.cost.time_s);
      const bool proven = is_proven(bound_s, outcome.cost.time_s);
      outcome.status = proven ? MappingStatus::optimal : MappingStatus::feasible;
      if (proven) outcome.lower_bound_s = outcome.cost.time_s;
    } else {
      outcome.status = bound_s == kInfinity ? MappingStatus::infeasible : MappingStatus::exhausted;
    }
  }

  const DataflowSetup& setup_;
  const DataflowPlanRules& rules_;
  ShardingTables tables_;
  double bytes_per_s_;
  double known_s_;  ///< Nothing that takes this long is looked for.
  MapperBudget box_budget_;
  std::int64_t work_left_;
  Weights certain_;
  ShardedMapping* best_ = nullptr;
  std::set<Choice> tried_;
  std::int64_t boxes_ = 0, numbers_ = 0, looked_at_ = 0, downsets_ = 0;
};

}  // namespace

MappingOutcome map_work(const ChipWork& work, const DataflowChip& chip,
                        const DataflowPlanRules& rules, const MapperBudget& budget,
                        std::span<const TileCurve> curves) {
  if (!rules.kernel_by_kernel) return map_kernels(work, chip, rules.mapping, budget, curves);
  MappingOutcome outcome;
  const Mapping mapping = kernel_by_kernel(work);
  outcome.cost = evaluate_mapping(work, chip, mapping, rules.mapping, curves);
  outcome.partitions = static_cast<std::int64_t>(work.kernels.size());
  if (outcome.cost.violation) return outcome;
  if (outcome.cost.time_s >= budget.target_s) {
    outcome.status = MappingStatus::exhausted;
    outcome.lower_bound_s = outcome.cost.time_s;
  } else {
    outcome.status = MappingStatus::feasible;
    outcome.mapping = mapping;
  }
  return outcome;
}

ShardedMapping divide_and_map(const DataflowSetup& setup, const DataflowPlanRules& rules,
                              std::span<const Sharding> first, double target_s) {
  assert(!first.empty());
  ShardedMapping best;
  const bool joint = rules.job.joint_sharding && setup.job.workload == DataflowWorkload::layers &&
                     !shard_axes(setup.fabric).empty();
  std::int64_t partitions = 0, downsets = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    ShardedMapping mapped;
    mapped.dims = first[i];
    mapped.work = chip_work(setup, first[i], rules.job);
    MapperBudget budget = rules.budget;
    budget.target_s = target_s;
    mapped.outcome = map_work(mapped.work, setup.chip, rules, budget, {});
    partitions += mapped.outcome.partitions;
    downsets += mapped.outcome.downsets;
    const bool found = is_mapped(mapped.outcome);
    if (found) target_s = mapped.outcome.cost.time_s;
    if (found || i == 0) best = std::move(mapped);
  }
  if (!joint) return best;
  best.outcome.partitions = partitions;
  best.outcome.downsets = downsets;
  JointSearch(setup, rules, target_s).run(best);
  return best;
}

double sharding_bound_s(const DataflowSetup& setup, const DataflowPlanRules& rules,
                        double messages_s) {
  const ShardingJob job{setup.graph,           setup.fabric,
                        rules.job.collectives, job_time(setup, 0, rules.job).micro_batches,
                        setup.job.tile,        shard_axes(setup.fabric)};
  double flops = 0, traffic = 0;
  for (const Kernel& kernel : setup.graph.kernels) {
    double least_flops = kInfinity, least_traffic = kInfinity, least_s = kInfinity;
    for (const KernelDims& dims : option_dims(kernel, rules.job.grid_sharding, job.axes.size())) {
      const KernelShare share = kernel_share(job, kernel, dims);
      const double weights = rules.mapping.weight_traffic ? share.kernel.weight_bytes : 0;
      least_flops = std::min(least_flops, share.kernel.flops);
      least_traffic = std::min(least_traffic, share.kernel.dram_bytes + weights);
      least_s = std::min(least_s, share.message_s);
    }
    flops += least_flops;
    traffic += least_traffic;
    messages_s += least_s;
  }
  const double rate = rules.mapping.compute_fraction * peak_flops_per_s(setup.chip);
  const double bytes_per_s = std::max(setup.chip.dram_bytes_per_s, setup.chip.spill_bytes_per_s);
  return partition_time_s(flops / rate, traffic / bytes_per_s, messages_s, rules.mapping.overlap) /
         kAboveRounding;
}

double least_messages_s(const DataflowSetup& setup, const JobRules& rules) {
  ShardingGoal goal;
  goal.bytes_only = false;
  goal.by_axis = rules.grid_sharding;
  const ShardingResult found = find_sharding(setup.graph, setup.fabric, rules.collectives, goal);
  return found.optimal ? found.cost : 0;
}

}  // namespace braid
