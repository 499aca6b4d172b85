#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/cli/checked_plan.h"
#include "braid/cli/evaluate_service.h"
#include "braid/cli/evaluation_json.h"
#include "braid/cli/model_of_run.h"
#include "braid/cli/run_cost_options.h"
#include "braid/cli/stated_options.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/evaluate/evaluation.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/model_shape.h"
#include "braid/plan/plan_json.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/trainer_choice.h"
#include "braid/report/plan_assumptions.h"
#include "braid/trainers/exchange/own_options.h"
#include "braid/verify/check_candidates.h"

namespace braid {
namespace {

struct EvaluateOptions {
  JobOptions job;
  StatedOptions stated;
  RunCostOptions run;
  ServiceCommand service;
  std::vector<VerbOption> of_services;
  JobOptions best;  ///< Lists of degrees that the best may have.
  std::string output;
  bool alone = false;
};

/// The degree that both lists say, as JobOptions and as the space have it.
struct DegreeOfBest {
  const char* name;
  Degrees JobOptions::*option;
  Degrees SpaceOptions::*space;
};
constexpr DegreeOfBest kDegreesOfBest[] = {
    {"tp", &JobOptions::tp, &SpaceOptions::tp},
    {"pp", &JobOptions::pp, &SpaceOptions::pp},
    {"dp", &JobOptions::dp, &SpaceOptions::dp},
    {"cp", &JobOptions::cp, &SpaceOptions::cp},
    {"ep", &JobOptions::ep, &SpaceOptions::ep},
    {"vp", &JobOptions::vp, &SpaceOptions::vp},
    {"micro-batch", &JobOptions::micro_batch, &SpaceOptions::micro_batch}};

/// The job's space with nothing fixed but what is for the best alone: where that is looked for.
PlannerOptions space_of_best(const EvaluateOptions& options, const LoadedJob& loaded) {
  PlannerOptions space;
  for (const DegreeOfBest& degree : kDegreesOfBest) {
    space.*degree.space =
        Degrees((options.best.*degree.option).list(), (options.job.*degree.option).limit());
  }
  space.can = loaded.space.can;
  space.allow_offload = loaded.space.allow_offload;
  space.all_devices = loaded.space.all_devices;
  return space;
}

/// Whether the plan is what stated_plan() makes of its form and layers.
bool can_be_stated(const Plan& plan) {
  if (!is_uniform(plan) || plan.system.groups.size() > 1) return false;
  for (const std::vector<Option>& options : plan.profile.kinds) {
    for (const Option& option : options) {
      if (!option.sharded.empty()) return false;
    }
  }
  return true;
}

/// The formats of gradients and optimizer state that the file says, which no name of a precision
/// does.
void take_formats(const Import& from, Precision& precision) {
  if (from.gradients_like_weights) precision.gradient = precision.weight;
  if (!from.precision || name_of(*from.precision) != name_of(precision)) return;
  precision.gradient = from.precision->gradient;
  precision.optimizer_bytes_per_parameter = from.precision->optimizer_bytes_per_parameter;
}

/// What the trainer can be told, and what its own file says that it is told to keep on the host and
/// to share.
TrainerLimits limits_with(const std::optional<Import>& from, TrainerLimits can) {
  if (!from) return can;
  can.offload_optimizer = can.offload_optimizer || from->parallel.offload_optimizer;
  can.offload_weights = can.offload_weights || from->parallel.offload_weights;
  can.offload_activations = can.offload_activations || from->parallel.offload_activations;
  can.ring_context_parallel = can.ring_context_parallel || from->parallel.cp > 1;
  if (from->parallel.sequence_parallel) can.sequence_parallel.push_back(true);
  can.zero.push_back(from->parallel.zero);
  if (from->parallel.pp > 1) can.pipelined_zero.push_back(from->parallel.zero);
  // That gradients are summed, or keys and values exchanged, otherwise than a plan has it, the
  // reader notes.
  std::erase_if(can.never, [&from](const ExcludedForms& each) {
    const bool of_ring = each.with == bit_of(FormTrait::context_parallel) && each.without == 0;
    return (each.with & bit_of(FormTrait::several_micro_batches)) != 0 ||
           (of_ring && from->parallel.cp > 1);
  });
  return can;
}

/// Transformer blocks of the model that the options name, 0: it has none; nullopt: they name none.
std::optional<std::int64_t> blocks_of_named(const EvaluateOptions& options) {
  if (options.stated.from.empty() || options.job.model.empty()) return std::nullopt;
  const std::optional<ModelShape> shape = model_shape(named_model(options.job));
  return shape ? shape->blocks : 0;
}

/// What a run leaves open, says in words that are not known, or says and is not modelled.
void take_notes(const Import& from, const EvaluateOptions& options, const Verb& verb,
                const LoadedJob& loaded, const Parallelism& stated,
                ConfigurationEvaluation& evaluation) {
  if (options.job.precision.empty()) {
    evaluation.not_given.push_back("--precision: " + name_of(loaded.job.precision));
  }
  for (const LeftOpen& each : from.not_given) {
    const bool is_said = !each.option.empty() && verb.option(each.option).given();
    if (from.trainer != loaded.job.trainer.name || is_said) continue;
    evaluation.not_given.push_back(each.text);
  }
  evaluation.not_known = from.unknown;
  evaluation.not_modelled = from.notes;
  if (from.host_shards && !stated.offload_weights) {
    evaluation.not_modelled.emplace_back(
        "offload_param: here the shards of the weights stay on the device, from where they are "
        "gathered");
  }
  const auto add = [&](std::string text) {
    if (!text.empty()) evaluation.not_modelled.push_back(std::move(text));
  };
  add(model_difference(from, loaded.graph));
  add(dropout_difference(from, loaded.graph));
  for (const DeviceGroup& group : loaded.system.groups) {
    if (from.needs_fp4_units.empty() || matmul_peak(group.chip, Dtype::f4)) continue;
    evaluation.not_modelled.push_back(fmt::format(
        "{} is refused on {}, which has no units for it: here its GEMMs run as other FP8 ones",
        from.needs_fp4_units, group.chip.name));
  }
  if (from.devices > 0 && from.devices != loaded.system.device_count) {
    evaluation.not_modelled.push_back(
        fmt::format("it starts {} processes, and the cluster has {} devices", from.devices,
                    loaded.system.device_count));
  }
}

/// Finds the best plan of the job and what leads there.
void look_for_best(const EvaluateOptions& options, const LoadedJob& loaded,
                   const StatedConfiguration& stated, const TrainerLimits& can,
                   ConfigurationEvaluation& evaluation) {
  const PlannerEntry& planner = find_planner(kDefaultPlanner);
  LoadedJob free = loaded;
  free.job.graph = &free.graph;
  free.space = space_of_best(options, loaded);
  evaluation.search = plan_checked(free, planner, progress_line(options.job)).outcome;
  const Candidate* best = evaluation.best();
  const StatedPlan& mine = evaluation.mine;
  if (best == nullptr || !can_be_stated(best->plan) || !can_be_stated(mine.candidate.plan)) return;
  StatedConfiguration from{mine.candidate.plan.parallel, stated.layers};
  const StatedConfiguration to{best->plan.parallel, layer_counts(best->plan)};
  const ChangeRules rules{loaded.job, loaded.system, can};
  evaluation.changes = change_chain(from, to, rules);
}

/// Whether a key of an error is an option that the user did not write.
bool is_not_written(const std::string& key, const Verb& verb) {
  if (!key.starts_with("--")) return false;
  const std::vector<VerbOption> all = verb.options();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const VerbOption& each) { return each.name() == key; });
  return found != all.end() && !found->given();
}

