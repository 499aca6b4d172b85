#include "validate/single_changes.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "braid/base/error.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/node_replicas.h"
#include "braid/plan/trainer_fit.h"
#include "braid/verify/verify.h"

namespace braid::test {
namespace {

using Counts = std::vector<std::int32_t>;

/// Layers of each chunk in model order: chunk c of stage s is number c·pp + s.
Counts counts_of(const Plan& plan) {
  Counts counts;
  for (std::size_t c = 0; c < plan.stages.front().chunks.size(); ++c) {
    for (const Stage& stage : plan.stages) {
      counts.push_back(static_cast<std::int32_t>(stage.chunks[c].layers.size()));
    }
  }
  return counts;
}

Counts even_counts(std::int32_t layers, std::int32_t chunks) {
  Counts counts;
  for (std::int32_t c = 0; c < chunks; ++c) {
    counts.push_back(layers / chunks + (c < layers % chunks ? 1 : 0));
  }
  return counts;
}

bool has_auto_sharding(const Plan& plan) {
  for (const std::vector<Option>& kind : plan.profile.kinds) {
    for (const Option& option : kind) {
      if (!option.sharded.empty()) return true;
    }
  }
  return false;
}

class Changes {
 public:
  Changes(const Plan& plan, const Graph& graph, const SpaceOptions& space,
          const std::function<void(const SingleChange&)>& visit)
      : plan_(plan), graph_(graph), space_(space), visit_(visit), counts_(counts_of(plan)) {}

  void run() {
    move_layers();
    if (has_auto_sharding(plan_)) return;
    if (space_.allow_offload) change_offload();
    if (!space_.recompute) change_recomputation();
    if (!space_.zero) change_zero();
    if (!space_.sequence_parallel) change_sequence_parallelism();
    if (!space_.whole_experts) change_whole_experts();
    change_order();
    if (!space_.schedule) change_schedule();
    change_micro_batch();
    change_chunks();
  }

 private:
  Chunk& chunk_at(Plan& plan, std::size_t number) const {
    const std::size_t stages = plan.stages.size();
    return plan.stages[number % stages].chunks[number / stages];
  }

  void move_layers() {
    for (std::size_t cut = 0; cut + 1 < counts_.size(); ++cut) {
      for (const bool forward : {true, false}) {
        SingleChange change{"", plan_};
        change.plan.claims.reset();
        Chunk& before = chunk_at(change.plan, cut);
        Chunk& behind = chunk_at(change.plan, cut + 1);
        Chunk& from = forward ? before : behind;
        if (from.layers.size() < 2) continue;
        const auto layer = static_cast<std::ptrdiff_t>(forward ? from.layers.size() - 1 : 0);
        const auto move = [&](std::vector<std::int32_t>& out, std::vector<std::int32_t>& in) {
          in.insert(forward ? in.begin() : in.end(), out[static_cast<std::size_t>(layer)]);
          out.erase(out.begin() + layer);
        };
        Chunk& to = forward ? behind : before;
        move(from.layers, to.layers);
        move(from.options, to.options);
        change.what = "layer " + std::to_string(forward ? to.layers.front() : to.layers.back()) +
                      " from chunk " + std::to_string(cut + (forward ? 0 : 1)) + " to " +
                      std::to_string(cut + (forward ? 1 : 0));
        visit_(change);
      }
    }
  }

  void show(const std::string& what, Parallelism form, const Counts& counts) {
    SingleChange change{what, {}};
    const TrainerBehaviour& does = plan_.trainer.does;
    form.replicate = does.node_replicas ? node_replicas(plan_.system, form) : 1;
    try {
      change.plan = direct_plan(graph_, {form, plan_.precision, plan_.trainer, plan_.global_batch},
                                plan_.system, counts);
    } catch (const Error&) {
      return;  // The model does not allow it.
    }
    visit_(change);
  }

  void change_offload() {
    for (const auto& [name, offload] :
         {std::pair{"optimizer", &Parallelism::offload_optimizer},
          std::pair{"weights", &Parallelism::offload_weights},
          std::pair{"activations", &Parallelism::offload_activations}}) {
      Parallelism form = plan_.parallel;
      form.*offload = !(form.*offload);
      show(std::string("offload of ") + name + (form.*offload ? " on" : " off"), form, counts_);
    }
  }

