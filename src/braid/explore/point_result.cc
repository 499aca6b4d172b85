#include "braid/explore/point_result.h"

#include <cmath>

#include <fmt/format.h>

#include "braid/chip/dataflow_plan.h"

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

DataflowPlanRules rules_of(const Space& space, const DataflowSetup& setup) {
  DataflowPlanRules rules =
      space.published_rules ? published_plan_rules(setup) : default_plan_rules(setup);
  if (space.budget > 0) rules.budget.partitions = space.budget;
  return rules;
}

}  // namespace

std::string_view name_of(MappingStatus status) {
  static constexpr std::string_view kNames[] = {"optimal", "feasible", "infeasible",
                                                "budget_exhausted"};
  return kNames[static_cast<std::size_t>(status)];
}

double figure_of(const PointResult& result, SpaceFigure figure) {
  if (!is_found(result) || !(result.time_s > 0)) return 0;
  const double throughput = result.flops / result.time_s;
  switch (figure) {
    case SpaceFigure::utilisation:
      return result.utilisation;
    case SpaceFigure::throughput:
      return throughput;
    case SpaceFigure::per_usd:
      return result.usd > 0 ? throughput / result.usd : 0;
    case SpaceFigure::per_w:
      return result.watts > 0 ? throughput / result.watts : 0;
  }
  return 0;
}

PointResult plan_point(const Space& space, const SpacePoint& point) {
  const DataflowSetup setup = setup_of(space, point);
  const DataflowPlanRules rules = rules_of(space, setup);
  const SpaceParallelism way =
      space.parallelisms[point[static_cast<std::size_t>(SpaceAxis::parallelism)]];
  const bool layers = setup.job.workload == DataflowWorkload::layers;
  DataflowPlan plan;
  PointResult result;
  if (way == SpaceParallelism::given || (way == SpaceParallelism::roles && !layers)) {
    plan = plan_dataflow(setup, rules);
    result.networks = 1;
  } else {
    DataflowSearch search = search_fabrics(
        setup, rules, way == SpaceParallelism::roles ? FabricSearch::roles : FabricSearch::shapes);
    plan = std::move(search.best);
    result.networks = search.tried + search.skipped;
  }
  result.status = plan.outcome.status;
  if (plan.outcome.mapping.partition_of.empty()) return result;
  result.time_s = plan.time.time_s;
  if (rules.kernel_by_kernel && plan.boxes == 0 &&
      plan.stages.empty()) {  // There is only one such mapping.
    result.status = MappingStatus::optimal;
    result.lower_bound_s = result.time_s;
  } else {
    result.lower_bound_s =
        std::min(result.time_s, job_time(plan.setup, plan.outcome.lower_bound_s, rules.job).time_s);
  }
  result.flops = plan.time.flops;
  result.utilisation = plan.time.utilisation;
  const MachineCost cost = machine_cost(plan.setup);
  result.usd = cost.usd;
  result.watts = cost.watts;
  for (const PartitionCost& partition : plan.outcome.cost.partitions) {
    result.compute_s += partition.compute_s;
    result.memory_s += partition.memory_s;
    result.network_s += partition.network_s;
  }
  result.layer_s = plan.outcome.cost.time_s;
  result.partitions = static_cast<std::int64_t>(plan.outcome.cost.partitions.size());
  result.tensor = static_cast<std::int64_t>(plan.time.tensor);
  result.pipeline = static_cast<std::int64_t>(plan.time.pipeline);
  result.data = static_cast<std::int64_t>(plan.time.data);
  result.network = network_text(plan.setup.fabric);
  return result;
}

}  // namespace braid
