#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/planners/amp_job.h"
#include "braid/planners/dice.h"
#include "braid/planners/planner.h"

namespace braid {
namespace {

constexpr std::int64_t kChains = 2, kSteps = 50;

bool spent(const Budget& budget, std::int64_t work) {
  return budget.work > 0 && work >= budget.work;
}

/// Nothing found within the budget is not proof that there is nothing.
Outcome finished(AmpJob& amp, std::vector<AmpFound> found, std::int64_t work, bool complete) {
  const bool none = found.empty();
  Outcome outcome = amp.outcome(std::move(found), work);
  if (none && !complete) outcome.status = Status::budget_exhausted;
  return outcome;
}

}  // namespace

Outcome plan_amp(const Job& job, const System& system, const SpaceOptions& space,
                 const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "amp");
  std::vector<AmpFound> found;
  std::int64_t work = 0;
  for (const Configuration& configuration : amp.configurations()) {
    // AMP places shards next to each other, then replicas, then stages.
    if (configuration.order != AxisOrder::pipeline_outermost) continue;
    if (spent(budget, work)) return finished(amp, std::move(found), work, false);
    ++work;
    auto choice = amp.evaluate(configuration);
    if (choice.has_value()) found.push_back(std::move(*choice));
  }
  return finished(amp, std::move(found), work, true);
}

Outcome plan_amp_sa(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress&) {
  constexpr double kHottest_s = 10;
  AmpJob amp(job, system, space, "amp-sa");
  const std::vector<Configuration>& all = amp.configurations();
  std::vector<AmpFound> found;
  std::int64_t work = 0;
  for (std::int64_t chain = 0; chain < kChains && !all.empty(); ++chain) {
    Dice dice(static_cast<std::uint64_t>(chain) + 1);
    Configuration at = all[dice.below(all.size())];
    double cost_s = std::numeric_limits<double>::infinity();
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (spent(budget, work)) return finished(amp, std::move(found), work, false);
      ++work;
      const bool keep_dp = dice.below(2) == 0;
      std::vector<Configuration> near;
      for (const Configuration& other : all) {
        if (step == 0 ? other == at : keep_dp ? other.dp == at.dp : other.tp == at.tp) {
          near.push_back(other);
        }
      }
      const Configuration next = near[dice.below(near.size())];
      const double chance = dice.share();
      const auto choice = amp.evaluate(next);
      if (!choice.has_value()) continue;
      found.push_back(*choice);
      const double temperature_s =
          kHottest_s * (1 - static_cast<double>(step) / static_cast<double>(kSteps));
      if (cost_s < std::numeric_limits<double>::infinity() &&
          chance >= std::exp(std::min((cost_s - choice->cost_s) / temperature_s, 0.0))) {
        continue;
      }
      at = next;
      cost_s = choice->cost_s;
    }
  }
  return finished(amp, std::move(found), work, false);
}

Outcome plan_random(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "random");
  const std::vector<Configuration>& all = amp.configurations();
  std::vector<AmpFound> found;
  std::int64_t work = 0;
  Dice dice(1);
  while (!all.empty() && work < kChains * kSteps && !spent(budget, work)) {
    ++work;
    auto choice = amp.evaluate(all[dice.below(all.size())]);
    if (choice.has_value()) found.push_back(std::move(*choice));
  }
  return finished(amp, std::move(found), work, false);
}

}  // namespace braid
