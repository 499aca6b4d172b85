#include "braid/cli/stated_options.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/model_of_run.h"
#include "braid/cli/text_option.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/execution_of.h"
#include "braid/plan/names.h"
#include "braid/plan/plan_json.h"
#include "braid/profile/split_limits.h"
#include "braid/trainers/exchange/chosen_recipe.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/registry.h"

namespace braid {
namespace {

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == between) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// "20,21x2,20" as 20, 21, 21, 20.
std::vector<std::int64_t> parse_layout(const std::string& text) {
  constexpr std::int64_t kMost = 1 << 16;
  std::vector<std::int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> factors = split(part, 'x');
    if (factors.size() > 2 || factors.front().empty() || factors.back().empty()) {
      throw Error(Where{"", 0, "--layout"}, in_quotes(part) + " is no number of layers",
                  "write 20, or 20x3 for three chunks of 20");
    }
    const std::int64_t layers = parse_count("--layout", factors.front(), 0, kMost);
    const std::int64_t times =
        factors.size() == 2 ? parse_count("--layout", factors.back(), 1, kMost) : 1;
    counts.insert(counts.end(), static_cast<std::size_t>(times), layers);
  }
  return counts;
}

/// Takes what --offload and --no-offload say, if anything.
void set_offload(const StatedOptions& options, bool no_offload, Parallelism& parallel) {
  if (options.offload.empty() && !no_offload) return;
  parallel.offload_optimizer = parallel.offload_weights = parallel.offload_activations = false;
  if (options.offload.empty() || options.offload == "none") return;
  if (no_offload) {
    throw Error(Where{"", 0, "--no-offload"}, "contradicts --offload " + options.offload,
                "give one of them");
  }
  for (const std::string& part : split(options.offload, ',')) {
    if (part == "optimizer") {
      parallel.offload_optimizer = true;
    } else if (part == "weights") {
      parallel.offload_weights = true;
    } else if (part == "activations") {
      parallel.offload_activations = true;
    } else {
      throw Error(Where{"", 0, "--offload"}, in_quotes(part) + " cannot be moved to the host",
                  "name optimizer, weights and activations, separated by commas, or none");
    }
  }
}

std::vector<Axis> parse_order(const std::string& text) {
  std::vector<Axis> order;
  for (const std::string& part : split(text, '-')) {
    const std::optional<Axis> axis = parse_axis(part);
    if (!axis || std::find(order.begin(), order.end(), *axis) != order.end()) order.clear();
    if (!axis) break;
    order.push_back(*axis);
  }
  if (order.size() != 4) {
    throw Error(Where{"", 0, "--order"}, in_quotes(text) + " is no order of the axes",
                "write them from the innermost outwards, such as tp-cp-dp-pp");
  }
  return order;
}

}  // namespace

void add_stated_options(Verb& verb, StatedOptions& options) {
  add_text(
      verb, "--from", options.from,
      "What you run now: a file, or in quotes the command line, of Megatron-LM; torchtitan's TOML "
      "or recipe; DeepSpeed's JSON; a plan's JSON; 'vllm serve …' or another engine's line")
      .group("Job");
  add_text(verb, "--recipe", options.recipe,
           "With --from: which recipe of the file, where it has several (Python functions)")
      .group("Job");
  add_text(verb, "--layout", options.layout,
           "Transformer blocks, or layers, of each stage (with --vp of each chunk) in model order: "
           "19,21x2,19")
      .group("Degrees");
  add_text(verb, "--offload", options.offload,
           "What is kept in host memory: optimizer, weights, activations, separated by commas")
      .group("Degrees");
  add_text(verb, "--order", options.order,
           "Axes from neighbouring devices outwards (default: tp-cp-dp-pp)")
      .group("Degrees");
}

