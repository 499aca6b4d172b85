#include "braid/trainers/registry.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "braid/base/and_list.h"
#include "braid/base/error.h"
#include "braid/plan/trainer_file.h"
#include "braid/plan/trainer_fit.h"
#include "braid/trainers/accelerate/export.h"
#include "braid/trainers/accelerate/import.h"
#include "braid/trainers/deepspeed/export.h"
#include "braid/trainers/deepspeed/import.h"
#include "braid/trainers/exchange/chosen_recipe.h"
#include "braid/trainers/exchange/one_form.h"
#include "braid/trainers/exchange/started_script.h"
#include "braid/trainers/maxtext/export.h"
#include "braid/trainers/maxtext/import.h"
#include "braid/trainers/megatron-bridge/export.h"
#include "braid/trainers/megatron-bridge/import.h"
#include "braid/trainers/megatron/export.h"
#include "braid/trainers/megatron/import.h"
#include "braid/trainers/megatron/limits.h"
#include "braid/trainers/pytorch/export.h"
#include "braid/trainers/torchtitan/common_limits.h"
#include "braid/trainers/torchtitan/export.h"
#include "braid/trainers/torchtitan/import.h"
#include "braid/trainers/torchtitan/recipe.h"

namespace braid {
namespace {

JobRefusal toml_refusal(const TrainedJob& job) {
  return torchtitan_refusal(job, TorchtitanFormat::toml);
}
JobRefusal recipe_refusal(const TrainedJob& job) {
  return torchtitan_refusal(job, TorchtitanFormat::recipe);
}

struct Target {
  const char* name;
  Export (*write)(const Plan& plan, const std::string& file);
  JobRefusal (*refuse)(const TrainedJob& job);  ///< Null: it has every job.
  bool refuses_forms = true;  ///< What its file in the catalogue says it cannot; else it warns.
  bool is_trainer = true;  ///< Of the catalogue; else a program of its own, for plans of any form.
};

constexpr Target kTargets[] = {
    {"megatron", export_megatron, megatron_refusal, false},
    {"deepspeed", export_deepspeed, deepspeed_refusal, false},
    {"torchtitan", export_torchtitan, toml_refusal, false},
    {"torchtitan-recipe", export_torchtitan_recipe, recipe_refusal, false},
    {"megatron-bridge", export_megatron_bridge, megatron_bridge_refusal},
    {"maxtext", export_maxtext, maxtext_refusal},
    {"accelerate", export_accelerate, accelerate_refusal},
    {"pytorch", export_pytorch, nullptr, false, false}};

/// What a trainer is started with.
struct Reader {
  const char* of;  ///< As people call the trainer.
  bool (*recognises)(std::string_view text);
  Import (*read)(std::string_view text, const std::string& file, const ImportChoice& choice);
  bool has_recipes = false;  ///< A file may have several, of which ImportChoice names one.
};

/// The first that recognises a text reads it.
constexpr Reader kReaders[] = {
    {"DeepSpeed", is_deepspeed, import_deepspeed},
    {"torchtitan", is_torchtitan, import_torchtitan, true},
    {"Megatron-Bridge", is_megatron_bridge, import_megatron_bridge, true},
    {"MaxText", is_maxtext, import_maxtext},
    {"Megatron-LM", is_megatron, import_megatron},
    {"Accelerate", is_accelerate, import_accelerate}};

const Target* find_target(const std::string& name) {
  const auto* found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const Target& each) { return each.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

/// What to do where a trainer does not run on the chip: the exporters' trainers that do.
std::string remedy_for_chip(const Chip& chip) {
  std::vector<std::string> others;
  for (const Target& target : kTargets) {
    if (!target.is_trainer || !refusal(trainer_of_catalogue(target.name).can, chip).empty())
      continue;
    others.push_back(std::string("--to ") + target.name);
  }
  return (others.empty() ? "" : "use " + and_list(others, " or ") + ", or ") +
         (chip.kind == ChipKind::gpu ? "plan for newer GPUs" : "plan for GPUs");
}

/// Throws Error where the trainer does not run on a chip of the plan.
void refuse_chips(const TrainerLimits& can, const Plan& plan, const std::string& target) {
  for (const DeviceGroup& group : plan.system.groups) {
    if (group.chip.accelerator) {
      throw Error(
          "no trainer runs on " + on_one_line(group.chip.name) + ", a chip that is being designed",
          "plan for a chip that there is");
    }
    std::string reason = on_one_line(refusal(can, group.chip));
    if (reason.empty()) continue;
    reason.insert(0, target + " ");
    throw Error(reason, remedy_for_chip(group.chip));
  }
}

/// Throws Error for what the trainer's file says it cannot do.
void refuse_form(const TrainerLimits& can, const Plan& plan, const std::string& target) {
  if (plan.seq_len == 0 && can.language_models_only) {
    throw Error(target + " trains language models, and this model has no sequence",
                "use another trainer");
  }
  if (const std::string reason = refusal(can, plan); !reason.empty()) {
    throw Error(target + " " + reason, "plan with --for " + target);
  }
}

/// Are layers sharded in ways that were searched for?
bool has_searched_shardings(const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const auto& options = options_of(plan.profile, chunk.layers[i]);
        if (!options[static_cast<std::size_t>(chunk.options[i])].sharded.empty()) return true;
      }
    }
  }
  return false;
}

