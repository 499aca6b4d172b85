#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "braid/planners/amp/amp_mixed_job.h"
#include "braid/planners/amp/mixed_links.h"
#include "braid/search/placement_search.h"

namespace braid {

/// What placements of a job's configurations, and bounds of those begun, are made of.
class AmpMixedParts {
 public:
  /// Keeps a reference.
  explicit AmpMixedParts(AmpMixedJob& job);

  AmpMixedJob& job() { return job_; }
  /// Of the job's configurations, in their order.
  const std::vector<PlacementShape>& shapes() const { return shapes_; }
  const std::vector<std::size_t>& group_of_node() const { return group_; }
  std::size_t groups() const { return group_.back() + 1; }

  /// Time per layer on the fastest of some groups, in the largest memory of theirs.
  AmpMixedJob::StageTable& fastest(std::size_t c, const std::vector<std::size_t>& groups);

  /// Stages that no placement makes faster all together.
  struct Pace {
    std::size_t group = 0;   ///< Where the k-th fastest stages would be.
    std::int32_t count = 1;  ///< Stages.
    AmpMixedJob::StageTable* table = nullptr;
  };
  /// Of a configuration before anything is placed. Groups by pace: no more stages can be as fast as
  /// the k fastest groups than these have room for, and a stage that is faster than another on
  /// every layer may stand for it; so what a stage of the k-th pace takes is at least what the
  /// fastest of the k-th and slower groups do.
  std::vector<Pace> paces(std::size_t c);

  /// A partial placement with the stages still to come on the fastest free devices.
  struct Stages {
    std::vector<AmpMixedJob::StageTable*> tables;  ///< [stage]
    double sync_s = 0;                             ///< What synchronisation takes at least.
  };
  Stages stages(const PartialPlacement& partial);
  /// What handing over to the next stage takes at least.
  double hop_s(const PartialPlacement& partial, std::size_t stage, double bytes);
  double fastest_hop_s(double bytes) { return links_.fastest_message_s(bytes); }
  /// What synchronisation takes at least before anything is placed, wherever `parameters` lie.
  double least_sync_s(std::size_t c, double parameters) const;

  /// search_placements() of all shapes below `best_s`.
  PlacementSearchResult search(PlacementCosts& costs, double best_s, std::int64_t most_states,
                               const Progress& progress) const;
  /// Devices of a complete placement, stage by stage.
  std::vector<std::int64_t> devices_of(const PartialPlacement& placement) const;

 private:
  double fastest_ring(const Configuration& configuration) const;
  /// When the parameters may lie on the stages as they like; `rates`: of the stages' rings.
  double least_sync_s(std::size_t c, double parameters, double rates) const;

  AmpMixedJob& job_;
  NodeLinks links_;
  std::vector<std::size_t> group_;  ///< [node]
  std::vector<PlacementShape> shapes_;
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, AmpMixedJob::StageTable> fastest_;
};

}  // namespace braid