namespace {

/// Layers of each chunk; blocks alone where the model has MTP and all that is no
/// block lies at the ends: a trainer may have what predicts them as one layer with the head.
std::vector<std::int64_t> counts_of_chunks(const Plan& plan) {
  const std::vector<std::int32_t> layers = layer_counts(plan);
  std::vector<std::int64_t> blocks = count_blocks(plan).per_chunk;
  const bool holds_ends = plan.shape && plan.shape->mtp_modules > 0 &&
                          layers.front() >= blocks.front() + plan.shape->first_block &&
                          layers.back() - blocks.back() >= std::ssize(plan.profile.layers) -
                                                               plan.shape->first_block -
                                                               plan.shape->blocks;
  return holds_ends ? blocks : std::vector<std::int64_t>(layers.begin(), layers.end());
}

/// What a plan of ours says.
Import import_plan(const std::string& file) {
  Plan plan = read_plan(file);
  Import run;
  run.trainer = plan.trainer.name;
  run.model = plan.model_source;
  run.devices = plan.system.device_count;
  run.global_batch = plan.global_batch;
  run.seq_len = plan.seq_len;
  run.parallel = plan.parallel;
  run.precision = plan.precision;
  for (const BehaviourFlag& each : behaviour_flags()) {
    run.does.push_back({each.flag, plan.trainer.does.*each.flag});
  }
  if (plan.shape) {
    run.blocks = plan.shape->blocks;
    run.hidden = plan.shape->hidden;
  }
  run.system = plan.system;
  if (is_uniform(plan)) {
    run.chunk_blocks = counts_of_chunks(plan);
  } else {
    run.as_planned = std::make_shared<Plan>(std::move(plan));
  }
  return run;
}

/// The text of a file that is named in `from`: as it is named from there or from here, or else of
/// that name beside `from`, since `$(dirname "$0")` and the like are not known.
std::optional<std::string> text_beside(const std::string& from, const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(from).parent_path(), named = name;
  for (const std::filesystem::path& path : {folder / named, named, folder / named.filename()}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return read_file(path.string());
  }
  return std::nullopt;
}

bool is_plan(const std::string& text) {
  return text.find("\"braid\"") != std::string::npos &&
         text.find_first_not_of(" \t\r\n") == text.find('{');
}

/// As read_from(), of what the file itself says.
std::optional<Import> read_given(const StatedOptions& options, std::optional<std::int64_t> blocks) {
  if (options.from.empty()) {
    if (options.recipe.empty()) return std::nullopt;
    throw Error(Where{"", 0, "--recipe"}, "no file is named to choose from", "add --from");
  }
  ImportChoice choice{blocks.value_or(0), options.recipe, [&options](const std::string& name) {
                        return text_beside(options.from, name);
                      }};
  if (!blocks) choice.blocks_beside = [&options] { return blocks_beside(options.from); };
  choice.blocks_by_name = [](const std::string& model) {
    Import named;
    named.model = model;
    name_in_catalogue(named);
    return named.blocks;
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.from, error)) {
    const bool is_folder = std::filesystem::is_directory(options.from, error);
    if (!is_folder && options.from.find(' ') != std::string::npos) {
      return import_run(options.from, "--from", choice);
    }
    const bool is_other = std::filesystem::exists(options.from, error);
    throw Error(Where{"", 0, "--from"},
                in_quotes(options.from) + (is_folder  ? " is a folder"
                                           : is_other ? " is no regular file"
                                                      : ": there is no such file"),
                "give a trainer's file or, in quotes, its command line");
  }
  const std::string text = read_file(options.from);
  if (!is_plan(text)) return import_run(text, options.from, choice);
  if (!options.recipe.empty()) refuse_recipe_choice(options.from);
  return import_plan(options.from);
}

}  // namespace

std::optional<Import> read_from(const StatedOptions& options, std::optional<std::int64_t> blocks) {
  std::optional<Import> run = read_given(options, blocks);
  if (run && !run->system) name_in_catalogue(*run);
  return run;
}

void take_job(const Import& run, JobOptions& options) {
  if (options.model.empty() && run.system) options.model = run.model;
  if (options.trainer.empty()) options.trainer = run.trainer;
  if (options.global_batch == 0 && run.accumulation == 0) options.global_batch = run.global_batch;
  if (options.seq_len == 0) options.seq_len = run.seq_len;
  if (options.precision.empty() && run.precision) options.precision = name_of(*run.precision);
}

