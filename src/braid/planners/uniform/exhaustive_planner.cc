#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/job/assignment_bound.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space_rules.h"
#include "braid/planners/uniform/best_plans.h"
#include "braid/planners/uniform/lacking_memory.h"
#include "braid/planners/uniform/searched_space.h"
#include "braid/planners/uniform/single_changes.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/search/one_f_one_b_partitioner.h"

namespace braid {
namespace {

/// What decides the layer table among configurations of one base.
auto table_key(const Configuration& c) {
  return std::make_tuple(c.recompute, c.offload_activations, c.offload_weights);
}

/// All ways to trade time for memory that relaxations lead to from a base configuration with this
/// ZeRO stage, those that share a layer table next to each other. Other fields are as by default.
std::vector<Configuration> trades_from(Zero zero, const SpaceLimits& limits,
                                       const SpaceOptions& options, bool has_host) {
  Configuration start;
  start.recompute = options.recompute.value_or(Recompute::none);
  start.zero = zero;
  start.dp = 2;  // There are ranks to shard over.
  std::set<Configuration> known = {start};
  std::vector<Configuration> open = {start};
  while (!open.empty()) {
    const Configuration configuration = open.back();
    open.pop_back();
    for (const Configuration& next : relaxations(configuration, limits, options, has_host)) {
      if (known.insert(next).second) open.push_back(next);
    }
  }
  std::vector<Configuration> trades(known.begin(), known.end());
  std::stable_sort(
      trades.begin(), trades.end(),
      [](const Configuration& a, const Configuration& b) { return table_key(a) < table_key(b); });
  return trades;
}

Configuration with_trade(const Configuration& base, const Configuration& trade) {
  Configuration configuration = base;
  configuration.recompute = trade.recompute;
  configuration.zero = trade.zero;
  configuration.offload_optimizer = trade.offload_optimizer;
  configuration.offload_weights = trade.offload_weights;
  configuration.offload_activations = trade.offload_activations;
  return configuration;
}

/// Looks at one configuration after another.
class ExhaustiveWalk {
 public:
  ExhaustiveWalk(const Job& job, const System& system, const SpaceOptions& space)
      : space_(space),
        chain_(chain_job(job, system)),
        tables_(job, system),
        available_bytes_(usable_bytes(system.groups.front().chip)),
        best_(static_cast<std::size_t>(std::max(1, space.top))) {
    chain_.dealt_evenly = !space.can.uneven_stages;
  }

  void visit(const Configuration& configuration) {
    if (leaves_assignments_out(chain_, configuration)) {
      others_bound_s_ =
          std::min(others_bound_s_, configuration_bound_s(chain_, tables_, configuration));
    }
    if (configuration.schedule == ScheduleKind::one_f_one_b && configuration.pp > 1 &&
        !chain_.dealt_evenly) {
      visit_uneven(configuration);
    } else {
      visit_even(configuration);
    }
  }

  bool is_distinct(const Configuration& configuration) {
    return tables_.is_distinct(configuration);
  }

  /// Forgets layer tables: the next configurations have other degrees.
  void forget_tables() {
    tables_.clear();
    uneven_table_ = partitioner_table_ = nullptr;
    partitioner_.reset();
  }

  const BestPlans& best() const { return best_; }

  Outcome finish(Outcome outcome, const SpaceLimits& limits) {
    if (best_.found().empty()) {
      outcome.status = Status::infeasible;
      if (nearest_) nearest_->reason = memory_reason(limits);
      outcome.infeasibility = nearest_ ? nearest_ : uneven_layers();
      return outcome;
    }
    const ClosedGap closed =
        close_gap(chain_, tables_, std::move(unproven_), best_, outcome.evaluated, scratch_);
    best_.add(with_single_changes(chain_, tables_, best_.found().front(), {limits, space_},
                                  outcome.evaluated, scratch_));
    outcome.space = searched_space(limits, space_);
    if (others_bound_s_ < best_.best_s()) outcome.assignments_bound_s = others_bound_s_;
    finish_outcome(chain_, tables_, best_, std::min(best_.best_s(), closed.residual_bound_s),
                   "exhaustive", outcome);
    return outcome;
  }

