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

constexpr std::int64_t kMostTimed = 1'000'000;  ///< Configurations, unless a budget is given.

/// Puts this plan first. Then come the fastest plan and the best of other ways to run the job, as
/// many as were asked for.
void put_first(SearchGround& ground, const std::vector<FoundPlan>& found, const FoundPlan& plan,
               Outcome& outcome) {
  const FoundPlan& fastest = found.front();
  if (plan.configuration == fastest.configuration && plan.ends == fastest.ends) return;
  std::vector<Candidate> known = std::exchange(outcome.candidates, {});
  outcome.recommendation->fastest = known.front();
  Candidate& first = outcome.candidates.emplace_back();
  first.plan = build_plan(ground.chain, ground.tables, plan.configuration, plan.ends, "braid");
  first.metrics = measure(first.plan);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0 && is_same_class(found[i].configuration, plan.configuration)) continue;
    outcome.candidates.push_back(std::move(known[i]));
  }
  outcome.candidates.resize(std::min(outcome.candidates.size(), known.size()));
}

/// Puts the plan to recommend first, on the ground of the search that found the fastest.
void recommend(SearchGround& ground, const UniformSearch& search, const SpaceOptions& space,
               const Budget& budget, const Progress& progress, Outcome& outcome) {
  std::int64_t evaluated = search.evaluated();
  bool exhausted = search.is_exhausted();
  const PartSearch search_part = [&](const SpaceOptions& part, double below_s) -> PartResult {
    const Budget left{budget.work - evaluated};
    exhausted = exhausted || left.work <= 0;
    // Without a limit, what the first search has met without offload is one.
    const bool is_limited = below_s < kInfinity;
    const std::optional<FoundPlan> known = is_limited ? std::nullopt : search.without_offload();
    if (exhausted) return {known, false};
    const Progress none;  // A limit is no plan to show.
    UniformSearch in_part(ground, part, left, is_limited ? none : progress,
                          UniformSearch::Aim::best, below_s);
    in_part.find(known ? &*known : nullptr);
    evaluated += in_part.evaluated();
    exhausted = in_part.is_exhausted();
    const double best_s = in_part.best().best_s();
    PartResult result{std::nullopt, is_proven(in_part.bound_s(), best_s)};
    if (!in_part.best().found().empty()) result.fastest = in_part.best().found().front();
    return result;
  };
  const FoundPlan& fastest = search.best().found().front();
  const EasiestPlan easiest = easiest_plan(ground.chain, fastest, space, search_part);
  ground.chain.dealt_evenly = !space.can.uneven_stages;
  Recommendation& recommendation = outcome.recommendation.emplace();
  recommendation.ease = ease_of(ground.chain, easiest.plan);
  recommendation.ease_of_fastest = ease_of(ground.chain, fastest);
  recommendation.without_offload_s = easiest.without_offload_s;
  recommendation.of_all = easiest.proven;
  put_first(ground, search.best().found(), easiest.plan, outcome);
}

}  // namespace

Outcome plan_uniform(const Job& job, const System& system, const SpaceOptions& space,
                     const Budget& asked, const Progress& progress) {
  const Budget budget = asked.or_by_default(kMostTimed);
  const std::shared_ptr<const LayerOptions> layers = layer_options(job);
  Job looked_at = job;
  looked_at.layers = layers.get();
  // Memory first, where times take long to find: that nothing fits has nothing to do with them.
  if (const auto rough = layers->with_rough_times(system)) {
    Job fitting = looked_at;
    fitting.layers = rough.get();
    SearchGround ground(fitting, system);
    Outcome outcome = UniformSearch(ground, space, budget, progress, UniformSearch::Aim::fit).run();
    if (outcome.status == Status::infeasible) return outcome;
  }
  SearchGround ground(looked_at, system);
  const bool prefers_easy = space.preference == Preference::easiest;
  ground.keeps_bounds = prefers_easy;
  UniformSearch search(ground, space, budget, progress);
  Outcome outcome = search.run();
  ground.keeps_bounds = false;
  if (prefers_easy && !outcome.candidates.empty()) {
    recommend(ground, search, space, budget, progress, outcome);
  }
  return outcome;
}

}  // namespace braid
