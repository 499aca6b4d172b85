#include "braid/search/one_f_one_b_chain.h"

#include "braid/plan/plan.h"

namespace braid {

std::vector<StagePlace> stage_places(const Handovers& handovers, std::int64_t micro_batches) {
  const std::span<const double> handover_s = handovers.time_s;
  const auto stages = std::ssize(handover_s) + 1;
  std::vector<StagePlace> places(handover_s.size() + 1);
  for (auto i = stages - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t depth = stages - i;
    StagePlace& place = places[at];
    place.in_flight = static_cast<double>(one_f_one_b_in_flight(depth, micro_batches));
    if (depth > 1) place.handover_below_s = places[at + 1].handover_below_s + 2 * handover_s[at];
    place.turns = OneFOneBTurns::of(depth, micro_batches);
  }
  if (!handovers.blocking) return places;
  // What goes on below a stage is its handover less the part that is the stage's own.
  for (std::size_t i = 0; i < handover_s.size(); ++i) {
    places[i].handover_below_s -= handover_s[i];
    places[i].sent_forward_s = handover_s[i];
    places[i + 1].sent_backward_s = handover_s[i];
  }
  return places;
}

}  // namespace braid
