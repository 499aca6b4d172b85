#include "braid/explore/point_result.h"

#include <utility>

namespace braid {

double figure_of(const PointResult& result, SpaceFigure figure) {
  if (!is_found(result) || !(result.time_s > 0)) return 0;
  switch (figure) {
    case SpaceFigure::utilisation:
      return result.utilisation;
    case SpaceFigure::throughput:
      return result.throughput;
    case SpaceFigure::per_usd:
      return result.usd > 0 ? result.throughput / result.usd : 0;
    case SpaceFigure::per_w:
      return result.watts > 0 ? result.throughput / result.watts : 0;
    case SpaceFigure::per_j:
      return result.joules > 0 ? result.throughput * result.time_s / result.joules : 0;
  }
  return 0;
}

PlannedPoint plan_point(const Space& space, const SpacePoint& point,
                        std::shared_ptr<NestMemo> nests) {
  if (const auto* dataflow = std::get_if<DataflowSpace>(&space.points)) {
    return {plan_point(*dataflow, point), std::nullopt};
  }
  return plan_point(std::get<SystemSpace>(space.points), point, std::move(nests));
}

}  // namespace braid
