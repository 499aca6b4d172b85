#pragma once

#include <functional>
#include <string>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"
#include "braid/planners/registry.h"

namespace braid::test {

/// A plan that differs in one thing from another, and what that is, in words.
struct SingleChange {
  std::string what;
  Plan plan;
};

/// Shows every plan that differs from `plan` (uniform, of `graph`) in one thing alone: a layer
/// moved over a cut; an offload, the recomputation, the ZeRO stage, sequence parallelism, the order
/// of the data and pipeline axes, the schedule or the size of micro-batches changed, with as many
/// layers in each chunk as before; another number of chunks, with layers dealt out as trainers do
/// and by number. Nothing of the planners is used: moves are made in the plan, other forms built by
/// direct_plan(). Plans whose layers are sharded as was found have their layers moved alone. What
/// `space` fixes stays; what the model does not allow is left out; whether a plan holds is for
/// verify() to say.
void for_each_single_change(const Plan& plan, const Graph& graph, const SpaceOptions& space,
                            const std::function<void(const SingleChange&)>& visit);

/// The fastest of them that verify() accepts, in the time of its own replay.
struct FastestChange {
  double time_s = 0;  ///< Infinite when none is accepted.
  double plan_s = 0;  ///< Of the plan itself, replayed.
  std::string what;
  Plan plan;
  int shown = 0, accepted = 0;

  /// Whether the change makes the plan faster by more than rounding.
  bool is_faster() const { return time_s < plan_s * (1 - 1e-9); }
};
FastestChange fastest_single_change(const Plan& plan, const Graph& graph,
                                    const SpaceOptions& space = {});

}  // namespace braid::test