namespace {

/// The one value of a list; 0: none.
int given(const Degrees& degrees) { return degrees.list().empty() ? 0 : degrees.list().front(); }

/// Throws Error where several values are listed.
void check_single(const Degrees& degrees, const std::string& option) {
  if (degrees.list().size() <= 1) return;
  throw Error(Where{"", 0, "--" + option},
              "one configuration has one value, and " + std::to_string(degrees.list().size()) +
                  " are listed",
              "give one; --best-" + option + " lists what the best may have");
}

bool has_experts(const Graph& graph) {
  return std::any_of(graph.operators.begin(), graph.operators.end(), [](const Operator& op) {
    return std::holds_alternative<MoeExperts>(op.kind);
  });
}

/// Names the degrees that are 1, or what the others leave, since nothing is said of them, and how
/// stages are laid out.
void note_other_degrees(const JobOptions& job, const StatedOptions& options, const Graph& graph,
                        std::vector<std::string>& not_given) {
  const auto note = [&](bool given, const char* option, const char* value) {
    if (!given) not_given.push_back(fmt::format("{}: {}", option, value));
  };
  const bool pipelined = given(job.pp) > 1;
  note(!job.dp.list().empty(), "--dp", "what the other degrees leave of the devices");
  note(!job.cp.list().empty(), "--cp", "1");
  note(!job.ep.list().empty() || !has_experts(graph), "--ep", "1");
  note(!job.vp.list().empty() || !pipelined, "--vp", "1");
  note(!job.schedule.empty() || given(job.vp) > 1 || !pipelined, "--schedule", "1f1b");
  note(!options.layout.empty() || !pipelined, "--layout", "as evenly as the trainer deals layers");
  note(!options.order.empty(), "--order", "tp-cp-dp-pp");
}

/// A configuration of which nothing is said but what the trainer usually does.
Parallelism usual_form(const JobOptions& job, const TrainerUsual& usual,
                       std::vector<std::string>& not_given) {
  Parallelism p;
  p.dp = 0;
  const auto note = [&](bool given, const char* option, std::string_view value) {
    if (!given) not_given.push_back(fmt::format("{}: {}", option, value));
  };
  const auto by_trainer = [&](bool given, const char* option, std::string_view value) {
    note(given, option, fmt::format("{}, as the trainer usually has it", value));
  };
  note(!job.tp.list().empty(), "--tp", "1");
  note(!job.pp.list().empty(), "--pp", "1");
  note(!job.micro_batch.list().empty(), "--micro-batch", "1");
  p.sequence_parallel = usual.sequence_parallel;
  p.recompute = usual.recompute;
  by_trainer(!job.recompute.empty(), "--recompute", name_of(p.recompute));
  p.zero = usual.zero;
  by_trainer(job.zero >= 0, "--zero", name_of(p.zero));
  p.whole_experts = usual.whole_experts && given(job.ep) > 1;
  return p;
}

/// As the trainer usually has it, or as it and the model take it where they refuse that.
void choose_sequence_parallel(const StatedDefaults& defaults, Parallelism& p,
                              std::vector<std::string>& not_given) {
  const SplitLimits split = split_limits(defaults.graph);
  const auto refused = [&](bool on) {
    Parallelism tried = p;
    tried.sequence_parallel = on;
    const std::string reason = refusal(defaults.can, tried);
    return reason.empty() ? refusal(split, execution_of(tried)) : "the trainer " + reason;
  };
  const bool usual = p.sequence_parallel;
  const std::string reason = refused(usual);
  const bool other = !reason.empty() && refused(!usual).empty();
  p.sequence_parallel = other ? !usual : usual;
  not_given.push_back(fmt::format("--sequence-parallel: {}, as {}",
                                  p.sequence_parallel ? "on" : "off",
                                  other ? reason : "the trainer usually has it"));
}

std::int64_t ranks_of_replica(const Parallelism& p) {
  return std::max<std::int64_t>(1, std::int64_t{p.tp} * p.pp * p.cp);
}

/// Another stage of ZeRO where the trainer refuses its usual one with these degrees.
void choose_zero(const StatedDefaults& defaults, Parallelism& p,
                 std::vector<std::string>& not_given) {
  Parallelism tried = p;
  if (tried.dp == 0) {
    tried.dp = static_cast<int>(std::max<std::int64_t>(1, defaults.devices / ranks_of_replica(p)));
  }
  tried.num_micro_batches = std::max<std::int64_t>(
      1, defaults.global_batch / (std::int64_t{tried.dp} * std::max(1, tried.micro_batch)));
  const std::string reason = refusal(defaults.can, tried);
  if (reason.empty()) return;
  for (const Zero zero : {Zero::optimizer, Zero::gradients, Zero::parameters, Zero::none}) {
    tried.zero = zero;
    if (!refusal(defaults.can, tried).empty()) continue;
    std::erase_if(not_given, [](const std::string& note) { return note.starts_with("--zero: "); });
    not_given.push_back(fmt::format("--zero: {}, as the trainer {}", name_of(zero), reason));
    p.zero = zero;
    return;
  }
}

/// The devices, or the processes that the run starts where these are fewer, in whole replicas.
std::int64_t devices_taken(const Parallelism& p, const Import* run, std::int64_t devices) {
  const bool starts_fewer = run != nullptr && run->devices > 0 && run->devices < devices &&
                            run->devices % ranks_of_replica(p) == 0;
  return starts_fewer ? run->devices : devices;
}

/// What the form says, or what its other degrees leave of the devices that the run takes.
std::int64_t data_parallel_ranks(const Parallelism& p, const Import* run, std::int64_t devices) {
  const std::int64_t left = devices_taken(p, run, devices) / ranks_of_replica(p);
  return std::max<std::int64_t>(1, p.dp > 0 ? p.dp : left);
}

/// The run's degrees and micro-batch with those of the options in their place.
Parallelism degrees_of(const Import& run, const JobOptions& options) {
  const auto take = [](const Degrees& degrees, int& value) {
    if (given(degrees) > 0) value = given(degrees);
  };
  Parallelism p = run.parallel;
  take(options.tp, p.tp);
  take(options.pp, p.pp);
  take(options.cp, p.cp);
  take(options.dp, p.dp);
  take(options.micro_batch, p.micro_batch);
  return p;
}

}  // namespace

