#include "braid/planners/amp/synced_assignment.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "braid/base/infinity.h"
#include "braid/search/least_with_sync.h"

namespace braid {
namespace {

/// By right end, the least left end from which the layers' sum is below `limit`.
std::vector<std::int32_t> first_below(std::span<const double> sums, double limit) {
  std::vector<std::int32_t> first(sums.size(), 0);
  std::size_t left = 0;
  for (std::size_t right = 1; right < sums.size(); ++right) {
    while (left < right && !(sums[right] - sums[left] < limit)) ++left;
    first[right] = static_cast<std::int32_t>(left);
  }
  return first;
}

double longest_sync_s(const std::vector<std::span<const double>>& sync_before_s, const Ends& ends) {
  double longest_s = 0;
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    const auto end = static_cast<std::size_t>(ends[stage]);
    longest_s = std::max(longest_s, sync_before_s[stage][end] - sync_before_s[stage][begin]);
    begin = end;
  }
  return longest_s;
}

/// assign_layers() where each stage's synchronisation takes less than `limit_s`.
std::optional<SyncedAssignment> assign_below(
    const AssignmentChain& chain, const std::vector<std::span<const double>>& sync_before_s,
    double limit_s) {
  AssignmentChain limited = chain;
  std::vector<std::vector<std::int32_t>> firsts;
  firsts.reserve(chain.stages.size());
  for (std::size_t stage = 0; stage < chain.stages.size() && limit_s < kInfinity; ++stage) {
    std::vector<std::int32_t>& first =
        firsts.emplace_back(first_below(sync_before_s[stage], limit_s));
    const auto fitting = chain.stages[stage].first_allowed;
    for (std::size_t right = 0; right < fitting.size(); ++right) {
      first[right] = std::max(first[right], fitting[right]);
    }
    limited.stages[stage].first_allowed = first;
  }
  auto assignment = assign_layers(limited);
  if (!assignment.has_value()) return std::nullopt;
  const double sync_s = longest_sync_s(sync_before_s, assignment->ends);
  return SyncedAssignment{std::move(assignment->ends), assignment->pipeline_s, sync_s};
}

}  // namespace

std::optional<SyncedAssignment> assign_layers_and_sync(
    const AssignmentChain& chain, const std::vector<std::span<const double>>& sync_before_s) {
  assert(sync_before_s.size() == chain.stages.size());
  return least_with_sync<SyncedAssignment>(
      [&](double limit_s, double) { return assign_below(chain, sync_before_s, limit_s); });
}

}  // namespace braid
