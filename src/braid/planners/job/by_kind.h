#pragma once

#include <string>

#include "braid/planners/job/job.h"

namespace braid {

/// A homogeneous system in place of a mixed one, no part of which is better than the worst of that
/// kind there: as many devices, in nodes whose size divides all nodes', each figure of chip and
/// networks the worst of any group's (of a bandwidth matrix: its least entry). The fewest compute
/// units count as worst, though tiles may happen to fill them better than more units: no number is
/// worse for every shape.
System slowest_of(const System& system);

/// A planner of homogeneous systems and one of others.
struct PlannersByKind {
  PlanFunction homogeneous;
  PlanFunction mixed;
  ShardingSource mixed_sharding = ShardingSource::manual;  ///< What the latter can be asked for.
};

/// A planner that takes any system, made of these two: groups that the job cannot run on are left
/// out (usable_groups), equal neighbours joined. Throws Error where shardings are to be found and
/// the one for mixed systems does not.
Outcome plan_by_kind(const PlannersByKind& planners, const Job& job, const System& system,
                     const SpaceOptions& space, const Budget& budget, const Progress& progress);

/// A planner under the name that messages call it by.
struct NamedPlanner {
  PlanFunction plan;
  std::string name;
};

/// What a planner of homogeneous systems makes of any: on a mixed one it plans for slowest_of() it,
/// and its plans are then timed on the real devices in their order. The objective stays its own.
/// Throws Error for plans that mixed systems cannot run (interleaved stages).
Outcome plan_for_slowest(const NamedPlanner& planner, const Job& job, const System& system,
                         const SpaceOptions& space, const Budget& budget, const Progress& progress);

}  // namespace braid
