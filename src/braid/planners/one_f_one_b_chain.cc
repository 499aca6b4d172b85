#include "braid/planners/one_f_one_b_chain.h"

namespace braid {

std::vector<StagePlace> stage_places(std::span<const double> handover_s,
                                     std::int64_t micro_batches) {
  const auto stages = std::ssize(handover_s) + 1;
  std::vector<StagePlace> places(handover_s.size() + 1);
  for (auto i = stages - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t depth = stages - i;
    StagePlace& place = places[at];
    place.in_flight = static_cast<double>(std::min<std::int64_t>(micro_batches, depth));
    if (depth > 1) place.handover_below_s = places[at + 1].handover_below_s + 2 * handover_s[at];
    place.steps = static_cast<double>(micro_batches - 1);
    place.after = static_cast<double>(micro_batches - depth);
    const std::int64_t dives = (micro_batches - 1) / depth;
    place.dives = static_cast<double>(dives);
    place.rest = static_cast<double>((micro_batches - 1) % depth);
  }
  return places;
}

}  // namespace braid