/// A file of settings, or a script, that a command line names; empty: none.
std::string named_file(const std::string& text) {
  constexpr std::array<std::string_view, 5> kEndings = {".json", ".toml", ".yaml", ".yml", ".sh"};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    word.erase(0, word.find('=') + 1);
    const auto ends = [&](std::string_view ending) { return word.ends_with(ending); };
    if (std::any_of(kEndings.begin(), kEndings.end(), ends)) return on_one_line(word);
  }
  return "";
}

}  // namespace

std::vector<std::string> export_targets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  return names;
}

std::vector<std::string> exported_trainers() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) {
    if (target.is_trainer) names.emplace_back(target.name);
  }
  return names;
}

std::string job_refusal(const std::string& trainer, const TrainedJob& job) {
  const Target* known = find_target(trainer);
  return known == nullptr || known->refuse == nullptr ? "" : known->refuse(job).reason;
}

Export export_plan(const Plan& plan, const std::string& target, const std::string& file) {
  const Target* known = find_target(target);
  if (known == nullptr) {
    std::string names;
    for (const Target& each : kTargets)
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    throw Error("no exporter is called '" + target + "'", "use one of " + names);
  }
  if (has_searched_shardings(plan)) {
    throw Error("the plan has automatic sharding, which " + target + " cannot be told",
                "plan without --sharding auto");
  }
  if (!known->is_trainer) {
    refuse_chips({}, plan, target);
    return known->write(plan, file);
  }
  const SharedConfig one = in_one_form(plan, target);
  const TrainerLimits can = limits_of(load_trainer(target), one.plan);
  refuse_chips(can, one.plan, target);
  if (known->refuses_forms) refuse_form(can, one.plan, target);
  Export written = known->write(one.plan, file);
  written.warnings.insert(written.warnings.end(), one.notes.begin(), one.notes.end());
  return written;
}

std::string export_target_of(const Plan& plan) {
  const std::vector<std::string> known = export_targets();
  const bool is_any = plan.trainer.name.empty() || plan.trainer.name == kIdealTrainer;
  const std::vector<std::string> wanted =
      is_any ? std::vector<std::string>{"megatron", "deepspeed", "pytorch"}
             : std::vector<std::string>{plan.trainer.name};
  for (const std::string& target : wanted) {
    if (std::find(known.begin(), known.end(), target) == known.end()) continue;
    try {
      export_plan(plan, target);
      return target;
    } catch (const Error&) {  // It says why it cannot be told the plan.
      continue;
    }
  }
  return "";
}

namespace {

/// `scripts`: that have led to this text, each starting the next.
Import import_run_of(const std::string& text, const std::string& file, const ImportChoice& choice,
                     int scripts) {
  const auto* reader = std::find_if(std::begin(kReaders), std::end(kReaders),
                                    [&](const Reader& each) { return each.recognises(text); });
  const bool is_known = reader != std::end(kReaders);
  if (!choice.recipe.empty() && !(is_known && reader->has_recipes)) refuse_recipe_choice(file);
  if (is_known) {
    ImportChoice with_others = choice;
    with_others.run_of_file = [&choice, scripts](const std::string& name) -> std::optional<Import> {
      const std::optional<std::string> other = choice.text_of(name);
      if (!other) return std::nullopt;
      return import_run_of(*other, name, choice, scripts + 1);
    };
    return reader->read(text, file, with_others);
  }
  constexpr int kMostScripts = 8;
  if (const auto inner = started_script(text, file, choice); inner && scripts < kMostScripts) {
    return import_run_of(inner->text, inner->file, choice, scripts + 1);
  }
  if (const std::string named = named_file(text); !named.empty()) {
    throw Error(Where{file, 0, ""}, "this says nothing of the run but " + named, "give that file");
  }
  std::vector<std::string> trainers;
  for (const Reader& each : kReaders) trainers.emplace_back(each.of);
  throw Error(Where{file, 0, ""}, "this does not start a trainer that braid knows",
              "give the command line, script or file of " + and_list(trainers, " or "));
}

}  // namespace

Import import_run(const std::string& text, const std::string& file, const ImportChoice& choice) {
  return import_run_of(text, file, choice, 0);
}

}  // namespace braid