/// How errors name what --from gives: the file, or the option where it is a command line itself.
std::string name_of_from(const EvaluateOptions& options) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(options.stated.from, error);
  return is_file ? options.stated.from : "--from";
}

/// The error as one of what --from gives, where that says the option which the error names and the
/// user did not write: with its own name for it, and the line.
Error as_of_run(const Error& error, const Import& from, const EvaluateOptions& options,
                const Verb& verb) {
  const std::string& key = error.where().key;
  if (!error.where().file.empty() || !is_not_written(key, verb)) return error;
  const std::string name = name_of_from(options);
  const std::string text = name == "--from" ? options.stated.from : read_file(name);
  const std::optional<Where> said = where_said(text, name, from.own_options, key);
  return said ? Error(*said, std::string(error.what()).substr(key.size() + 2)) : error;
}

/// Throws Error where something is said of all stages beside a plan that says it of each.
void check_as_planned(const EvaluateOptions& options, const Verb& verb) {
  for (const char* name : {"--cluster",
                           "--precision",
                           "--global-batch",
                           "--seq-len",
                           "--for",
                           "--tp",
                           "--pp",
                           "--dp",
                           "--cp",
                           "--ep",
                           "--vp",
                           "--micro-batch",
                           "--layout",
                           "--offload",
                           "--order",
                           "--recompute",
                           "--zero",
                           "--schedule",
                           "--sequence-parallel",
                           "--whole-experts"}) {
    if (!verb.option(name).given()) continue;
    throw Error(Where{"", 0, name},
                "the stages of " + options.stated.from +
                    " have degrees of their own, and are "
                    "evaluated as they are",
                "leave it out");
  }
}

