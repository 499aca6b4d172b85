#include "braid/planners/graphpipe/in_flight.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

class RoundTrips {
 public:
  RoundTrips(std::span<const RoundTripStage> stages, std::span<const RoundTripEdge> edges,
             double period_s, std::int64_t most)
      : stages_(stages),
        edges_(edges),
        period_s_(period_s),
        most_(most),
        is_sink_(stages.size(), true),
        turn_s_(stages.size(), -kInfinity),
        start_s_(stages.size()),
        end_s_(stages.size()) {
    for (const RoundTripEdge& edge : edges) is_sink_[at(edge.source)] = false;
    counts.resize(stages.size());
  }

  std::vector<std::int64_t> counts;

  /// Counts a stage, given those behind it.
  void count(std::size_t stage) {
    const double passes_s = stages_[stage].forward_s + stages_[stage].backward_s;
    if (is_sink_[stage]) turn_s_[stage] = passes_s;
    std::fill(start_s_.begin(), start_s_.end(), -kInfinity);
    start_s_[stage] = 0;
    follow(stage);
    double round_s = end_s_[stage];
    counts[stage] = least_in_flight(round_s, passes_s, period_s_, most_);
    turn_s_[stage] = static_cast<double>(counts[stage] - 1) * period_s_ + passes_s;
  }

  /// The end of the last pass of the first micro-batch, all counted.
  double fill_s() {
    std::fill(start_s_.begin(), start_s_.end(), 0.0);
    follow(0);
    return end_s_.empty() ? 0 : *std::max_element(end_s_.begin(), end_s_.end());
  }

 private:
  /// The longest paths from the starts given, over stages from `first` on.
  void follow(std::size_t first) {
    std::fill(end_s_.begin(), end_s_.end(), -kInfinity);
    const auto begin = std::lower_bound(
        edges_.begin(), edges_.end(), first,
        [](const RoundTripEdge& edge, std::size_t s) { return at(edge.source) < s; });
    // Without a cycle longer than zero no path leads over a stage twice.
    for (std::size_t sweep = first; sweep < stages_.size(); ++sweep) {
      for (auto edge = begin; edge != edges_.end(); ++edge) {
        double& start_s = start_s_[at(edge->target)];
        start_s = std::max(start_s, start_s_[at(edge->source)] +
                                        stages_[at(edge->source)].forward_s + edge->out_s);
      }
      for (std::size_t s = first; s < stages_.size(); ++s) {
        end_s_[s] = std::max(end_s_[s], start_s_[s] + turn_s_[s]);
      }
      for (auto edge = edges_.end(); edge != begin;) {
        --edge;
        double& end_s = end_s_[at(edge->source)];
        end_s = std::max(
            end_s, end_s_[at(edge->target)] + edge->back_s + stages_[at(edge->source)].backward_s);
      }
      if (!turn_back(first)) break;
    }
  }

  /// Starts no earlier than passes of earlier micro-batches let it; whether any is later for it.
  bool turn_back(std::size_t first) {
    bool later = false;
    for (std::size_t s = first; s < stages_.size(); ++s) {
      if (counts[s] == 0 || counts[s] >= most_ || end_s_[s] == -kInfinity) continue;
      const double start_s = end_s_[s] - static_cast<double>(counts[s]) * period_s_;
      if (start_s <= start_s_[s] + kRunningSumsShare * end_s_[s]) continue;
      start_s_[s] = start_s;
      later = true;
    }
    return later;
  }

  std::span<const RoundTripStage> stages_;
  std::span<const RoundTripEdge> edges_;
  double period_s_;
  std::int64_t most_;
  std::vector<bool> is_sink_;
  std::vector<double> turn_s_;           ///< [stage]: least from F to B, as far as it is counted.
  std::vector<double> start_s_, end_s_;  ///< [stage]: F and B.
};

}  // namespace

LeastInFlight least_in_flight(std::span<const RoundTripStage> stages,
                              std::span<const RoundTripEdge> edges, double period_s,
                              std::int64_t most) {
  RoundTrips trips(stages, edges, period_s, most);
  for (std::size_t s = stages.size(); s-- > 0;) trips.count(s);
  LeastInFlight least;
  least.fill_s = trips.fill_s();
  least.micro_batches = std::move(trips.counts);
  return least;
}

std::int64_t least_in_flight(double& round_s, double passes_s, double period_s, std::int64_t most) {
  if (period_s <= 0) return 1;
  // A hair's breadth less, so that equal times do not round up.
  const double rounds = std::ceil(round_s / period_s * kBelowRounding);
  const double count = std::min(std::max(1.0, rounds), static_cast<double>(most));
  round_s = std::max(round_s, (count - 1) * period_s + passes_s);
  return static_cast<std::int64_t>(count);
}

}  // namespace braid
