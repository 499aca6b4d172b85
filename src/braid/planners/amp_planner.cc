#include <cstdint>
#include <utility>
#include <vector>

#include "braid/planners/amp_job.h"
#include "braid/planners/amp_walks.h"
#include "braid/planners/planner.h"

namespace braid {

Outcome plan_amp(const Job& job, const System& system, const SpaceOptions& space,
                 const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "amp");
  std::vector<AmpFound> found;
  std::int64_t work = 0;
  for (const Configuration& configuration : amp.configurations()) {
    if (budget.work > 0 && work >= budget.work) {
      return amp.outcome(std::move(found), work, false);
    }
    ++work;
    auto choice = amp.evaluate(configuration);
    if (choice.has_value()) found.push_back(std::move(*choice));
  }
  return amp.outcome(std::move(found), work, true);
}

Outcome plan_amp_sa(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "amp-sa");
  auto walk = amp_annealing_walk<AmpFound>(
      amp.configurations(), budget,
      [&](const Configuration& configuration, Dice&) { return amp.evaluate(configuration); });
  return amp.outcome(std::move(walk.found), walk.work, false);
}

Outcome plan_random(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "random");
  auto walk = amp_random_walk<AmpFound>(
      amp.configurations(), budget,
      [&](const Configuration& configuration, Dice&) { return amp.evaluate(configuration); });
  return amp.outcome(std::move(walk.found), walk.work, false);
}

}  // namespace braid