  /// The outcome when the budget is used up: nothing is known of the rest.
  Outcome give_up(Outcome outcome, const SpaceLimits& limits) {
    outcome = finish(std::move(outcome), limits);
    outcome.search_bound_s = 0;
    outcome.status = outcome.candidates.empty() ? Status::budget_exhausted : Status::feasible;
    return outcome;
  }

 private:
  /// Deals layers out as if memory were endless, unless that is what uneven_ holds already: many
  /// configurations differ in memory alone.
  void lay_out_uneven(const Configuration& configuration) {
    const LayerTable& table = tables_.at(configuration);
    if (&table == uneven_table_ && configuration.pp == uneven_for_.pp &&
        configuration.num_micro_batches == uneven_for_.num_micro_batches &&
        configuration.order == uneven_for_.order) {
      return;
    }
    uneven_table_ = &table;
    uneven_for_ = configuration;
    scratch_.evaluator.fill_handovers(
        configuration,
        boundary_bytes({0, 0, chain_.least_hop_bytes}, to_parallelism(configuration)),
        scratch_.handover_s);
    if (&table != partitioner_table_) {
      partitioner_table_ = &table;
      partitioner_.emplace(table.chain);
    }
    partitioner_->set_pipeline(handovers_of(chain_, scratch_), configuration.num_micro_batches);
    MemoryForm endless;
    endless.available_bytes = kInfinity;
    const auto partition = partitioner_->within(endless);
    uneven_path_s_ = partition->path_s;
    uneven_excess_s_ = partition->excess_s;
    fill_layout(chain_.kind_of_layer, table.kinds, configuration.pp, 1, partition->ends, uneven_);
  }

  void visit_uneven(const Configuration& configuration) {
    lay_out_uneven(configuration);
    const Evaluator::Memory memory = scratch_.evaluator.memory(configuration, uneven_);
    if (memory.needed_bytes <= available_bytes_ && memory.host_fits()) {
      note_unproven(configuration, uneven_path_s_);
      const double time_s = scratch_.evaluator.time_s(configuration, uneven_);
      if (time_s < best_.cutoff_s()) best_.add({time_s, configuration, uneven_.ends});
      return;
    }
    const MemoryForm form =
        memory_form(scratch_.evaluator.context(configuration), available_bytes_);
    auto partition = partitioner_->within(form, uneven_excess_s_);
    if (!partition) {
      note_that_none_fits(configuration);
      return;
    }
    note_unproven(configuration, partition->path_s);
    fill_layout(chain_.kind_of_layer, uneven_table_->kinds, configuration.pp, 1, partition->ends,
                scratch_.layout);
    const double time_s = scratch_.evaluator.time_s(configuration, scratch_.layout);
    if (time_s < best_.cutoff_s()) best_.add({time_s, configuration, std::move(partition->ends)});
  }

  void note_unproven(const Configuration& configuration, double path_s) {
    const double bound_s = path_bound_s(chain_, tables_, configuration, path_s);
    if (bound_s < best_.cutoff_s()) unproven_.push_back({bound_s, configuration, true});
  }

  /// No split fits: the most even one shows what is missing, unless there is a plan.
  void note_that_none_fits(const Configuration& configuration) {
    if (!best_.found().empty()) return;
    keep_nearest(chain_, tables_, configuration, 0, scratch_, nearest_);
  }

  void visit_even(const Configuration& configuration) {
    Assessment assessment = assess(chain_, tables_, configuration, best_.cutoff_s(), scratch_);
    if (!assessment.feasible) {
      if (!best_.found().empty()) return;
      if (assessment.tightest_stage < 0) return;  // It cannot be dealt out.
      keep_nearest(chain_, tables_, configuration, assessment.needed_bytes, scratch_, nearest_);
    } else if (assessment.iteration_time_s > 0) {
      best_.add({assessment.iteration_time_s, configuration, std::move(assessment.ends)});
    }
  }

