#include "braid/planners/trainer_choice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/planners/job/job_layers.h"

namespace braid {
namespace {

/// Looks tokens up in a table and attends to them.
bool is_language_model(const Graph& graph) {
  const auto has = [&](const auto& is) {
    return std::any_of(graph.operators.begin(), graph.operators.end(), is);
  };
  return graph.seq_len > 0 &&
         has([](const Operator& op) { return std::holds_alternative<Embedding>(op.kind); }) &&
         has([](const Operator& op) { return std::holds_alternative<Attention>(op.kind); });
}

/// The form that has what is fixed, and nothing else.
Parallelism fixed_form(const SpaceOptions& space) {
  Parallelism form;
  form.tp = space.tp.least();
  form.pp = space.pp.least();
  form.dp = space.dp.least();
  form.cp = space.cp.least();
  form.ep = space.ep.least();
  form.vp = space.vp.least();
  if (form.vp > 1) form.schedule = ScheduleKind::interleaved;
  return form;
}

/// Why what is fixed cannot be told; options that are not fixed are no reason.
std::string refusal_of_fixed(const TrainerLimits& can, const SpaceOptions& space) {
  Parallelism form = fixed_form(space);
  // A schedule counts where there may be several stages.
  if (space.schedule) {
    form.schedule = *space.schedule;
    form.pp = space.pp.at_least(2).value_or(1);
    if (form.pp > can.most_stages) form.pp = 1;
  }
  form.recompute = space.recompute.value_or(can.recompute.front());
  form.sequence_parallel = space.sequence_parallel.value_or(can.sequence_parallel.front());
  if (space.zero) {
    form.zero = *space.zero;
  } else {
    form.zero =
        form.pp > 1 && !can.pipelined_zero.empty() ? can.pipelined_zero.front() : can.zero.front();
  }
  // Which order the axes have is not fixed.
  TrainerLimits any_order = can;
  any_order.pipeline_outermost = any_order.data_outermost = true;
  return refusal(any_order, form);
}

}  // namespace

TrainerNeeds trainer_needs(const Job& job, const System& system, const SpaceOptions& space,
                           std::vector<const PlannerEntry*> planners) {
  TrainerNeeds needs;
  if (job.graph != nullptr) {
    needs.model = job.graph->name;
    needs.language_model = is_language_model(*job.graph);
  } else {
    const Profile& layers = job.layers->layers();
    needs.model = layers.model;
    needs.language_model = layers.seq_len > 0;
  }
  needs.system = &system;
  needs.space = &space;
  needs.sharding = job.sharding;
  needs.planners = std::move(planners);
  return needs;
}

std::string refusal(const TrainerFile& trainer, const TrainerNeeds& needs) {
  const TrainerLimits& can = trainer.can;
  if (can.language_models_only && !needs.language_model) return "trains language models only";
  for (const DeviceGroup& group : needs.system->groups) {
    if (!can.allows_chip(group.chip.name)) return "does not run on " + group.chip.name;
  }
  if (!can.heterogeneous_stages) {
    if (!is_homogeneous(*needs.system))
      return "has the same parallel degrees for all stages and devices";
    for (const PlannerEntry* planner : needs.planners) {
      if (planner->heterogeneous_stages) {
        return fmt::format(
            "has the same parallel degrees for all stages, and planner {} gives each its own",
            planner->name);
      }
    }
  }
  if (!can.auto_sharding && needs.sharding == ShardingSource::automatic) {
    return "has no automatic sharding";
  }
  return refusal_of_fixed(can, *needs.space);
}

const TrainerFile& usual_trainer(const TrainerNeeds& needs) {
  const std::vector<DeviceGroup>& groups = needs.system->groups;
  const bool on_tpus = std::all_of(groups.begin(), groups.end(), [](const DeviceGroup& group) {
    return group.chip.name.starts_with("tpu-");
  });
  const bool designed = std::any_of(groups.begin(), groups.end(), [](const DeviceGroup& group) {
    return group.chip.accelerator.has_value();
  });
  const std::string_view usual = on_tpus ? "maxtext" : "megatron";
  const TrainerFile* ideal = nullptr;
  for (const TrainerFile& trainer : trainer_catalogue()) {
    if (!designed && trainer.name == usual && refusal(trainer, needs).empty()) {
      return trainer;
    }
    if (trainer.name == "ideal") ideal = &trainer;
  }
  return *ideal;
}

TrainerFile choose_trainer(const std::string& name, const TrainerNeeds& needs) {
  if (name.empty()) return usual_trainer(needs);
  TrainerFile trainer = load_trainer(name);
  check_trainer(trainer, needs);
  return trainer;
}

void check_trainer(const TrainerFile& trainer, const TrainerNeeds& needs) {
  const std::string reason = refusal(trainer, needs);
  if (reason.empty()) return;
  std::string others;
  for (const TrainerFile& other : trainer_catalogue()) {
    if (refusal(other, needs).empty()) others += (others.empty() ? "" : ", ") + other.name;
  }
  throw Error(Where{"", 0, "--for"}, fmt::format("{} {}", trainer.name, reason),
              others.empty() ? "change what is fixed" : "trainers that can: " + others);
}

namespace {

TrainerSubject subject_of(const TrainerFile& trainer, const System& system, const Job& job) {
  TrainerSubject subject;
  subject.framework = lowered(trainer.name);
  subject.precision = lowered(name_of(job.precision));
  for (const DeviceGroup& group : system.groups) {
    subject.hardware += (subject.hardware.empty() ? "" : " + ") + lowered(group.chip.name);
  }
  subject.model = lowered(job.graph != nullptr ? job.graph->name : job.layers->layers().model);
  return subject;
}

}  // namespace

TrainerUsual usual_of(const TrainerFile& trainer, const System& system, const Job& job) {
  return trainer.usual(subject_of(trainer, system, job));
}

void set_trainer(const TrainerFile& trainer, const System& system, Job& job, SpaceOptions& space) {
  job.trainer = trainer.trainer(subject_of(trainer, system, job));
  adapt_precision(job.trainer.does, job.precision);
  space.can = trainer.can;
}

}  // namespace braid
