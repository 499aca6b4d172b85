#include "braid/search/partition.h"

#include <algorithm>

#include "braid/search/even_splits.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {

std::optional<Ends> partition_min_max(std::span<const ChainLayer> layers, int pieces) {
  if (static_cast<std::size_t>(pieces) > layers.size()) return std::nullopt;
  Ends ends;
  EvenSplits(layers).split(pieces, &ends);
  return ends;
}

namespace {

/// The path of stages with these times and handovers beside the passes.
double path_beside_s(std::span<const double> forward_s, std::span<const double> backward_s,
                     std::span<const double> handover_s, std::int64_t micro_batches) {
  const auto stages = static_cast<std::int64_t>(forward_s.size());
  double all_s = 0;
  for (std::size_t i = 0; i < forward_s.size(); ++i) {
    all_s += forward_s[i] + backward_s[i];
    if (i + 1 < forward_s.size()) all_s += 2 * handover_s[i];
  }
  double longest = 0;
  double dive_s = 0;  // D_i
  for (std::int64_t i = stages - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const double below_s = dive_s + (i + 1 < stages ? 2 * handover_s[at] : 0);
    dive_s = forward_s[at] + backward_s[at] + below_s;
    longest = std::max(longest, OneFOneBTurns::of(stages - i, micro_batches)
                                    .chain_excess_s(forward_s[at], backward_s[at], below_s));
  }
  return all_s + longest;
}

}  // namespace

double one_f_one_b_path_s(std::span<const double> forward_s, std::span<const double> backward_s,
                          const Handovers& handovers, std::int64_t micro_batches) {
  const std::span<const double> handover_s = handovers.time_s;
  if (!handovers.blocking) {
    return path_beside_s(forward_s, backward_s, handover_s, micro_batches);
  }
  std::vector<double> forward(forward_s.begin(), forward_s.end());
  std::vector<double> backward(backward_s.begin(), backward_s.end());
  for (std::size_t i = 0; i + 1 < forward.size(); ++i) {
    forward[i] += handover_s[i];
    backward[i + 1] += handover_s[i];
  }
  return path_beside_s(forward, backward, std::vector<double>(forward.size(), 0.0), micro_batches);
}

}  // namespace braid
