#include "braid/planners/uniform/uniform_planner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/uniform/easiest_plan.h"
#include "braid/planners/uniform/uniform_search.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

// Unless a budget is given: plans timed, and stages of these together.
constexpr std::int64_t kMostTimed = 1'000'000;
constexpr std::int64_t kMostTimedStages = 20'000'000;

/// Plans of so many stages as the job may have, within both limits.
std::int64_t default_budget(const SpaceLimits& limits) {
  return std::min(kMostTimed,
                  kMostTimedStages / std::max<std::int64_t>(
                                         1, std::min<std::int64_t>(limits.devices, limits.layers)));
}

Candidate candidate_of(SearchGround& ground, const FoundPlan& found) {
  Candidate candidate;
  candidate.plan =
      build_plan(ground.chain, ground.tables, found.configuration, found.ends, "braid");
  candidate.metrics = measure(candidate.plan);
  return candidate;
}

/// Puts the plan to recommend first, on the ground of the search that found the fastest, and
/// returns it.
FoundPlan recommend(SearchGround& ground, UniformSearch& search, const SpaceOptions& space,
                    const Budget& budget, Outcome& outcome) {
  std::int64_t evaluated = search.evaluated();
  bool exhausted = search.is_exhausted();
  const auto result_of = [&](const UniformSearch& in_part) {
    exhausted = in_part.is_exhausted();
    const double best_s = in_part.best().best_s();
    PartResult result{std::nullopt, is_proven(in_part.bound_s(), best_s)};
    if (!in_part.best().found().empty()) result.fastest = in_part.best().found().front();
    return result;
  };
  const std::vector<FoundPlan> found = search.best().found();
  const PartSearch search_part = [&](const SpacePart& part, double below_s) -> PartResult {
    const Budget left{budget.work - evaluated};
    exhausted = exhausted || left.work <= 0;
    // Without a limit all that is without offload is asked for.
    const bool is_limited = below_s < kInfinity;
    if (exhausted) return {is_limited ? std::nullopt : search.without_offload(), false};
    if (!is_limited) {
      search.go_on_without_offload();
      evaluated = search.evaluated();
      return result_of(search);
    }
    UniformSearch in_part(ground, part, left, {}, UniformSearch::Aim::best, below_s);
    in_part.find();
    evaluated += in_part.evaluated();
    return result_of(in_part);
  };
  const FoundPlan& fastest = found.front();
  const EasiestPlan easiest = easiest_plan(ground.chain, fastest, space, search_part);
  Recommendation& recommendation = outcome.recommendation.emplace();
  recommendation.ease = ease_of(ground.chain, easiest.plan);
  recommendation.ease_of_fastest = ease_of(ground.chain, fastest);
  recommendation.without_offload_s = easiest.without_offload_s;
  recommendation.of_all = easiest.proven;
  const bool is_fastest =
      easiest.plan.configuration == fastest.configuration && easiest.plan.ends == fastest.ends;
  if (!is_fastest) {
    recommendation.fastest =
        std::exchange(outcome.candidates.front(), candidate_of(ground, easiest.plan));
  }
  return easiest.plan;
}

/// Adds the best of other ways to run the job, until there are as many plans as were asked for. Of
/// these ways the search finds some that are faster than what it finds without them, and leaves
/// them out: which plan is first does not depend on how many there are.
void add_others(SearchGround& ground, UniformSearch& search, const FoundPlan& first,
                const FoundPlan& fastest, Outcome& outcome) {
  search.find_beside(fastest);
  const bool is_fastest = !outcome.recommendation || !outcome.recommendation->fastest;
  if (!is_fastest) outcome.candidates.push_back(*outcome.recommendation->fastest);
  const std::vector<FoundPlan>& found = search.best().found();
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (!is_same_class(found[i].configuration, first.configuration)) {
      outcome.candidates.push_back(candidate_of(ground, found[i]));
    }
  }
  outcome.candidates.resize(std::min(outcome.candidates.size(), found.size()));
}

}  // namespace

Outcome plan_uniform(const Job& job, const System& system, const BraidSpace& space,
                     const Budget& asked, const Progress& progress) {
  const std::shared_ptr<const LayerOptions> layers = layer_options(job);
  Job looked_at = job;
  looked_at.layers = layers.get();
  const Budget budget = asked.or_by_default(default_budget(space_limits(looked_at, system)));
  // Memory first, where times take long to find: that nothing fits has nothing to do with them.
  const auto rough = layers->with_rough_times(system);
  Job fitting = looked_at;
  std::optional<SearchGround> rough_ground;
  if (rough) {
    fitting.layers = rough.get();
    rough_ground.emplace(fitting, system);
    Outcome outcome =
        UniformSearch(*rough_ground, space, budget, progress, UniformSearch::Aim::fit).run();
    if (outcome.status == Status::infeasible) return outcome;
  }
  SearchGround ground(looked_at, system);
  const bool no_time_is_less = system.groups.front().chip.execution == ChipExecution::dataflow;
  if (rough && no_time_is_less) ground.least = &rough_ground->tables;
  const bool prefers_easy = space.preference == Preference::easiest;
  ground.keeps_bounds = prefers_easy;
  ground.keeps_aside =
      prefers_easy && space.allow_offload && system.groups.front().chip.host.has_value();
  SpaceOptions of_one = space;
  of_one.top = 1;
  UniformSearch search(ground, of_one, budget, progress);
  Outcome outcome = search.run();
  ground.keeps_bounds = ground.keeps_aside = false;
  if (outcome.candidates.empty()) return outcome;
  const FoundPlan fastest = search.best().found().front();
  const FoundPlan first =
      prefers_easy ? recommend(ground, search, of_one, budget, outcome) : fastest;
  outcome.any_device_count = !space.all_devices;
  outcome.device_limit =
      device_limit(ground.limits, space, devices_used(outcome.candidates.front().plan));
  if (space.top > 1) {
    UniformSearch others(ground, space, budget, progress);
    add_others(ground, others, first, fastest, outcome);
  }
  return outcome;
}

}  // namespace braid
