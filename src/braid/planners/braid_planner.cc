#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <utility>

#include "braid/base/error.h"
#include "braid/planners/assignment_bound.h"
#include "braid/planners/mixed_baseline.h"
#include "braid/planners/mixed_planner.h"
#include "braid/planners/planner.h"
#include "braid/planners/search.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Least bound on top.
struct Later {
  bool operator()(const BoundedConfiguration& a, const BoundedConfiguration& b) const {
    return b < a;
  }
};

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
        best_(static_cast<std::size_t>(std::max(1, space.top))),
        outcome_(begin_outcome(job, system)) {}

  Outcome run();

 private:
  void push(const Configuration& configuration);
  void step(const BoundedConfiguration& node);
  void note_infeasible(const Configuration& configuration, int stage, double needed_bytes);
  /// Whether a relaxation of what memory bounds need not be looked at, because it does not fit
  /// either or is reached in another order.
  bool is_superfluous(const Configuration& configuration, const Configuration& next,
                      const Assessment& assessment) const;

  const Job& job_;
  const System& system_;
  const SpaceOptions& space_;
  const Budget& budget_;
  const Progress& progress_;
  ChainJob chain_;
  LayerTables tables_;
  AssessmentScratch scratch_{chain_};
  std::priority_queue<BoundedConfiguration, std::vector<BoundedConfiguration>, Later> open_;
  std::set<Configuration> relaxed_;
  BestPlans best_;
  /// Simulated 1F1B configurations whose other assignments might be faster still, by path bound.
  std::vector<BoundedConfiguration> unproven_;
  /// No assignment that was not looked at is faster than this.
  double residual_bound_s_ = kInfinity;
  std::optional<Infeasibility> nearest_;
  /// Of what sums alone show not to fit, what is least far from it.
  struct Hopeless {
    double bound_bytes = 0;
    Configuration configuration;
  };
  std::optional<Hopeless> hopeless_;
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

void Search::note_infeasible(const Configuration& configuration, int stage, double needed_bytes) {
  // What fails for want of host memory says nothing of the device's.
  const double available_bytes = usable_bytes(system_.groups.front().chip);
  if (needed_bytes > available_bytes && (!nearest_ || needed_bytes < nearest_->needed_bytes)) {
    nearest_ =
        Infeasibility{"", stage, needed_bytes, available_bytes, to_parallelism(configuration)};
  }
}

void Search::step(const BoundedConfiguration& node) {
  const Configuration& configuration = node.configuration;
  Assessment assessment;
  const LeastMemory least = least_memory(tables_, configuration, scratch_);
  const bool hopeless = least.device_bytes > usable_bytes(system_.groups.front().chip) * (1 + 1e-9);
  if (hopeless) {
    assessment.memory_bound = true;
    assessment.needed_without_optimizer_bytes = least.without_optimizer_bytes;
    if (!hopeless_ || least.device_bytes < hopeless_->bound_bytes) {
      hopeless_ = Hopeless{least.device_bytes, configuration};
    }
  } else {
    assessment = assess(chain_, tables_, configuration, best_.cutoff_s(), scratch_);
  }
  ++outcome_.evaluated;
  if (assessment.memory_bound) {
    const bool has_host = system_.groups.front().chip.host.has_value();
    for (const Configuration& next : relaxations(configuration, space_, has_host)) {
      if (is_superfluous(configuration, next, assessment)) continue;
      if (relaxed_.insert(next).second) push(next);
    }
  }
  if (!assessment.feasible) {
    note_infeasible(configuration, assessment.tightest_stage, assessment.needed_bytes);
    return;
  }
  if (assessment.iteration_time_s == 0) return;
  if (configuration.schedule == ScheduleKind::one_f_one_b && configuration.pp > 1) {
    unproven_.push_back({assessment.path_s, configuration});
  }
  best_.add({assessment.iteration_time_s, configuration, std::move(assessment.ends)});
}

Outcome Search::run() {
  const SpaceLimits limits = space_limits(job_, system_);
  check_space(limits, space_);
  const std::vector<Configuration> base = base_configurations(limits, space_);
  if (base.empty()) {
    outcome_.infeasibility = empty_space(limits);
    return std::move(outcome_);
  }
  for (const Configuration& configuration : base) push(configuration);

  bool exhausted = false;
  while (!open_.empty() && open_.top().bound_s < best_.cutoff_s()) {
    if (budget_.work > 0 && outcome_.evaluated >= budget_.work) {
      exhausted = true;
      break;
    }
    const BoundedConfiguration node = open_.top();
    open_.pop();
    step(node);
    if (progress_ && outcome_.evaluated % 64 == 0) {
      progress_(best_.best_s(), node.bound_s, outcome_.evaluated);
    }
  }

  if (!exhausted) {
    residual_bound_s_ = close_gap(chain_, tables_, unproven_, best_, outcome_.evaluated, scratch_);
  } else {
    for (const BoundedConfiguration& node : unproven_) {
      residual_bound_s_ = std::min(residual_bound_s_, node.bound_s);
    }
  }
  const double open_bound_s = exhausted ? open_.top().bound_s : kInfinity;
  if (best_.found().empty()) {
    if (hopeless_) {
      const Evaluator::Memory memory =
          even_memory(chain_, tables_, hopeless_->configuration, scratch_);
      note_infeasible(hopeless_->configuration, memory.tightest_stage, memory.needed_bytes);
    }
    outcome_.search_bound_s = 0;
    outcome_.status = exhausted ? Status::budget_exhausted : Status::infeasible;
    if (nearest_) {
      nearest_->reason = memory_reason(limits);
      outcome_.infeasibility = nearest_;
    }
    return std::move(outcome_);
  }
  finish_outcome(chain_, tables_, best_,
                 std::min({best_.best_s(), residual_bound_s_, open_bound_s}), "braid", outcome_);
  return std::move(outcome_);
}

Outcome plan_homogeneous(const Job& job, const System& system, const SpaceOptions& space,
                         const Budget& budget, const Progress& progress) {
  return Search(job, system, space, budget, progress).run();
}

}  // namespace

Outcome plan_braid(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress) {
  return plan_by_kind(plan_homogeneous, plan_mixed, job, system, space, budget, progress);
}

}  // namespace braid