  void change_recomputation() {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Parallelism form = plan_.parallel;
      if (std::exchange(form.recompute, recompute) == recompute) continue;
      show("recomputation " + std::to_string(static_cast<int>(recompute)), form, counts_);
    }
  }

  void change_zero() {
    for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
      Parallelism form = plan_.parallel;
      if (std::exchange(form.zero, zero) == zero) continue;
      show("ZeRO stage " + std::to_string(static_cast<int>(zero)), form, counts_);
    }
  }

  void change_sequence_parallelism() {
    Parallelism form = plan_.parallel;
    form.sequence_parallel = !form.sequence_parallel;
    show(form.sequence_parallel ? "sequence parallelism on" : "sequence parallelism off", form,
         counts_);
  }

  void change_whole_experts() {
    Parallelism form = plan_.parallel;
    if (form.tp == 1 || form.ep == 1) return;
    form.whole_experts = !form.whole_experts;
    show(form.whole_experts ? "experts whole" : "experts sharded", form, counts_);
  }

  void change_order() {
    Parallelism form = plan_.parallel;
    std::iter_swap(std::find(form.order.begin(), form.order.end(), Axis::dp),
                   std::find(form.order.begin(), form.order.end(), Axis::pp));
    show("dp and pp swapped in the order of axes", form, counts_);
  }

  void change_schedule() {
    if (plan_.parallel.vp > 1) return;
    for (const ScheduleKind schedule : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
      Parallelism form = plan_.parallel;
      if (std::exchange(form.schedule, schedule) == schedule) continue;
      show(schedule == ScheduleKind::gpipe ? "GPipe" : "1F1B", form, counts_);
    }
  }

  void change_micro_batch() {
    const std::int64_t samples = plan_.global_batch / plan_.parallel.dp;
    for (std::int64_t size = 1; size <= samples; ++size) {
      if (samples % size != 0 || size == plan_.parallel.micro_batch) continue;
      if (!space_.micro_batch.allows(size)) continue;
      Parallelism form = plan_.parallel;
      form.micro_batch = static_cast<int>(size);
      form.num_micro_batches = samples / size;
      show("micro-batch " + std::to_string(size), form, counts_);
    }
  }

  void change_chunks() {
    const auto layers = static_cast<std::int32_t>(graph_.layers.size());
    if (plan_.parallel.pp < 2) return;
    for (int vp = 1; vp * plan_.parallel.pp <= layers; ++vp) {
      if (vp == plan_.parallel.vp || !space_.vp.allows(vp)) continue;
      Parallelism form = plan_.parallel;
      form.vp = vp;
      form.schedule = vp == 1 ? ScheduleKind::one_f_one_b : ScheduleKind::interleaved;
      if (space_.schedule && *space_.schedule != form.schedule) continue;
      const std::string what = "vp " + std::to_string(vp);
      show(what + ", as trainers deal layers", form, {});
      show(what + ", layers dealt by number", form, even_counts(layers, vp * form.pp));
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const SpaceOptions& space_;
  const std::function<void(const SingleChange&)>& visit_;
  const Counts counts_;
};

}  // namespace

void for_each_single_change(const Plan& plan, const Graph& graph, const SpaceOptions& space,
                            const std::function<void(const SingleChange&)>& visit) {
  Changes(plan, graph, space, visit).run();
}

FastestChange fastest_single_change(const Plan& plan, const Graph& graph,
                                    const SpaceOptions& space) {
  FastestChange fastest;
  fastest.time_s = std::numeric_limits<double>::infinity();
  fastest.plan_s = verify(plan).iteration_time_s;
  for_each_single_change(plan, graph, space, [&](const SingleChange& change) {
    ++fastest.shown;
    if (!refusal(space.can, change.plan).empty()) return;
    const Verification verification = verify(change.plan);
    if (!verification.holds()) return;
    ++fastest.accepted;
    if (verification.iteration_time_s >= fastest.time_s) return;
    fastest.time_s = verification.iteration_time_s;
    fastest.what = change.what;
    fastest.plan = change.plan;
  });
  return fastest;
}

}  // namespace braid::test