/// stated_plan(), whose errors without a place are of what --from gives; or a plan as it is.
StatedPlan plan_of_run(const LoadedJob& loaded, const TrainerLimits& can,
                       const StatedConfiguration& stated, const EvaluateOptions& options,
                       const Plan* as_planned) {
  if (as_planned != nullptr) return stated_as_planned(*as_planned);
  try {
    return stated_plan(loaded.job, loaded.system, can, stated);
  } catch (const Error& error) {
    const bool has_place = !error.where().file.empty() || !error.where().key.empty();
    if (has_place || options.stated.from.empty()) throw;
    throw Error(Where{name_of_from(options), 0, ""}, error.what());
  }
}

int run_stated(EvaluateOptions options, const Verb& verb, const std::optional<Import>& from) {
  const bool names_trainer = !options.job.trainer.empty();
  const bool says_precision = !options.job.precision.empty();
  if (from) take_job(*from, options.job);
  const bool names_model = !options.job.model.empty();
  std::optional<Graph> model;
  if (from) model = take_model(*from, options.stated.from, options.job);
  if (options.job.model.empty()) refuse_without_model(from ? &*from : nullptr, options.stated.from);
  const PlannerEntry& planner = find_planner(kDefaultPlanner);
  check_planner_options(options.job, {&planner});
  const std::optional<RunQuestion> question = run_question(options.run);
  LoadedJob loaded;
  load_job(options.job, loaded,
           {.system = from && from->system ? &*from->system : nullptr,
            .model = model ? &*model : nullptr});
  if (from && !says_precision) take_precision_of_one_shard(*from, options.job, loaded);
  if (from) take_accumulation(*from, options.job, loaded);
  set_price(options.run, loaded.system);
  if (from) take_formats(*from, loaded.job.precision);
  // A plan of one stage has no schedule that a trainer could lack.
  if (stated_stages(options.job, from ? &*from : nullptr) == 1) loaded.space.schedule.reset();
  const TrainerFile trainer = set_job_trainer(
      options.job, {&planner}, loaded,
      {.own_code = true, .run = from ? &*from : nullptr, .of_run = from && !names_trainer});
  ConfigurationEvaluation evaluation;
  const TrainerUsual usual = usual_of(trainer, loaded.system, loaded.job);
  const TrainerLimits can = limits_with(from, loaded.space.can);
  const Plan* as_planned = from ? from->as_planned.get() : nullptr;
  if (as_planned != nullptr) check_as_planned(options, verb);
  const StatedConfiguration stated =
      as_planned != nullptr
          ? StatedConfiguration{as_planned->parallel, {}}
          : stated_configuration(options.job, options.stated,
                                 {from ? &*from : nullptr, usual, can, loaded.graph,
                                  loaded.system.device_count, loaded.job.global_batch},
                                 evaluation.not_given);
  if (from) take_notes(*from, options, verb, loaded, stated.parallel, evaluation);
  evaluation.unusual_trainer = loaded.unusual_trainer;
  evaluation.trainer_notes = loaded.trainer_notes;
  evaluation.mine = plan_of_run(loaded, can, stated, options, as_planned);
  const Outcome begun = begin_outcome(loaded.job, loaded.system);
  evaluation.bound = begun.physical_bound;
  evaluation.assumptions = plan_assumptions(&loaded.graph, evaluation.mine.candidate.plan);
  const auto assume = [&](const std::vector<std::string>& lines) {
    evaluation.assumptions.insert(evaluation.assumptions.end(), lines.begin(), lines.end());
  };
  if (from && !names_model && options.job.model == from->catalogue_model) {
    assume({fmt::format("model: {}, for which {} is taken", options.job.model,
                        in_quotes(from->model))});
  }
  assume(loaded.assumptions);
  assume(begun.assumptions);
  if (!options.alone) look_for_best(options, loaded, stated, can, evaluation);
  if (question) {
    evaluation.run = costs_of_run(evaluation.mine.candidate, *question);
    if (const Candidate* best = evaluation.best()) {
      evaluation.run_of_best = costs_of_run(*best, *question);
    }
  }
  if (!options.output.empty()) {
    Plan mine = evaluation.mine.candidate.plan;
    mine.claims = claims_of(evaluation.mine.candidate, evaluation.bound);
    write_file(options.output, to_text(to_json(mine)));
  }
  const int status = evaluation.mine.fits() ? kFound : kInfeasible;
  if (options.output == "-") return status;
  if (options.job.json) {
    fmt::print("{}", to_text(to_json(evaluation)));
  } else {
    fmt::print("{}", evaluation_text(evaluation));
    say_written_below({{"Plan", options.output}});
  }
  return status;
}