void take_precision_of_one_shard(const Import& run, const JobOptions& options, LoadedJob& loaded) {
  const Parallelism p = degrees_of(run, options);
  const bool has_one = p.cp == 1 && data_parallel_ranks(p, &run, loaded.system.device_count) == 1;
  if (run.precision_of_one_shard && has_one) loaded.job.precision = *run.precision_of_one_shard;
}

void take_accumulation(const Import& run, const JobOptions& options, LoadedJob& loaded) {
  if (run.accumulation == 0 || options.global_batch != 0) return;
  const Parallelism p = degrees_of(run, options);
  const std::int64_t dp = data_parallel_ranks(p, &run, loaded.system.device_count);
  const std::int64_t of_rank = p.micro_batch * run.accumulation;
  if (of_rank > std::numeric_limits<int>::max() / dp) {
    throw Error(Where{"", 0, "--from"}, "an iteration has more than 2^31 samples",
                "give --global-batch");
  }
  const bool as_said = options.tp.list().empty() && options.pp.list().empty() &&
                       options.cp.list().empty() && options.dp.list().empty() &&
                       options.micro_batch.list().empty();
  if (as_said && run.global_batch > 0 && run.global_batch != of_rank * dp) {
    throw Error(Where{"", 0, "--from"},
                fmt::format("it says a batch of {} samples, and micro-batches of {} times {} on {} "
                            "data-parallel ranks make {}",
                            run.global_batch, p.micro_batch, run.accumulation, dp, of_rank * dp),
                "change one of them, or give --global-batch");
  }
  loaded.job.global_batch = of_rank * dp;
  std::erase_if(loaded.assumptions,
                [](const std::string& line) { return line.starts_with("global batch: "); });
}

namespace {

/// The micro-batch of a run that does not say it: what the samples of a data-parallel rank make
/// when they are split as the run says, where it does and they divide. Returns what was taken, and
/// why.
std::string take_micro_batch(const Import& run, const StatedDefaults& defaults, Parallelism& p) {
  const auto taken = [&p](const std::string& why) {
    return fmt::format("--micro-batch: {}, {}", p.micro_batch, why);
  };
  if (run.steps_of_batch == 0) return taken("as nothing says it");
  const std::int64_t replicas = data_parallel_ranks(p, &run, defaults.devices);
  const std::int64_t pieces = replicas * run.steps_of_batch;
  const bool divides = defaults.global_batch % pieces == 0;
  const std::int64_t size = divides ? defaults.global_batch / pieces : 1;
  p.micro_batch = static_cast<int>(std::min<std::int64_t>(size, std::numeric_limits<int>::max()));
  const std::string split =
      fmt::format("the batch of {} {} {} of {}", defaults.global_batch,
                  divides ? "split over" : "does not divide over", counted(replicas, "replica"),
                  counted(run.steps_of_batch, "step"));
  return taken(divides ? split : "as " + split);
}

}  // namespace

