#include "braid/planners/amp/amp_planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "braid/planners/amp/amp_job.h"
#include "braid/planners/amp/annealing.h"
#include "braid/planners/job/alternatives.h"

namespace braid {
namespace {

constexpr std::int64_t kMostCosted = 100'000;  ///< Configurations, unless a budget is given.

/// Whether the budget allows for one more.
bool take(const Budget& budget, std::int64_t& work) {
  if (budget.work > 0 && work >= budget.work) return false;
  ++work;
  return true;
}

/// A configuration and what its layers cut in order cost.
struct Choice {
  Configuration configuration;
  double cost_s = 0;
};

/// Adds to `found` what cutting branches in other ways makes better, where that would be shown,
/// trying cheap configurations first. Whether the budget sufficed.
bool cut_branches(AmpJob& amp, std::vector<Choice> choices, int top, const Budget& budget,
                  std::int64_t& work, std::vector<OneFormAssignment>& found) {
  if (!amp.is_graph()) return true;
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.cost_s < b.cost_s; });
  ClassCosts costs;
  for (const Choice& choice : choices) costs.add(choice.configuration, choice.cost_s);
  const auto shown = static_cast<std::size_t>(std::max(1, top));
  for (const Choice& choice : choices) {
    if (!take(budget, work)) return false;
    auto better =
        amp.evaluate(choice.configuration, std::min(choice.cost_s, costs.kth_least_s(shown)));
    if (!better.has_value()) continue;
    costs.add(choice.configuration, better->cost_s);
    found.push_back(std::move(*better));
  }
  return true;
}

/// What a search came by, whose steps go by layers cut in order.
Outcome outcome_of(AmpJob& amp, AmpSearch<OneFormAssignment> search, int top,
                   const Budget& budget) {
  std::vector<Choice> choices;
  for (const OneFormAssignment& found : search.found) {
    const bool known = std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) {
      return choice.configuration == found.configuration;
    });
    if (!known) choices.push_back({found.configuration, found.cost_s});
  }
  cut_branches(amp, std::move(choices), top, budget, search.work, search.found);
  return amp.outcome(std::move(search.found), search.work, false);
}

}  // namespace

Outcome plan_amp(const Job& job, const System& system, const SpaceOptions& space,
                 const Budget& asked, const Progress&) {
  const Budget budget = asked.or_by_default(kMostCosted);
  AmpJob amp(job, system, space, "amp");
  std::vector<OneFormAssignment> found;
  std::vector<Choice> choices;
  std::int64_t work = 0;
  for (const Configuration& configuration : amp.configurations()) {
    if (!take(budget, work)) return amp.outcome(std::move(found), work, false);
    auto choice = amp.evaluate_in_order(configuration);
    choices.push_back({configuration, choice.has_value() ? choice->cost_s : AmpJob::kUnlimited});
    if (choice.has_value()) found.push_back(std::move(*choice));
  }
  const bool complete = cut_branches(amp, std::move(choices), space.top, budget, work, found);
  return amp.outcome(std::move(found), work, complete);
}

Outcome plan_amp_sa(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "amp-sa");
  auto search = amp_annealing<OneFormAssignment>(
      amp.configurations(), budget, [&](const Configuration& configuration, RandomNumbers&) {
        return amp.evaluate_in_order(configuration);
      });
  return outcome_of(amp, std::move(search), space.top, budget);
}

Outcome plan_random(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress&) {
  AmpJob amp(job, system, space, "random");
  auto search = amp_random_strategies<OneFormAssignment>(
      amp.configurations(), budget, [&](const Configuration& configuration, RandomNumbers&) {
        return amp.evaluate_in_order(configuration);
      });
  return outcome_of(amp, std::move(search), space.top, budget);
}

}  // namespace braid
