#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/explore/space.h"
#include "braid/plan/outcome.h"
#include "braid/plan/plan.h"

namespace braid {

/// What was found at a point of a space. With another status than optimal or feasible only
/// `status`, `reason`, `lower_bound_s` and `work` mean anything.
struct PointResult {
  Status status = Status::infeasible;
  std::string reason;         ///< Why there is no plan, in one line; may be empty.
  double time_s = 0;          ///< Of the job: an iteration, or the whole of linear algebra.
  double lower_bound_s = 0;   ///< Of the job on this system.
  double throughput = 0;      ///< Per second, of what the workload counts (Space::units).
  double utilisation = 0;     ///< The model's operations over peak: MFU.
  double usd = 0, watts = 0;  ///< Of the system; 0 where the space has none.
  /// Of a batch, by the time that the planner minimises; 0 where the space counts none.
  double joules = 0;
  std::int64_t work = 0;  ///< Networks looked at; configurations, or groups of them, bounded.
  std::string form;       ///< How the work is split, for people; empty where no degrees say it.
  // By columns_of(space).
  std::vector<std::string> words;
  std::vector<std::int64_t> counts;
  std::vector<double> figures;
  std::vector<double> parts_s;
  std::vector<std::string> assumptions;  ///< Assumptions.
  friend bool operator==(const PointResult&, const PointResult&) = default;
};

inline bool is_found(const PointResult& result) {
  return result.status == Status::optimal || result.status == Status::feasible;
}

/// Throughput, also per USD of the machine and per watt of it; what a joule does. 0 where nothing
/// was found.
double figure_of(const PointResult& result, SpaceFigure figure);

/// A result and, where a planner of the registry has one, its plan: verified.
struct PlannedPoint {
  PointResult result;
  std::optional<Plan> plan;
};

/// Plans a point. Deterministic. A planner that refuses the job is a result without a plan.
/// `nests`: mappings that are known from other points; may be null.
PlannedPoint plan_point(const Space& space, const SpacePoint& point,
                        std::shared_ptr<NestMemo> nests = nullptr);

/// The parallelism of a plan, for people: "TP 8 PP 4 DP 2 MBS 1, recompute full".
std::string parallelism_text(const Plan& plan);

/// What a planner of a space has for a workload on a system.
struct WorkloadPlan {
  std::string refusal;  ///< Of a job that the planner refuses; else empty.
  Graph graph;          ///< As planned.
  Outcome outcome;
};
/// `nests`: mappings that are known from other systems; may be null.
WorkloadPlan plan_workload(const SystemSpace& space, std::size_t workload, std::size_t planner,
                           const System& system, std::shared_ptr<NestMemo> nests = nullptr);

// By kind of space.
/// The dataflow mapper under DFModel's cluster model, with the network's roles and sizes searched
/// as the point says.
PointResult plan_point(const DataflowSpace& space, const SpacePoint& point);
/// The point's planner on the point's system.
PlannedPoint plan_point(const SystemSpace& space, const SpacePoint& point,
                        std::shared_ptr<NestMemo> nests = nullptr);

}  // namespace braid