int run(const EvaluateOptions& options, const Verb& verb) {
  const bool serves = is_service(options.stated.from);
  check_service_options(verb, options.of_services, serves);
  if (serves) {
    ServiceCommand service = options.service;
    service.from = options.stated.from;
    service.job = &options.job;
    service.alone = options.alone;
    return evaluate_service_command(service);
  }
  const std::optional<Import> from = read_from(options.stated, blocks_of_named(options));
  try {
    return run_stated(options, verb, from);
  } catch (const Error& error) {
    if (!from) throw;
    throw as_of_run(error, *from, options, verb);
  }
}

}  // namespace

Run add_evaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  Verb verb(app, "evaluate", "Time and memory of one configuration, and why it is not the best");
  verb.footer(
      "Example:\n  braid evaluate llama-3-70b --cluster dgx-h100:64 --global-batch 1024 --seq-len "
      "8192 \\\n    --tp 8 --pp 4 --recompute full\n\nExit status: 0 it fits, 1 it does not, 2 bad "
      "input.\n--help-all has all options: limits of the best's degrees, assumptions of --tokens.");
  add_job_options(verb, options->job, /*states_one=*/true);
  verb.option("MODEL").required(false);
  add_stated_options(verb, options->stated);
  verb.add_flag("--alone", options->alone, "Do not look for the best to compare with")
      .group("Search");
  for (const DegreeOfBest& degree : kDegreesOfBest) {
    const std::string name = degree.name;
    add_degrees(verb, "--best-" + name, options->best.*degree.option,
                "What the best may have of --" + name)
        .group(kLimits);
  }
  add_output_file(verb, "-o,--out", options->output, "Write the configuration as a plan's JSON")
      .group("Output");
  add_run_cost_options(verb, options->run);
  options->of_services = add_serving_options(verb, options->service.asked, kServices);
  verb.show_group_if([](const std::string& heading) { return is_shown(heading, {}, false); });
  return [options, verb] { return run(*options, verb); };
}

}  // namespace braid
