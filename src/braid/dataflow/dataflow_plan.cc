#include "braid/dataflow/dataflow_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/dataflow/joint_sharding.h"
#include "braid/dataflow/staged_plan.h"

namespace braid {
namespace {

constexpr double kAny = kInfinity;

bool is_mapped(const DataflowPlan& plan) { return !plan.outcome.mapping.partition_of.empty(); }

// The time of a micro-batch through a layer with which the job takes `job_s`.
double layer_time_s(const DataflowSetup& setup, const JobRules& rules, double job_s) {
  const double fixed_s = job_time(setup, 0, rules).time_s;
  return (job_s - fixed_s) / (job_time(setup, 1, rules).time_s - fixed_s);
}

// The best of these shardings, or of all where rules search them. A plan that takes `target_s` or
// more may be left without a mapping.
DataflowPlan plan_sharded(const DataflowSetup& setup, const DataflowPlanRules& rules,
                          const std::vector<Sharding>& shardings, double target_s) {
  if (setup.job.whole_model) return plan_stages(setup, rules, shardings);
  if (target_s < kAny) target_s = layer_time_s(setup, rules.job, target_s);
  ShardedMapping mapped = divide_and_map(setup, rules, shardings, target_s);
  DataflowPlan plan;
  plan.setup = setup;
  plan.dims = std::move(mapped.dims);
  plan.work = std::move(mapped.work);
  plan.outcome = std::move(mapped.outcome);
  plan.boxes = mapped.boxes;
  if (is_mapped(plan)) plan.time = job_time(setup, plan.outcome.cost.time_s, rules.job);
  return plan;
}

bool is_faster(const DataflowPlan& a, const DataflowPlan& b) {
  if (is_mapped(a) != is_mapped(b)) return is_mapped(a);
  return is_mapped(a) && a.time.time_s < b.time.time_s;
}

/// All ways to write `chips` as an ordered product of `count` sizes, ascending.
void factor(std::int64_t chips, std::size_t count, std::vector<std::int64_t>& sizes,
            std::vector<std::vector<std::int64_t>>& found) {
  if (count == 1) {
    sizes.push_back(chips);
    found.push_back(sizes);
    sizes.pop_back();
    return;
  }
  std::vector<std::int64_t> divisors;
  for (std::int64_t size = 1; size * size <= chips; ++size) {
    if (chips % size != 0) continue;
    divisors.push_back(size);
    if (size != chips / size) divisors.push_back(chips / size);
  }
  std::sort(divisors.begin(), divisors.end());
  for (const std::int64_t size : divisors) {
    sizes.push_back(size);
    factor(chips / size, count - 1, sizes, found);
    sizes.pop_back();
  }
}

std::vector<std::vector<std::int64_t>> shapes_of(const DataflowSetup& setup, FabricSearch what) {
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::int64_t> sizes;
  if (what == FabricSearch::shapes) {
    factor(setup.chips, setup.fabric.dimensions.size(), sizes, shapes);
    return shapes;
  }
  for (const FabricDimension& dimension : setup.fabric.dimensions) sizes.push_back(dimension.size);
  shapes.push_back(sizes);
  return shapes;
}

// Whether layers and samples divide over the roles.
bool divides(const DataflowJob& job, const Fabric& fabric) {
  if (job.workload != DataflowWorkload::layers) return true;
  const std::int64_t stages = degree_of(fabric, FabricRole::pipeline);
  const std::int64_t data = degree_of(fabric, FabricRole::data);
  return (job.whole_model || job.layers % stages == 0) && job.global_batch % data == 0 &&
         job.global_batch / data % job.micro_batch == 0;
}

/// Fabrics to try, in a fixed order.
std::vector<Fabric> candidates_of(const DataflowSetup& setup, FabricSearch what) {
  static constexpr FabricRole kRoles[] = {FabricRole::tensor, FabricRole::pipeline,
                                          FabricRole::data};
  std::vector<Fabric> candidates;
  const std::size_t dimensions = setup.fabric.dimensions.size();
  const bool layers = setup.job.workload == DataflowWorkload::layers;
  std::size_t assignments = 1;
  for (std::size_t i = 0; layers && i < dimensions; ++i) assignments *= 3;
  for (const std::vector<std::int64_t>& sizes : shapes_of(setup, what)) {
    for (std::size_t assignment = 0; assignment < assignments; ++assignment) {
      Fabric candidate = setup.fabric;
      std::size_t left = assignment;
      bool plain = true;  // A dimension of one chip has no role worth choosing.
      for (std::size_t i = 0; i < dimensions; ++i) {
        FabricDimension& dimension = candidate.dimensions[i];
        dimension.size = sizes[i];
        dimension.role = layers ? kRoles[left % 3] : FabricRole::none;
        plain = plain && (dimension.size > 1 || left % 3 == 0);
        left /= 3;
      }
      if (plain && divides(setup.job, candidate)) candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

/// What is known of the shardings of a setup.
struct Shardings {
  /// To try: with time-priced ones that of fewest bytes as well, and the one by each dimension of
  /// the network where rules allow it.
  std::vector<Sharding> first;
  double messages_s = 0;  ///< least_messages_s(), where all shardings are searched.
};

Shardings shardings_of(const DataflowSetup& setup, const JobRules& rules) {
  Shardings shardings;
  const auto add = [&](Sharding sharding) {
    std::vector<Sharding>& first = shardings.first;
    if (std::find(first.begin(), first.end(), sharding) != first.end()) return;
    first.push_back(std::move(sharding));
  };
  JobRules tried = rules;
  tried.grid_sharding = false;
  for (const bool by_time : {true, false}) {
    tried.time_sharding = by_time;
    if (!by_time || rules.time_sharding || rules.joint_sharding) add(choose_sharding(setup, tried));
  }
  if (rules.grid_sharding) add(choose_sharding(setup, rules));
  if (rules.joint_sharding && setup.job.workload == DataflowWorkload::layers) {
    shardings.messages_s = least_messages_s(setup, rules);
  }
  return shardings;
}

/// Dimensions of one role, as far as times depend on them.
using DimensionsKey = std::vector<std::tuple<FabricShape, std::int64_t, double>>;

DimensionsKey dimensions_of(const Fabric& fabric, FabricRole role) {
  DimensionsKey key;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (dimension.role == role && dimension.size > 1) {
      key.emplace_back(dimension.shape, dimension.size, dimension.bytes_per_s);
    }
  }
  return key;
}

/// What the time of a plan of layers depends on; equal for dimensions that are as good as each
/// other. A rail-only fabric's dimensions differ by their place.
using FabricKey = std::array<DimensionsKey, 3>;

FabricKey key_of(const Fabric& fabric) {
  DimensionsKey stages;
  double slowest = kAny;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (dimension.role == FabricRole::pipeline && dimension.size > 1) {
      slowest = std::min(slowest, dimension.bytes_per_s);
    }
  }
  stages.emplace_back(FabricShape::ring, degree_of(fabric, FabricRole::pipeline), slowest);
  return {dimensions_of(fabric, FabricRole::tensor), stages,
          dimensions_of(fabric, FabricRole::data)};
}

/// Shardings, kept by what they depend on: the dimensions that divide kernels.
class KnownShardings {
 public:
  const Shardings& of(const DataflowSetup& setup, const JobRules& rules) {
    if (setup.fabric.domain_size > 0) {
      latest_ = shardings_of(setup, rules);
      return latest_;
    }
    Shardings& known = known_[dimensions_of(setup.fabric, FabricRole::tensor)];
    if (known.first.empty()) known = shardings_of(setup, rules);
    return known;
  }

 private:
  std::map<DimensionsKey, Shardings> known_;
  Shardings latest_;
};

// Time of the job that no mapping of these shardings, or of any, beats.
double bound_s(const DataflowSetup& setup, const DataflowPlanRules& rules,
               const Shardings& shardings) {
  double least = kAny;
  if (rules.job.joint_sharding && setup.job.workload == DataflowWorkload::layers) {
    least = sharding_bound_s(setup, rules, shardings.messages_s);
  } else {
    for (const Sharding& dims : shardings.first) {
      const ChipWork work = chip_work(setup, dims, rules.job);
      least = std::min(least, work_bound_s(work, setup.chip, rules.mapping));
    }
  }
  // Of a whole model some stage has at least an even share.
  if (setup.job.whole_model) {
    least /= static_cast<double>(degree_of(setup.fabric, FabricRole::pipeline));
  }
  return job_time(setup, least, rules.job).time_s;
}

}  // namespace

DataflowPlanRules published_plan_rules(const DataflowSetup& setup) {
  DataflowPlanRules rules;
  rules.job = published_job_rules(setup);
  rules.mapping = setup.rules;
  rules.kernel_by_kernel = setup.kernel_by_kernel;
  return rules;
}

DataflowPlanRules default_plan_rules(const DataflowSetup& setup) {
  DataflowPlanRules rules;
  rules.job = default_job_rules();
  rules.mapping = default_mapping_rules(setup);
  rules.kernel_by_kernel = setup.kernel_by_kernel;
  return rules;
}

DataflowPlan plan_dataflow(const DataflowSetup& setup, const DataflowPlanRules& rules) {
  return plan_sharded(setup, rules, shardings_of(setup, rules.job).first, kAny);
}

DataflowSearch search_fabrics(const DataflowSetup& setup, const DataflowPlanRules& rules,
                              FabricSearch what) {
  const bool alike =
      setup.job.workload == DataflowWorkload::layers && setup.fabric.domain_size == 0;
  DataflowSearch search;
  search.best.setup = setup;
  KnownShardings shardings;
  DataflowSetup candidate = setup;
  std::set<FabricKey> seen;
  std::vector<std::pair<double, Fabric>> fabrics;
  for (Fabric& fabric : candidates_of(setup, what)) {
    if (alike && !seen.insert(key_of(fabric)).second) {
      ++search.skipped;
      continue;
    }
    candidate.fabric = std::move(fabric);
    const double bound = bound_s(candidate, rules, shardings.of(candidate, rules.job));
    fabrics.emplace_back(bound, candidate.fabric);
  }
  std::stable_sort(fabrics.begin(), fabrics.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [bound, fabric] : fabrics) {
    const double best_s = is_mapped(search.best) ? search.best.time.time_s : kAny;
    if (is_proven(bound, best_s)) {
      ++search.skipped;
      continue;
    }
    ++search.tried;
    candidate.fabric = fabric;
    DataflowPlan plan =
        plan_sharded(candidate, rules, shardings.of(candidate, rules.job).first, best_s);
    if (is_faster(plan, search.best)) search.best = std::move(plan);
  }
  return search;
}

}  // namespace braid
