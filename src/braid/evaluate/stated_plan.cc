#include "braid/evaluate/stated_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/model_shape.h"
#include "braid/plan/names.h"
#include "braid/plan/node_replicas.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/job/fixed_degrees.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/report/heading.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"
#include "braid/verify/verify.h"

namespace braid {
namespace {

/// Copies of sharded state: as the trainer has them, or as they are stated. Throws Error for copies
/// that the data-parallel ranks do not make up.
int copies_of_state(const Parallelism& p, const Job& job, const System& system) {
  if (job.trainer.does.node_replicas) return node_replicas(system, p);
  if (!p.may_have_copies() || p.replicate <= 1) return 1;
  if (p.dp % p.replicate != 0) {
    throw Error(Where{"", 0, "--dp"},
                fmt::format("the run keeps {} copies of its sharded state, which do not divide {} "
                            "data-parallel ranks",
                            p.replicate, p.dp),
                "choose a multiple of the copies");
  }
  return p.replicate;
}

/// With the data parallel degree and the micro-batches that follow from the rest.
Parallelism completed(Parallelism p, const Job& job, const System& system) {
  if (p.dp == 0) {
    p.dp = 1;
    const std::int64_t shards = p.devices();
    if (shards > system.device_count || system.device_count % shards != 0) {
      throw Error(fmt::format("tp {}, pp {} and cp {} make {} devices, which do not divide the {}",
                              p.tp, p.pp, p.cp, shards, system.device_count),
                  shards > system.device_count ? "choose smaller degrees"
                                               : "give --dp, and the devices beyond stay idle");
    }
    p.dp = static_cast<int>(system.device_count / shards);
  }
  p.num_micro_batches = job.global_batch / (std::int64_t{p.dp} * p.micro_batch);
  p.replicate = copies_of_state(p, job, system);
  return p;
}

/// All degrees as the restrictions that a user would set, for check_space().
SpaceOptions restrictions(const Parallelism& p) {
  SpaceOptions options;
  fix_degrees(p, options);
  if (p.vp > 1) options.vp = p.vp;
  if (p.tp > 1) options.sequence_parallel = p.sequence_parallel;
  if (p.whole_experts) options.whole_experts = true;
  return options;
}

/// Throws Error for groups of experts that the ranks they are spread over do not make up.
void check_expert_ranks(const Parallelism& p) {
  const std::int64_t ranks = p.expert_axis();
  if (ranks % p.ep == 0) return;
  // Spread over tensor parallel ranks too, they may go.
  const bool go_whole = !p.whole_experts && ranks * p.tp % p.ep == 0;
  throw Error(
      Where{"", 0, "--ep"},
      fmt::format("experts are split over data and context parallel ranks, {}, and {} does "
                  "not divide {}, {}",
                  p.whole_experts ? "and tensor parallel ones where these leave them whole"
                                  : "not over tp or pp",
                  p.ep, p.whole_experts ? "dp times cp times tp" : "dp times cp", ranks),
      fmt::format("choose a divisor of {}, {}or change --tp, --pp, --dp or --cp", ranks,
                  go_whole ? "say --whole-experts on, which splits them over tp too, " : ""));
}

/// Throws Error for passes that no schedule has.
void check_passes(const Parallelism& p) {
  if (p.schedule == ScheduleKind::interleaved && p.num_micro_batches % p.pp != 0) {
    throw Error(Where{"", 0, "--vp"},
                fmt::format("interleaving takes micro-batches {} at a time, one a stage, and there "
                            "are {}",
                            p.pp, p.num_micro_batches),
                "change --vp, --micro-batch, --dp or --global-batch");
  }
  if (p.num_micro_batches * p.pp * p.vp > kMostPlannedPasses) {
    throw Error(Where{"", 0, "--micro-batch"},
                fmt::format("an iteration has {} forward passes, more than the {} that are looked "
                            "at",
                            p.num_micro_batches * p.pp * p.vp, kMostPlannedPasses),
                "choose larger micro-batches");
  }
}

/// What stages lack in memory, of the one that lacks most; empty: nothing.
std::string misfit_of(const Plan& plan) {
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  std::string text;
  double most_short = 0;
  for (std::size_t s = 0; s < memories.size(); ++s) {
    const auto look_at = [&](double needed, double available, const char* what) {
      if (needed <= available * kAboveRounding || needed - available <= most_short) return;
      most_short = needed - available;
      text = fmt::format("stage {} of {} needs {} of {} memory and has {}, {} too little", s + 1,
                         memories.size(), format_bytes(needed), what, format_bytes(available),
                         format_bytes(most_short));
    };
    look_at(memories[s].device_total(), usable_bytes_of_stage(plan, s), "device");
    const auto& host = chip_at(plan.system, plan.stages[s].devices.front()).host;
    look_at(memories[s].host, host ? host->bytes : 0, "host");
  }
  return text;
}

/// The option without which the trainer would not say this of a form; empty: not one alone.
std::string refused_option(const TrainerLimits& can, const Parallelism& p,
                           const std::string& reason) {
  Parallelism without = p;
  without.offload_optimizer = without.offload_weights = without.offload_activations = false;
  if (refusal(can, without) != reason) return "--offload";
  std::string found;
  for (const auto& [option, degree] : {std::pair{"--cp", &Parallelism::cp},
                                       {"--ep", &Parallelism::ep},
                                       {"--pp", &Parallelism::pp}}) {
    without = p;
    without.*degree = 1;
    if (refusal(can, without) == reason) continue;
    if (!found.empty()) return "";
    found = option;
  }
  return found;
}

/// Throws Error for what the verifier has against a plan, but for memory.
void check_plan(const Plan& plan) {
  for (const Check& check : verify(plan).checks) {
    if (check.holds || check.name == "memory") continue;
    throw Error("the configuration fails the check '" + check.name + "': " + check.detail,
                "change the degrees or the layout");
  }
}

}  // namespace

StatedPlan stated_plan(const Job& job, const System& system, const TrainerLimits& can,
                       const StatedConfiguration& stated, bool checked) {
  const Parallelism parallel = completed(stated.parallel, job, system);
  check_space(space_limits(job, system), restrictions(parallel));
  check_expert_ranks(parallel);
  check_passes(parallel);
  StatedPlan result;
  Plan& plan = result.candidate.plan;
  plan = direct_plan(*job.graph, {parallel, job.precision, job.trainer, job.global_batch}, system,
                     stated.layers);
  plan.planner = kStatedPlanner;
  plan.model_source = job.model_source;
  if (const std::string reason = refusal(can, plan); !reason.empty()) {
    const std::string option = refused_option(can, parallel, reason);
    throw Error(Where{"", 0, option}, fmt::format("{} {}", job.trainer.name, reason),
                fmt::format("{}, or name another trainer with --for",
                            option.empty() ? "change the configuration" : "change it"));
  }
  if (checked) check_plan(plan);
  result.misfit = misfit_of(plan);
  result.candidate.metrics = measure(plan);
  return result;
}

StatedPlan stated_as_planned(const Plan& plan) {
  check_plan(plan);
  StatedPlan result;
  result.candidate.plan = plan;
  result.misfit = misfit_of(plan);
  result.candidate.metrics = measure(plan);
  return result;
}

std::vector<std::int32_t> layers_of_counts(const std::vector<std::int64_t>& counts,
                                           const Graph& graph, std::int64_t chunks,
                                           const std::string& option) {
  const auto layers = static_cast<std::int64_t>(graph.layers.size());
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::optional<ModelShape> shape = model_shape(graph);
  const std::int64_t before = shape ? shape->first_block : 1;
  const std::int64_t blocks = shape ? shape->blocks : layers - 2;
  if (std::ssize(counts) != chunks) {
    throw Error(Where{"", 0, option},
                fmt::format("{} chunks are listed, and pp times vp is {}", counts.size(), chunks),
                "list the layers of each chunk in model order");
  }
  if (sum != layers && sum != blocks) {
    throw Error(Where{"", 0, option},
                fmt::format("{} layers are listed, and the model has {} blocks, {} layers", sum,
                            blocks, layers),
                "list the transformer blocks, or all layers, of each chunk in model order");
  }
  std::vector<std::int32_t> result(counts.begin(), counts.end());
  if (sum != layers) {
    result.front() += static_cast<std::int32_t>(before);
    result.back() += static_cast<std::int32_t>(layers - before - blocks);
  }
  if (std::any_of(result.begin(), result.end(), [](std::int32_t count) { return count < 1; })) {
    throw Error(Where{"", 0, option}, "a chunk has no layer", "give each at least one");
  }
  return result;
}

}  // namespace braid
