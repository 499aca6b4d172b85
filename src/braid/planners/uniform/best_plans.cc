#include "braid/planners/uniform/best_plans.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

bool better(const FoundPlan& a, const FoundPlan& b) {
  return std::tie(a.time_s, a.configuration) < std::tie(b.time_s, b.configuration);
}

constexpr std::int64_t kMostPerConfiguration = 2000;
/// Assignments that are tried, in all, where a configuration has too many to look through.
constexpr std::int64_t kMostTries = 10 * kMostPerConfiguration;

}  // namespace

double BestPlans::cutoff_s() const {
  return found_.size() < capacity_ ? below_s_ : found_.back().time_s;
}

double BestPlans::cutoff_s(const Configuration& configuration) const {
  for (const FoundPlan& known : found_) {
    if (is_same_class(known.configuration, configuration)) return known.time_s;
  }
  return cutoff_s();
}

double BestPlans::best_s() const { return found_.empty() ? below_s_ : found_.front().time_s; }

void BestPlans::keep_first(FoundPlan first) {
  found_ = {std::move(first)};
  keeps_first_ = true;
}

void BestPlans::add(FoundPlan candidate) {
  if (candidate.time_s >= below_s_) return;
  if (keeps_first_ && (candidate.time_s < found_.front().time_s ||
                       is_same_class(candidate.configuration, found_.front().configuration))) {
    return;
  }
  const auto same = std::find_if(found_.begin(), found_.end(), [&](const FoundPlan& other) {
    return is_same_class(other.configuration, candidate.configuration);
  });
  if (same != found_.end()) {
    if (!better(candidate, *same)) return;
    found_.erase(same);
  }
  const auto at = std::find_if(found_.begin() + (keeps_first_ ? 1 : 0), found_.end(),
                               [&](const FoundPlan& other) { return better(candidate, other); });
  found_.insert(at, std::move(candidate));
  if (found_.size() > capacity_) found_.pop_back();
}

bool operator<(const BoundedConfiguration& a, const BoundedConfiguration& b) {
  return std::tie(a.bound_s, a.configuration) < std::tie(b.bound_s, b.configuration);
}

namespace {

/// Other assignments that are faster than the best of their class, for as long as tries are left.
void improve_classes(const ChainJob& chain, LayerTables& tables,
                     const std::vector<BoundedConfiguration>& configurations, BestPlans& best,
                     std::int64_t& timed, AssessmentScratch& scratch) {
  std::int64_t tries = kMostTries;
  for (const BoundedConfiguration& open : configurations) {
    if (open.bound_s >= best.cutoff_s() || tries <= 0) break;
    ImprovementLimits limits;
    limits.below_s = best.cutoff_s(open.configuration);
    if (open.bound_s >= limits.below_s) continue;
    limits.most = kMostPerConfiguration;
    limits.most_of_more = std::min(kMostPerConfiguration, tries);
    Improvement found = improve_assignment(chain, tables, open.configuration, limits, scratch);
    timed += found.timed;
    if (!found.complete) tries -= limits.most_of_more;
    if (!found.ends.empty()) best.add({found.time_s, open.configuration, std::move(found.ends)});
  }
}

}  // namespace

ClosedGap close_gap(const ChainJob& chain, LayerTables& tables,
                    std::vector<BoundedConfiguration> configurations, BestPlans& best,
                    std::int64_t& timed, AssessmentScratch& scratch) {
  // What cannot be looked through is tried here and there, within a budget of all together.
  std::int64_t tries = kMostTries;
  // Nothing is proven any more then: what follows may only be faster.
  int configurations_left = 200;
  ClosedGap closed;
  std::sort(configurations.begin(), configurations.end());
  for (const BoundedConfiguration& open : configurations) {
    if (open.bound_s >= best.best_s()) break;
    if (closed.residual_bound_s < kInfinity && configurations_left-- == 0) break;
    ImprovementLimits limits;
    limits.below_s = best.best_s();
    limits.most = kMostPerConfiguration;
    limits.most_of_more = std::min(kMostPerConfiguration, tries);
    limits.within_memory = open.memory_bound;
    Improvement found = improve_assignment(chain, tables, open.configuration, limits, scratch);
    timed += found.timed;
    if (!found.complete) {
      tries -= limits.most_of_more;
      closed.residual_bound_s = std::min(closed.residual_bound_s, open.bound_s);
    } else if (found.memory_bound) {
      closed.memory_bound.push_back(open.configuration);
    }
    if (!found.ends.empty()) best.add({found.time_s, open.configuration, std::move(found.ends)});
  }
  if (best.keeps_others()) {
    improve_classes(chain, tables, configurations, best, timed, scratch);
  }
  return closed;
}

void finish_outcome(const ChainJob& chain, LayerTables& tables, const BestPlans& best,
                    double search_bound_s, const std::string& planner, Outcome& outcome) {
  for (const FoundPlan& found : best.found()) {
    Candidate candidate;
    candidate.plan = build_plan(chain, tables, found.configuration, found.ends, planner);
    candidate.metrics = measure(candidate.plan);
    outcome.candidates.push_back(std::move(candidate));
  }
  outcome.search_bound_s = search_bound_s;
  outcome.objective = best.best_s();
  outcome.status =
      is_proven(search_bound_s, outcome.objective) ? Status::optimal : Status::feasible;
}

}  // namespace braid
