#include "braid/planners/search.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/planners/job_layers.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

bool better(const FoundPlan& a, const FoundPlan& b) {
  return std::tie(a.time_s, a.configuration) < std::tie(b.time_s, b.configuration);
}

/// What users tell plans apart by.
auto family_of(const Configuration& c) {
  return std::make_tuple(c.tp, c.cp, c.ep, c.pp, c.dp, c.vp, c.micro_batch, c.schedule,
                         c.recompute);
}

std::vector<std::string> assumptions_of(const System& system) {
  std::vector<std::string> assumptions;
  for (const DeviceGroup& group : system.groups) {
    for (const Provenance& entry : group.chip.provenance) {
      // No time or memory rests on these two.
      if (entry.assumed && entry.key != "price" && entry.key != "power") {
        assumptions.push_back(group.chip.name + ": " + entry.key + ": " + entry.source);
      }
    }
  }
  for (const Provenance& entry : system.provenance) {
    if (entry.assumed) assumptions.push_back(system.name + ": " + entry.key + ": " + entry.source);
  }
  return assumptions;
}

}  // namespace

double BestPlans::cutoff_s() const {
  return found_.size() < capacity_ ? kInfinity : found_.back().time_s;
}

double BestPlans::best_s() const { return found_.empty() ? kInfinity : found_.front().time_s; }

void BestPlans::add(FoundPlan candidate) {
  const auto same = std::find_if(found_.begin(), found_.end(), [&](const FoundPlan& other) {
    return family_of(other.configuration) == family_of(candidate.configuration);
  });
  if (same != found_.end()) {
    if (!better(candidate, *same)) return;
    found_.erase(same);
  }
  const auto at = std::find_if(found_.begin(), found_.end(),
                               [&](const FoundPlan& other) { return better(candidate, other); });
  found_.insert(at, std::move(candidate));
  if (found_.size() > capacity_) found_.pop_back();
}

bool operator<(const BoundedConfiguration& a, const BoundedConfiguration& b) {
  return std::tie(a.bound_s, a.configuration) < std::tie(b.bound_s, b.configuration);
}

void BestPlans::replace_best(FoundPlan better) {
  found_.erase(found_.begin());
  add(std::move(better));
}

ClosedGap close_gap(const ChainJob& chain, LayerTables& tables,
                    std::vector<BoundedConfiguration> configurations, BestPlans& best,
                    std::int64_t& timed, AssessmentScratch& scratch) {
  constexpr std::int64_t kMostPerConfiguration = 2000;
  // What cannot be looked through is tried here and there, within a budget of all together.
  std::int64_t tries = 10 * kMostPerConfiguration;
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
  return closed;
}

const char* const kBraidSpace =
    "1F1B with every assignment of consecutive layers to stages; interleaving and GPipe with "
    "layers "
    "dealt by time, by number and as trainers do; and whatever differs in one thing from the plan";

SpaceLimits space_limits(const Job& job, const System& system) {
  SpaceLimits limits;
  limits.devices = system.device_count;
  limits.devices_per_node = system.groups.front().devices_per_node;
  limits.global_batch = job.global_batch;
  const std::shared_ptr<const LayerOptions> layers = layer_options(job);
  limits.layers = static_cast<int>(layers->layers().layers.size());
  limits.split = layers->limits(system.device_count);
  limits.separate_accumulation = !job.trainer.does.fused_accumulation;
  return limits;
}

Outcome begin_outcome(const Job& job, const System& system) {
  Outcome outcome;
  outcome.physical_bound = lower_bound(job, system);
  outcome.objective_name = kSimulatedObjective;
  outcome.assumptions = assumptions_of(system);
  return outcome;
}

Infeasibility empty_space(const SpaceLimits& limits, const SpaceOptions& options) {
  std::string reason =
      std::string(options.all_devices ? "no split uses all " : "no split uses any of the ") +
      std::to_string(limits.devices) +
      " devices: the degrees must divide the model's heads, layers and the global batch of " +
      std::to_string(limits.global_batch);
  if (limits.global_batch > kMostPlannedPasses) {
    reason +=
        ", and an iteration may have " + std::to_string(kMostPlannedPasses) + " passes at most";
  }
  return {reason, -1, 0, 0, {}};
}

std::string memory_reason(const SpaceLimits& limits) {
  if (limits.global_batch > kMostPlannedPasses) {
    return "every split of at most " + std::to_string(kMostPlannedPasses) +
           " passes needs more memory than a device has";
  }
  return "every split needs more memory than a device has";
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
      search_bound_s >= outcome.objective * (1 - 1e-9) ? Status::optimal : Status::feasible;
}

}  // namespace braid
