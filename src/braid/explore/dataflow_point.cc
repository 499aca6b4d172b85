#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/dataflow/dataflow_plan.h"
#include "braid/explore/point_result.h"

namespace braid {
namespace {

std::string network_text(const Fabric& fabric) {
  static constexpr const char* kShapes[] = {"ring", "mesh", "switch"};
  static constexpr const char* kRoles[] = {"", " tensor", " pipeline", " data"};
  std::string text;
  for (const FabricDimension& dimension : fabric.dimensions) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : " x ",
                        kShapes[static_cast<std::size_t>(dimension.shape)], dimension.size,
                        dimension.size > 1 ? kRoles[static_cast<std::size_t>(dimension.role)] : "");
  }
  return text;
}

DataflowPlanRules rules_of(const DataflowSpace& space, const DataflowSetup& setup) {
  DataflowPlanRules rules =
      space.published_rules ? published_plan_rules(setup) : default_plan_rules(setup);
  if (space.budget > 0) rules.budget.partitions = space.budget;
  return rules;
}

Status status_of(MappingStatus status) {
  switch (status) {
    case MappingStatus::optimal:
      return Status::optimal;
    case MappingStatus::feasible:
      return Status::feasible;
    case MappingStatus::infeasible:
      return Status::infeasible;
    case MappingStatus::exhausted:
      return Status::budget_exhausted;
  }
  return Status::infeasible;
}

}  // namespace

PointResult plan_point(const DataflowSpace& space, const SpacePoint& point) {
  const DataflowSetup setup = setup_of(space, point);
  const DataflowPlanRules rules = rules_of(space, setup);
  const FabricParallelism way = space.parallelisms[point[kMethodAxis]];
  const bool layers = setup.job.workload == DataflowWorkload::layers;
  DataflowPlan plan;
  PointResult result;
  if (way == FabricParallelism::given || (way == FabricParallelism::roles && !layers)) {
    plan = plan_dataflow(setup, rules);
    result.work = 1;
  } else {
    DataflowSearch search = search_fabrics(
        setup, rules, way == FabricParallelism::roles ? FabricSearch::roles : FabricSearch::shapes);
    plan = std::move(search.best);
    result.work = search.tried + search.skipped;
  }
  result.status = status_of(plan.outcome.status);
  if (plan.outcome.mapping.partition_of.empty()) return result;
  result.time_s = plan.time.time_s;
  if (rules.kernel_by_kernel && plan.boxes == 0 &&
      plan.stages.empty()) {  // There is only one such mapping.
    result.status = Status::optimal;
    result.lower_bound_s = result.time_s;
  } else {
    result.lower_bound_s =
        std::min(result.time_s, job_time(plan.setup, plan.outcome.lower_bound_s, rules.job).time_s);
  }
  result.throughput = plan.time.flops / result.time_s;
  result.utilisation = plan.time.utilisation;
  const MachineCost cost = machine_cost(plan.setup);
  if (space.has_prices) result.usd = cost.usd;
  if (space.has_powers) result.watts = cost.watts;
  result.parts_s.assign(3, 0);
  for (const PartitionCost& partition : plan.outcome.cost.partitions) {
    result.parts_s[0] += partition.compute_s;
    result.parts_s[1] += partition.memory_s;
    result.parts_s[2] += partition.network_s;
  }
  result.words = {network_text(plan.setup.fabric)};
  const auto tensor = static_cast<std::int64_t>(plan.time.tensor);
  const auto pipeline = static_cast<std::int64_t>(plan.time.pipeline);
  const auto data = static_cast<std::int64_t>(plan.time.data);
  result.counts = {tensor, pipeline, data,
                   static_cast<std::int64_t>(plan.outcome.cost.partitions.size())};
  result.figures = {plan.outcome.cost.time_s};
  // Other work has no such degrees.
  if (layers) result.form = fmt::format("{} x {} x {}", tensor, pipeline, data);
  return result;
}

}  // namespace braid
