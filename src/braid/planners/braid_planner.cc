#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "braid/base/error.h"
#include "braid/planners/assess.h"
#include "braid/planners/planner.h"
#include "braid/planners/space.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What users tell plans apart by; of plans alike in it only the best is kept.
using Family = std::tuple<int, int, int, int, int, int, int, ScheduleKind, Recompute>;

Family family_of(const Configuration& c) {
  return {c.tp, c.cp, c.ep, c.pp, c.dp, c.vp, c.micro_batch, c.schedule, c.recompute};
}

struct Node {
  double bound_s = 0;
  Configuration configuration;
  /// Least bound first; equal ones in the order of the configurations.
  friend bool operator<(const Node& a, const Node& b) {
    return std::tie(b.bound_s, b.configuration) < std::tie(a.bound_s, a.configuration);
  }
};

struct Found {
  double time_s = 0;
  Configuration configuration;
  Ends ends;
};

/// The best plans of different families, best first.
class Best {
 public:
  explicit Best(std::size_t capacity) : capacity_(capacity) {}

  double cutoff_s() const { return found_.size() < capacity_ ? kInfinity : found_.back().time_s; }
  double best_s() const { return found_.empty() ? kInfinity : found_.front().time_s; }
  const std::vector<Found>& found() const { return found_; }

  void add(Found candidate) {
    const Family family = family_of(candidate.configuration);
    const auto same = std::find_if(found_.begin(), found_.end(), [&](const Found& other) {
      return family_of(other.configuration) == family;
    });
    if (same != found_.end()) {
      if (!better(candidate, *same)) return;
      found_.erase(same);
    }
    const auto at = std::find_if(found_.begin(), found_.end(),
                                 [&](const Found& other) { return better(candidate, other); });
    found_.insert(at, std::move(candidate));
    if (found_.size() > capacity_) found_.pop_back();
  }

 private:
  static bool better(const Found& a, const Found& b) {
    return std::tie(a.time_s, a.configuration) < std::tie(b.time_s, b.configuration);
  }

  std::size_t capacity_;
  std::vector<Found> found_;
};

std::vector<std::string> assumptions_of(const System& system) {
  std::vector<std::string> assumptions;
  for (const DeviceGroup& group : system.groups) {
    for (const Provenance& entry : group.chip.provenance) {
      if (entry.assumed) {
        assumptions.push_back(group.chip.name + ": " + entry.key + ": " + entry.source);
      }
    }
  }
  for (const Provenance& entry : system.provenance) {
    if (entry.assumed) assumptions.push_back(system.name + ": " + entry.key + ": " + entry.source);
  }
  return assumptions;
}

class Search {
 public:
  Search(const Job& job, const System& system, const SpaceOptions& space, const Budget& budget,
         const Progress& progress)
      : job_(job),
        system_(system),
        space_(space),
        budget_(budget),
        progress_(progress),
        chain_(chain_job(job, system)),
        tables_(*job.graph, job.precision, system),
        best_(static_cast<std::size_t>(std::max(1, space.top))) {}

  Outcome run();

 private:
  void push(const Configuration& configuration);
  void step(const Node& node);
  /// Whether a relaxation of what memory bounds need not be looked at, because it does not fit
  /// either or is reached in another order.
  bool is_superfluous(const Configuration& configuration, const Configuration& next,
                      const Assessment& assessment) const;
  void close_gap();

  const Job& job_;
  const System& system_;
  const SpaceOptions& space_;
  const Budget& budget_;
  const Progress& progress_;
  ChainJob chain_;
  LayerTables tables_;
  AssessmentScratch scratch_{chain_};
  std::priority_queue<Node> open_;
  std::set<Configuration> relaxed_;
  Best best_;
  /// Simulated 1F1B configurations whose other assignments might be faster still, by path bound.
  std::vector<Node> unproven_;
  /// No assignment that was not looked at is faster than this.
  double residual_bound_s_ = kInfinity;
  std::optional<Infeasibility> nearest_;
  Outcome outcome_;
};

void Search::push(const Configuration& configuration) {
  const double bound_s = configuration_bound_s(chain_, tables_, configuration);
  ++outcome_.work;
  if (bound_s < best_.cutoff_s()) open_.push({bound_s, configuration});
}

bool Search::is_superfluous(const Configuration& configuration, const Configuration& next,
                            const Assessment& assessment) const {
  // Offload comes after recomputation and sharding, the optimizer's state last: what would be
  // reached by going on from an offload is reached from the same configuration without it, which
  // must not have fit either.
  if (configuration.offload_optimizer) return true;
  const bool offloads = configuration.offload_activations || configuration.offload_weights;
  const bool offloads_more = next.offload_optimizer ||
                             next.offload_activations != configuration.offload_activations ||
                             next.offload_weights != configuration.offload_weights;
  if (offloads && !offloads_more) return true;
  // An even assignment stays as it is when the optimizer's state moves.
  return next.offload_optimizer && configuration.schedule != ScheduleKind::one_f_one_b &&
         assessment.needed_without_optimizer_bytes >
             usable_bytes(system_.groups.front().chip) * (1 + 1e-9);
}

