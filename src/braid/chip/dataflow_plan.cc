#include "braid/chip/dataflow_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace braid {
namespace {

bool is_mapped(const DataflowPlan& plan) { return !plan.outcome.mapping.partition_of.empty(); }

DataflowPlan plan_with(const DataflowSetup& setup, const DataflowPlanRules& rules,
                       const Sharding& dims) {
  DataflowPlan plan;
  plan.setup = setup;
  plan.dims = dims;
  plan.work = chip_work(setup, dims, rules.job);
  if (rules.kernel_by_kernel) {
    plan.outcome.cost =
        evaluate_mapping(plan.work, setup.chip, kernel_by_kernel(plan.work), rules.mapping);
    plan.outcome.partitions = static_cast<std::int64_t>(plan.work.kernels.size());
    if (!plan.outcome.cost.violation) {
      plan.outcome.status = MappingStatus::feasible;
      plan.outcome.mapping = kernel_by_kernel(plan.work);
    }
  } else {
    plan.outcome = map_kernels(plan.work, setup.chip, rules.mapping, rules.budget);
  }
  if (is_mapped(plan)) plan.time = job_time(setup, plan.outcome.cost.time_s, rules.job);
  return plan;
}

bool is_faster(const DataflowPlan& a, const DataflowPlan& b) {
  if (is_mapped(a) != is_mapped(b)) return is_mapped(a);
  return is_mapped(a) && a.time.time_s < b.time.time_s;
}

/// All ways to write `chips` as an ordered product of `count` sizes.
void factor(std::int64_t chips, std::size_t count, std::vector<std::int64_t>& sizes,
            std::vector<std::vector<std::int64_t>>& found) {
  if (count == 1) {
    sizes.push_back(chips);
    found.push_back(sizes);
    sizes.pop_back();
    return;
  }
  for (std::int64_t size = 1; size <= chips; ++size) {
    if (chips % size != 0) continue;
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
bool divides(const DataflowSetup& setup) {
  const std::int64_t stages = degree_of(setup.fabric, FabricRole::pipeline);
  const std::int64_t data = degree_of(setup.fabric, FabricRole::data);
  return setup.job.layers % stages == 0 && setup.job.global_batch % data == 0 &&
         setup.job.global_batch / data % setup.job.micro_batch == 0;
}

std::vector<DataflowSetup> candidates_of(const DataflowSetup& setup, FabricSearch what) {
  static constexpr FabricRole kRoles[] = {FabricRole::tensor, FabricRole::pipeline,
                                          FabricRole::data};
  std::vector<DataflowSetup> candidates;
  const std::size_t dimensions = setup.fabric.dimensions.size();
  std::size_t assignments = 1;
  for (std::size_t i = 0; i < dimensions; ++i) assignments *= 3;
  for (const std::vector<std::int64_t>& sizes : shapes_of(setup, what)) {
    for (std::size_t assignment = 0; assignment < assignments; ++assignment) {
      DataflowSetup candidate = setup;
      std::size_t left = assignment;
      bool plain = true;  // A dimension of one chip has no role worth choosing.
      for (std::size_t i = 0; i < dimensions; ++i) {
        FabricDimension& dimension = candidate.fabric.dimensions[i];
        dimension.size = sizes[i];
        dimension.role = kRoles[left % 3];
        plain = plain && (dimension.size > 1 || left % 3 == 0);
        left /= 3;
      }
      if (plain && divides(candidate)) candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

// Time that no division and mapping beats: all operations spread evenly over the tensor-parallel
// chips.
double bound_s(const DataflowSetup& setup, const DataflowPlanRules& rules) {
  double products = 0;
  for (const Kernel& kernel : setup.graph.kernels) {
    if (kernel.matrix) products += kernel_flops(kernel);
  }
  const double rate = peak_flops_per_s(setup.chip) * rules.mapping.compute_fraction;
  const auto chips = static_cast<double>(degree_of(setup.fabric, FabricRole::tensor));
  return job_time(setup, products / (rate * chips) * (1 - 1e-12), rules.job).time_s;
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
  DataflowPlan plan = plan_with(setup, rules, choose_sharding(setup, rules.job));
  if (!rules.job.time_sharding) return plan;
  JobRules by_bytes = rules.job;
  by_bytes.time_sharding = false;
  const Sharding other = choose_sharding(setup, by_bytes);
  if (other == plan.dims) return plan;
  DataflowPlan second = plan_with(setup, rules, other);
  return is_faster(second, plan) ? second : plan;
}

DataflowSearch search_fabrics(const DataflowSetup& setup, const DataflowPlanRules& rules,
                              FabricSearch what) {
  std::vector<std::pair<double, DataflowSetup>> candidates;
  for (DataflowSetup& candidate : candidates_of(setup, what)) {
    const double bound = bound_s(candidate, rules);
    candidates.emplace_back(bound, std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  DataflowSearch search;
  search.best.setup = setup;
  for (const auto& [bound, candidate] : candidates) {
    if (is_mapped(search.best) && bound >= search.best.time.time_s) {
      ++search.skipped;
      continue;
    }
    ++search.tried;
    DataflowPlan plan = plan_dataflow(candidate, rules);
    if (is_faster(plan, search.best)) search.best = std::move(plan);
  }
  return search;
}

}  // namespace braid