std::string dropout_difference(const Import& run, const Graph& model) {
  const std::optional<ModelShape> shape = model_shape(model);
  if (!shape || !run.dropout || *run.dropout == shape->dropout) return "";
  return *run.dropout ? "the run has dropout, MODEL has none: what it takes is left out"
                      : "the run has no dropout, MODEL has some: what it takes is counted";
}

int stated_stages(const JobOptions& job, const Import* run) {
  if (const int said = given(job.pp); said > 0) return said;
  return run != nullptr ? run->parallel.pp : 1;
}

StatedConfiguration stated_configuration(const JobOptions& job, const StatedOptions& options,
                                         const StatedDefaults& defaults,
                                         std::vector<std::string>& not_given) {
  StatedConfiguration stated;
  const Import* run = defaults.run;
  Parallelism& p = stated.parallel;
  if (run == nullptr) note_other_degrees(job, options, defaults.graph, not_given);
  p = run != nullptr ? run->parallel : usual_form(job, defaults.usual, not_given);
  const auto take = [](const Degrees& degrees, const char* option, int& value) {
    check_single(degrees, option);
    if (given(degrees) > 0) value = given(degrees);
  };
  take(job.tp, "tp", p.tp);
  take(job.pp, "pp", p.pp);
  take(job.dp, "dp", p.dp);
  take(job.cp, "cp", p.cp);
  take(job.ep, "ep", p.ep);
  take(job.vp, "vp", p.vp);
  take(job.micro_batch, "micro-batch", p.micro_batch);
  if (p.dp == 0 && devices_taken(p, run, defaults.devices) < defaults.devices) {
    p.dp = static_cast<int>(data_parallel_ranks(p, run, defaults.devices));
  }
  if (run != nullptr && run->host_shards && p.cp == 1 &&
      data_parallel_ranks(p, run, defaults.devices) == 1) {
    p.offload_weights = true;
  }
  if (run != nullptr && !run->says_micro_batch && job.micro_batch.list().empty()) {
    not_given.push_back(take_micro_batch(*run, defaults, p));
  }
  if (!job.whole_experts.empty()) p.whole_experts = job.whole_experts == "on";
  p.whole_experts = p.whole_experts && p.tp > 1;
  if (!job.recompute.empty()) p.recompute = *parse_recompute(job.recompute);
  if (job.zero >= 0) p.zero = static_cast<Zero>(job.zero);
  if (p.vp > 1) p.schedule = ScheduleKind::interleaved;
  if (!job.schedule.empty()) p.schedule = *parse_schedule(job.schedule);
  if (p.pp > 1 && p.vp == 1 && !job.schedule.empty() && p.schedule == ScheduleKind::interleaved) {
    throw Error(Where{"", 0, "--schedule"},
                "interleaved stages have several chunks each, and here each has one",
                "say how many with --vp, or take --schedule 1f1b");
  }
  if (p.pp == 1 && p.schedule == ScheduleKind::gpipe) {
    p.schedule = ScheduleKind::one_f_one_b;
    not_given.emplace_back("--schedule: none, as a plan of one stage has none");
  }
  if (!job.sequence_parallel.empty()) {
    p.sequence_parallel = job.sequence_parallel == "on";
  } else if (run == nullptr && p.tp > 1) {
    choose_sequence_parallel(defaults, p, not_given);
  }
  p.sequence_parallel = p.sequence_parallel && p.tp > 1;
  if (job.zero < 0 && run == nullptr) choose_zero(defaults, p, not_given);
  set_offload(options, job.no_offload, p);
  if (!options.order.empty()) p.order = parse_order(options.order);
  const std::int64_t chunks = std::int64_t{p.pp} * p.vp;
  if (!options.layout.empty()) {
    stated.layers =
        layers_of_counts(parse_layout(options.layout), defaults.graph, chunks, "--layout");
  } else if (run != nullptr && std::ssize(run->chunk_blocks) == chunks) {
    stated.layers = layers_of_counts(run->chunk_blocks, defaults.graph, chunks, "--from");
  }
  return stated;
}

}  // namespace braid
