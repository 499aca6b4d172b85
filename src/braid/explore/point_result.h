#pragma once

#include <cstdint>
#include <string>

#include "braid/chip/kernel_mapper.h"
#include "braid/explore/space.h"

namespace braid {

/// What was found at a point of a space. With another status than optimal or feasible only `status`
/// and `networks` mean anything.
struct PointResult {
  MappingStatus status = MappingStatus::infeasible;
  double time_s = 0;         ///< Of the job.
  double lower_bound_s = 0;  ///< Of the job on this network: with the mapping's lower bound.
  double flops = 0;          ///< Of the job.
  double utilisation = 0;
  double usd = 0, watts = 0;
  /// Of a micro-batch through a layer on one chip: what its partitions compute, move and send, not
  /// hidden behind each other, and its time.
  double compute_s = 0, memory_s = 0, network_s = 0, layer_s = 0;
  std::int64_t partitions = 0;
  std::int64_t tensor = 1, pipeline = 1, data = 1;
  std::string network;        ///< Shapes, sizes and roles of its dimensions.
  std::int64_t networks = 0;  ///< Looked at.
  friend bool operator==(const PointResult&, const PointResult&) = default;
};

inline bool is_found(const PointResult& result) {
  return result.status == MappingStatus::optimal || result.status == MappingStatus::feasible;
}
std::string_view name_of(MappingStatus status);

/// Operations per second; per USD of the machine; per watt of it. 0 where nothing was found.
double figure_of(const PointResult& result, SpaceFigure figure);

/// Plans a point: the dataflow mapper, with the network's roles and sizes searched as the point
/// says. Deterministic, one thread.
PointResult plan_point(const Space& space, const SpacePoint& point);

}  // namespace braid
