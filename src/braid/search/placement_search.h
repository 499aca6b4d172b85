#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/search/progress.h"

namespace braid {

/// A pipeline to be placed: each stage has replicas, each replica a place in some node.
struct PlacementShape {
  std::int32_t stages = 1, replicas = 1;
  std::vector<std::int32_t> capacity;  ///< Of each node, in replicas.
};

/// The first stages of a shape on their nodes.
struct PartialPlacement {
  double bound_s = 0;
  std::size_t shape = 0;
  std::vector<std::vector<std::size_t>> stages;  ///< [stage][replica]: node.
};

/// Replicas that each node still has capacity for.
std::vector<std::int32_t> capacity_left(const PlacementShape& shape,
                                        const PartialPlacement& partial);

/// What placements cost.
class PlacementCosts {
 public:
  PlacementCosts() = default;
  PlacementCosts(const PlacementCosts&) = delete;
  PlacementCosts& operator=(const PlacementCosts&) = delete;
  PlacementCosts(PlacementCosts&&) = delete;
  PlacementCosts& operator=(PlacementCosts&&) = delete;
  virtual ~PlacementCosts() = default;

  /// No placement that begins like this costs less.
  virtual double bound_s(const PartialPlacement& partial) = 0;
  /// Cost of a complete placement, or infinity. Called once for each that is reached.
  virtual double complete_s(const PartialPlacement& placement) = 0;
};

struct PlacementSearchOptions {
  /// For each node the first that it could stand for: while both are unused, only one is tried.
  std::vector<std::size_t> first_alike;
  /// Whether which replica is on which node matters, or only how many are. In the former case
  /// replicas with the same history are interchangeable.
  bool ordered_replicas = false;
  double best_s = 0;             ///< What is to be beaten.
  std::int64_t most_states = 0;  ///< Partial placements made, in all.
  Progress progress = {};        ///< Told of every partial placement taken up; may be empty.
};

struct PlacementSearchResult {
  double bound_s = 0;  ///< No placement of any of the shapes costs less, unless best_s is less.
  std::int64_t states = 0;
};

/// Best first over partial placements of the shapes, stage by stage; of those that cannot differ in
/// cost one is made.
PlacementSearchResult search_placements(std::span<const PlacementShape> shapes,
                                        const PlacementSearchOptions& options,
                                        PlacementCosts& costs);

}  // namespace braid