void Search::step(const Node& node) {
  const Configuration& configuration = node.configuration;
  Assessment assessment = assess(chain_, tables_, configuration, best_.cutoff_s(), scratch_);
  ++outcome_.evaluated;
  if (assessment.memory_bound) {
    const bool has_host = system_.groups.front().chip.host.has_value();
    for (const Configuration& next : relaxations(configuration, space_, has_host)) {
      if (is_superfluous(configuration, next, assessment)) continue;
      if (relaxed_.insert(next).second) push(next);
    }
  }
  if (!assessment.feasible) {
    // What fails for want of host memory says nothing of the device's.
    const double available_bytes = usable_bytes(system_.groups.front().chip);
    if (assessment.needed_bytes > available_bytes &&
        (!nearest_ || assessment.needed_bytes < nearest_->needed_bytes)) {
      nearest_ = Infeasibility{"", assessment.tightest_stage, assessment.needed_bytes,
                               available_bytes, to_parallelism(configuration)};
    }
    return;
  }
  if (assessment.iteration_time_s == 0) return;
  if (configuration.schedule == ScheduleKind::one_f_one_b && configuration.pp > 1) {
    unproven_.push_back({assessment.path_s, configuration});
  }
  best_.add({assessment.iteration_time_s, configuration, std::move(assessment.ends)});
}

/// Goes through the unproven configurations, least bound first.
void Search::close_gap() {
  constexpr std::int64_t kMostPerConfiguration = 2000;
  std::sort(unproven_.begin(), unproven_.end(), [](const Node& a, const Node& b) { return b < a; });
  for (const Node& node : unproven_) {
    if (node.bound_s >= best_.best_s()) break;
    double time_s = best_.best_s();
    Ends ends;
    if (!improve_assignment(chain_, tables_, node.configuration, kMostPerConfiguration, time_s,
                            ends, outcome_.evaluated, scratch_)) {
      residual_bound_s_ = std::min(residual_bound_s_, node.bound_s);
    }
    if (!ends.empty()) best_.add({time_s, node.configuration, std::move(ends)});
  }
}

Outcome Search::run() {
  outcome_.physical_bound = lower_bound(*job_.graph, job_.precision, job_.global_batch, system_);
  outcome_.objective_name = "iteration time (simulated, s)";
  outcome_.assumptions = assumptions_of(system_);

  SpaceLimits limits;
  limits.devices = system_.device_count;
  limits.devices_per_node = system_.groups.front().devices_per_node;
  limits.global_batch = job_.global_batch;
  limits.layers = static_cast<int>(job_.graph->layers.size());
  limits.split = split_limits(*job_.graph);
  check_space(limits, space_);
  const std::vector<Configuration> base = base_configurations(limits, space_);
  if (base.empty()) {
    std::string reason =
        "no split uses all " + std::to_string(limits.devices) +
        " devices: the degrees must divide the model's heads, layers and the global batch of " +
        std::to_string(limits.global_batch);
    if (job_.global_batch > kMostPlannedPasses) {
      reason +=
          ", and an iteration may have " + std::to_string(kMostPlannedPasses) + " passes at most";
    }
    outcome_.infeasibility = Infeasibility{reason, -1, 0, 0, {}};
    return std::move(outcome_);
  }
  for (const Configuration& configuration : base) push(configuration);

  bool exhausted = false;
  while (!open_.empty() && open_.top().bound_s < best_.cutoff_s()) {
    if (budget_.work > 0 && outcome_.evaluated >= budget_.work) {
      exhausted = true;
      break;
    }
    const Node node = open_.top();
    open_.pop();
    step(node);
    if (progress_ && outcome_.evaluated % 64 == 0) {
      progress_(best_.best_s(), node.bound_s, outcome_.evaluated);
    }
  }

  if (!exhausted) {
    close_gap();
  } else {
    for (const Node& node : unproven_) {
      residual_bound_s_ = std::min(residual_bound_s_, node.bound_s);
    }
  }
  const double open_bound_s = exhausted ? open_.top().bound_s : kInfinity;
  outcome_.search_bound_s = std::min({best_.best_s(), residual_bound_s_, open_bound_s});
  if (best_.found().empty()) {
    outcome_.search_bound_s = 0;
    outcome_.status = exhausted ? Status::budget_exhausted : Status::infeasible;
    if (nearest_) {
      nearest_->reason = "every split needs more memory than a device has";
      if (job_.global_batch > kMostPlannedPasses) {
        nearest_->reason = "every split of at most " + std::to_string(kMostPlannedPasses) +
                           " passes needs more memory than a device has";
      }
      outcome_.infeasibility = nearest_;
    }
    return std::move(outcome_);
  }
  for (const Found& found : best_.found()) {
    Candidate candidate;
    candidate.plan = build_plan(chain_, tables_, found.configuration, found.ends, "braid");
    candidate.metrics = measure(candidate.plan);
    outcome_.candidates.push_back(std::move(candidate));
  }
  outcome_.objective = best_.best_s();
  outcome_.status = outcome_.search_bound_s >= outcome_.objective * (1 - 1e-9) ? Status::optimal
                                                                               : Status::feasible;
  return std::move(outcome_);
}

}  // namespace

Outcome plan_braid(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress) {
  if (!is_homogeneous(system)) {
    throw Error("the braid planner needs one kind of device on a hierarchical network; " +
                    system.name + " mixes them or gives a bandwidth matrix",
                "plan on one of its groups");
  }
  return Search(job, system, space, budget, progress).run();
}

}  // namespace braid
