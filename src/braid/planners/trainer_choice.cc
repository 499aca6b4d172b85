#include "braid/planners/trainer_choice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/plan/model_shape.h"
#include "braid/planners/job/contradiction.h"
#include "braid/planners/job/fixed_form.h"
#include "braid/planners/job/job_layers.h"
#include "braid/trainers/registry.h"

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

/// What the trainer may depend on of the job.
TrainerSubject subject_of(const TrainerFile& trainer, const System& system, const Job& job) {
  TrainerSubject subject = subject_of(trainer, system, job.precision);
  if (job.graph == nullptr) {
    subject.model = lowered(job.layers->layers().model);
    subject.seq_len = job.layers->layers().seq_len;
    return subject;
  }
  subject.model = lowered(job.graph->name);
  subject.seq_len = job.graph->seq_len;
  if (const auto shape = model_shape(*job.graph)) describe_model(*shape, subject);
  return subject;
}

bool trains_language(const Job& job) {
  return job.graph != nullptr ? is_language_model(*job.graph) : job.layers->layers().seq_len > 0;
}

}  // namespace

std::string refusal(const TrainerFile& trainer, const TrainerNeeds& needs) {
  const TrainerLimits can = trainer.limits(subject_of(trainer, *needs.system, *needs.job));
  if (can.language_models_only && !trains_language(*needs.job))
    return "trains language models only";
  for (const DeviceGroup& group : needs.system->groups) {
    if (std::string reason = refusal(can, group.chip); !reason.empty()) return reason;
  }
  if (!can.heterogeneous_stages) {
    if (!is_homogeneous(*needs.system) && !can.uneven_stages && can.most_stages > 1)
      return "has equally many layers in all stages, whatever devices they are on";
    for (const PlannerEntry* planner : needs.planners) {
      if (planner->heterogeneous_stages) {
        return fmt::format(
            "has the same parallel degrees for all stages, and planner {} gives each its own",
            planner->name);
      }
    }
  }
  if (!can.auto_sharding && needs.job->sharding == ShardingSource::automatic) {
    return "has no automatic sharding";
  }
  return refusal_of_fixed(can, *needs.space);
}

namespace {

const TrainerFile& ideal_trainer() {
  static const TrainerFile ideal = trainer_of_catalogue(kIdealTrainer);
  return ideal;
}

/// What is taken where it can run the job.
const TrainerFile& first_choice(const TrainerNeeds& needs) {
  const std::vector<DeviceGroup>& groups = needs.system->groups;
  const bool designed = std::any_of(groups.begin(), groups.end(), [](const DeviceGroup& group) {
    return group.chip.accelerator.has_value();
  });
  return designed ? ideal_trainer() : default_trainer(*needs.system);
}

}  // namespace

namespace {

/// Why the first choice is not taken unless somebody names it; empty when it is.
std::string reason_against(const TrainerFile& first, const TrainerNeeds& needs) {
  std::string reason = refusal(first, needs);
  if (!reason.empty() || is_homogeneous(*needs.system)) return reason;
  const TrainerLimits can = first.limits(subject_of(first, *needs.system, *needs.job));
  return can.heterogeneous_stages ? "" : "has the same parallel degrees for all stages and devices";
}

}  // namespace

const TrainerFile& usual_trainer(const TrainerNeeds& needs) {
  const TrainerFile& first = first_choice(needs);
  return reason_against(first, needs).empty() ? first : ideal_trainer();
}

namespace {

/// What its exporter says of any plan of the job.
std::string lack_of(const TrainerFile& trainer, const TrainerNeeds& needs) {
  const Job& job = *needs.job;
  if (job.graph == nullptr) return "";
  const std::optional<ModelShape> shape = model_shape(*job.graph);
  return job_refusal(trainer.name, {&job.graph->name, &job.model_source, shape ? &*shape : nullptr,
                                    job.graph->seq_len, job.precision, needs.system});
}

/// As refusal(), and what it lacks.
std::string refusal_of_named(const TrainerFile& trainer, const TrainerNeeds& needs) {
  std::string reason = refusal(trainer, needs);
  return reason.empty() && !needs.own_code ? lack_of(trainer, needs) : reason;
}

/// Of what is fixed, the one thing without which the trainer would not be refused for this reason,
/// as ", which --cp 2 takes"; empty where the reason has said it or it is not one thing.
std::string asked_by(const TrainerFile& trainer, const TrainerNeeds& needs,
                     const std::string& reason) {
  if (reason.find("which --") != std::string::npos) return "";
  std::string found;
  for (const GivenRestriction& given : given_restrictions(*needs.space)) {
    SpaceOptions without = *needs.space;
    given.take_back(without);
    TrainerNeeds fewer = needs;
    fewer.space = &without;
    if (refusal_of_named(trainer, fewer) == reason) continue;
    // A schedule has its name in the reason.
    if (!found.empty() || given.option == "--schedule") return "";
    found = fmt::format(", which {} takes", given.text);
  }
  return found;
}

}  // namespace

std::vector<std::string> trainer_notes(const TrainerFile& trainer, const TrainerNeeds& needs,
                                       bool named) {
  std::vector<std::string> notes;
  const TrainerFile& first = first_choice(needs);
  const std::string reason = named ? "" : reason_against(first, needs);
  if (!reason.empty()) {
    notes.push_back(fmt::format(
        "{} stands for the best that a trainer can do, and is used because {} {}: its times "
        "are not to be compared with those of {} (--for names another trainer).",
        trainer.name, first.name, reason, first.name));
  }
  const std::string lack = lack_of(trainer, needs);
  if (!lack.empty()) {
    notes.push_back(fmt::format("As it comes, {} {}; assumed: you add that to it yourself.",
                                trainer.name, lack));
  }
  return notes;
}

TrainerFile choose_trainer(const std::string& name, const TrainerNeeds& needs) {
  if (name.empty()) return usual_trainer(needs);
  TrainerFile trainer = load_trainer(name);
  check_trainer(trainer, needs);
  return trainer;
}

void check_trainer(const TrainerFile& trainer, const TrainerNeeds& needs) {
  const std::string reason = refusal_of_named(trainer, needs);
  if (reason.empty()) return;
  std::string others;
  for (const TrainerFile& other : trainer_catalogue()) {
    if (refusal_of_named(other, needs).empty()) others += (others.empty() ? "" : ", ") + other.name;
  }
  throw Error(Where{"", 0, "--for"},
              fmt::format("{} {}{}", trainer.name, reason, asked_by(trainer, needs, reason)),
              others.empty() ? "change what is fixed" : "trainers that can: " + others);
}

TrainerUsual usual_of(const TrainerFile& trainer, const System& system, const Job& job) {
  return trainer.usual(subject_of(trainer, system, job));
}

void set_trainer(const TrainerFile& trainer, const System& system, Job& job, SpaceOptions& space) {
  const TrainerSubject subject = subject_of(trainer, system, job);
  job.trainer = trainer.trainer(subject);
  adapt_precision(job.trainer.does, job.precision);
  space.can = trainer.limits(subject);
}

}  // namespace braid
