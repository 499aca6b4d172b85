#include "braid/plan/outcome.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace braid {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::optimal:
      return "optimal";
    case Status::feasible:
      return "feasible";
    case Status::infeasible:
      return "infeasible";
    case Status::budget_exhausted:
      return "budget_exhausted";
  }
  return "";
}

namespace {

/// Whether it is `other` with a trade that makes it slower and frees nothing.
bool is_idle_trade(const Candidate& candidate, const Candidate& other) {
  constexpr double kSameMemory = 1e-3;
  if (!is_uniform(candidate.plan) || !is_uniform(other.plan)) return false;
  const auto degrees = [](const Parallelism& p) {
    return std::tie(p.tp, p.cp, p.ep, p.whole_experts, p.pp, p.dp);
  };
  const Metrics &a = candidate.metrics, &b = other.metrics;
  return degrees(candidate.plan.parallel) == degrees(other.plan.parallel) &&
         a.iteration_time_s > b.iteration_time_s &&
         std::abs(a.peak_memory_bytes - b.peak_memory_bytes) <= kSameMemory * b.peak_memory_bytes;
}

}  // namespace

void leave_out_idle_trades(Outcome& outcome) {
  std::vector<Candidate>& all = outcome.candidates;
  std::vector<bool> kept(all.size(), true);
  for (std::size_t i = 1; i < all.size(); ++i) {
    kept[i] = std::none_of(all.begin(), all.end(),
                           [&](const Candidate& other) { return is_idle_trade(all[i], other); });
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!kept[i]) continue;
    if (next < i) all[next] = std::move(all[i]);
    ++next;
  }
  all.resize(next);
}

}  // namespace braid