  const SpaceOptions& space_;
  ChainJob chain_;
  LayerTables tables_;
  double available_bytes_;
  BestPlans best_;
  AssessmentScratch scratch_{chain_};
  /// The assignment of least path for 1F1B, for the table and depth that it was made for.
  Layout uneven_;
  const LayerTable* uneven_table_ = nullptr;
  Configuration uneven_for_;
  double uneven_path_s_ = 0, uneven_excess_s_ = 0;
  std::optional<OneFOneBPartitioner> partitioner_;
  const LayerTable* partitioner_table_ = nullptr;
  std::vector<BoundedConfiguration> unproven_;
  /// Nothing that the space leaves out is faster.
  double others_bound_s_ = kInfinity;
  std::optional<Infeasibility> nearest_;
};

/// Whether two base configurations have the same degrees, micro-batch and layer tables.
bool same_group(const Configuration& a, const Configuration& b) {
  const auto key = [](const Configuration& c) {
    return std::tie(c.tp, c.cp, c.ep, c.pp, c.dp, c.vp, c.micro_batch, c.sequence_parallel,
                    c.whole_experts, c.sharding);
  };
  return key(a) == key(b);
}

}  // namespace

Outcome plan_exhaustively(const Job& job, const System& system, const SpaceOptions& options,
                          const Budget& budget, const Progress& progress) {
  if (!is_homogeneous(system)) {
    throw Error("the exhaustive planner needs one kind of device on a hierarchical network; " +
                    system.name + " mixes them or gives a bandwidth matrix",
                "plan on one of its groups");
  }
  SpaceOptions space = options;
  space.all_devices = true;
  Outcome outcome = begin_outcome(job, system);
  const SpaceLimits limits = space_limits(job, system);
  check_space(limits, space);
  std::vector<Configuration> base = base_configurations(limits, space);
  if (base.empty()) {
    outcome.infeasibility = empty_space(limits, space);
    return outcome;
  }
  std::sort(base.begin(), base.end());
  const bool has_host = system.groups.front().chip.host.has_value();
  // By the stage of ZeRO of the base: all have the same layer tables in the same order.
  SpaceOptions any = space;
  any.listed = nullptr;   // Which of them a configuration's layers have options for is seen there.
  any.can.never.clear();  // Likewise which the trainer refuses of it.
  const std::array trades = {trades_from(Zero::none, limits, any, has_host),
                             trades_from(Zero::optimizer, limits, any, has_host),
                             trades_from(Zero::gradients, limits, any, has_host),
                             trades_from(Zero::parameters, limits, any, has_host)};

  ExhaustiveWalk walk(job, system, space);
  for (std::size_t first = 0; first < base.size();) {
    std::size_t last = first + 1;
    while (last < base.size() && same_group(base[first], base[last])) ++last;
    if (first > 0 && std::tie(base[first].tp, base[first].cp, base[first].ep) !=
                         std::tie(base[first - 1].tp, base[first - 1].cp, base[first - 1].ep)) {
      walk.forget_tables();
    }
    if (!walk.is_distinct(base[first])) {
      first = last;
      continue;
    }
    // Table by table, so that one and its assignment of layers serve the whole group; and trades
    // that share a table next to each other, as many differ in synchronisation alone.
    std::array<std::size_t, 4> at = {};
    while (at[0] < trades[0].size()) {
      std::array<std::size_t, 4> end = at;
      for (std::size_t list = 0; list < trades.size(); ++list) {
        while (end[list] < trades[list].size() &&
               table_key(trades[list][end[list]]) == table_key(trades[0][at[0]])) {
          ++end[list];
        }
      }
      for (std::size_t i = first; i < last; ++i) {
        const auto list = static_cast<std::size_t>(base[i].zero);
        for (std::size_t t = at[list]; t < end[list]; ++t) {
          if (budget.work > 0 && outcome.evaluated >= budget.work) {
            return walk.give_up(std::move(outcome), limits);
          }
          const Configuration configuration = with_trade(base[i], trades[list][t]);
          if (!is_listed(space, configuration) || is_excluded(space.can, configuration)) continue;
          if (configuration.zero != Zero::none && configuration.dp * configuration.cp == 1 &&
              base[i].zero == Zero::none) {
            continue;
          }
          walk.visit(configuration);
          ++outcome.evaluated;
          ++outcome.work;
        }
      }
      at = end;
    }
    first = last;
    if (progress) progress(walk.best().best_s(), 0, outcome.evaluated);
  }
  return walk.finish(std::move(outcome), limits);
}

}  // namespace braid
