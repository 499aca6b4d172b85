#include "braid/planners/uniform/single_changes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Lists the configurations of single_changes().
class ChangeList {
 public:
  ChangeList(const Configuration& from, const SpaceLimits& limits, const SpaceOptions& options)
      : from_(from), limits_(limits), options_(options) {}

  std::vector<Configuration> take() { return std::move(changes_); }

  template <typename Field, typename Values>
  void add(Field Configuration::*field, const Values& values) {
    for (const Field value : values) {
      Configuration next = from_;
      next.*field = value;
      push(next);
    }
  }
  void add_offloads() {
    for (bool Configuration::*offload :
         {&Configuration::offload_optimizer, &Configuration::offload_activations,
          &Configuration::offload_weights}) {
      add(offload, std::array{!(from_.*offload)});
    }
  }
  void add_forms() {
    for (const TensorSharding& form : tensor_shardings(from_, limits_, options_)) {
      push(with_form(from_, form));
    }
  }
  void add_micro_batches() {
    for (const int size : micro_batches(from_, limits_, options_)) {
      Configuration next = from_;
      next.micro_batch = size;
      next.num_micro_batches = limits_.global_batch / from_.dp / size;
      push(next);
    }
  }
  void add_chunks() {
    for (std::int32_t vp = 1; from_.pp > 1 && vp <= limits_.layers / from_.pp; ++vp) {
      Configuration next = from_;
      next.vp = vp;
      if (vp != from_.vp) {
        next.schedule = vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
      }
      push(next);
    }
  }

 private:
  void push(const Configuration& next) {
    const bool has_passes = next.num_micro_batches * next.pp * next.vp <= kMostPlannedPasses;
    const bool is_dealt = next.vp == 1 || next.num_micro_batches % next.pp == 0;
    // A rank that keeps no whole weights has none to offload.
    const bool offloads = !next.offload_weights || next.zero != Zero::parameters;
    const bool is_wanted =
        (!options_.schedule || *options_.schedule == next.schedule) && options_.vp.allows(next.vp);
    if (next == from_ || !has_passes || !is_dealt || !offloads || !is_wanted) return;
    if (!is_listed(options_, next) || !refusal(options_.can, to_parallelism(next)).empty()) return;
    changes_.push_back(next);
  }

  const Configuration& from_;
  const SpaceLimits& limits_;
  const SpaceOptions& options_;
  std::vector<Configuration> changes_;
};

/// Looks at one change after another and keeps the fastest.
class Step {
 public:
  Step(const ChainJob& chain, LayerTables& tables, const FoundPlan& from, std::int64_t& timed,
       AssessmentScratch& scratch)
      : chain_(chain), tables_(tables), from_(from), best_(from), timed_(timed), scratch_(scratch) {
    // Sums in another order differ in their last bits.
    best_.time_s *= kBelowRounding;
  }

  /// Moves a layer over each cut, either way.
  void move_layers() {
    Ends ends = from_.ends;
    for (std::size_t cut = 0; cut + 1 < ends.size(); ++cut) {
      const std::int32_t begin = cut == 0 ? 0 : ends[cut - 1];
      for (const std::int32_t by : {-1, 1}) {
        const std::int32_t end = from_.ends[cut] + by;
        if (end <= begin || end >= ends[cut + 1]) continue;
        ends[cut] = end;
        look_at(from_.configuration, ends);
      }
      ends[cut] = from_.ends[cut];
    }
  }

  void look_at(const Configuration& configuration, const Ends& ends) {
    ++timed_;
    const double time_s = time_of(chain_, tables_, configuration, ends, best_.time_s, scratch_);
    if (time_s < best_.time_s) best_ = {time_s, configuration, ends};
  }

  void look_at(const Configuration& configuration) {
    if (std::ssize(from_.ends) == std::int64_t{configuration.pp} * configuration.vp) {
      look_at(configuration, from_.ends);
    }
    ++timed_;
    Assessment assessment = assess(chain_, tables_, configuration, best_.time_s, scratch_);
    if (!assessment.feasible || assessment.iteration_time_s == 0) return;
    if (assessment.iteration_time_s >= best_.time_s) return;
    best_ = {assessment.iteration_time_s, configuration, std::move(assessment.ends)};
  }

  const FoundPlan& best() const { return best_; }

 private:
  const ChainJob& chain_;
  LayerTables& tables_;
  const FoundPlan& from_;
  FoundPlan best_;
  std::int64_t& timed_;
  AssessmentScratch& scratch_;
};

}  // namespace

std::vector<Configuration> single_changes(const Configuration& configuration,
                                          const SpaceLimits& limits, const SpaceOptions& options,
                                          bool has_host) {
  ChangeList list(configuration, limits, options);
  if (has_host && options.allow_offload) list.add_offloads();
  if (!options.recompute) {
    list.add(&Configuration::recompute,
             std::array{Recompute::none, Recompute::selective, Recompute::full});
  }
  if (!options.zero && configuration.dp * configuration.cp > 1) {
    list.add(&Configuration::zero,
             std::array{Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters});
  }
  list.add_forms();
  if (configuration.pp > 1 && configuration.dp > 1) {
    list.add(&Configuration::order,
             std::array{AxisOrder::pipeline_outermost, AxisOrder::data_outermost});
  }
  if (configuration.pp > 1 && configuration.vp == 1) {
    list.add(&Configuration::schedule, std::array{ScheduleKind::one_f_one_b, ScheduleKind::gpipe});
  }
  list.add_micro_batches();
  list.add_chunks();
  return list.take();
}

FoundPlan with_single_changes(const ChainJob& chain, LayerTables& tables, FoundPlan plan,
                              const ChangeSpace& space, std::int64_t& timed,
                              AssessmentScratch& scratch) {
  const bool has_host = chain.system->groups.front().chip.host.has_value();
  while (true) {
    Step step(chain, tables, plan, timed, scratch);
    if (!chain.dealt_evenly) step.move_layers();
    for (const Configuration& next :
         single_changes(plan.configuration, space.limits, space.options, has_host)) {
      if (tables.is_distinct(next)) step.look_at(next);
    }
    if (step.best().time_s >= plan.time_s * kBelowRounding) return plan;
    plan = step.best();
  }
}

FoundPlan with_moved_layers(const ChainJob& chain, LayerTables& tables, FoundPlan plan,
                            std::int64_t& timed, AssessmentScratch& scratch) {
  while (true) {
    Step step(chain, tables, plan, timed, scratch);
    step.move_layers();
    if (step.best().time_s >= plan.time_s * kBelowRounding) return plan;
    plan = step.best();
  }
}

}  // namespace braid
