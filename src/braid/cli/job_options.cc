#include "braid/cli/job_options.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "braid/base/error.h"
#include "braid/base/parallel.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/dim_option.h"
#include "braid/cli/profile_options.h"
#include "braid/cli/run_cost_options.h"
#include "braid/cli/text_option.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/names.h"
#include "braid/planners/trainer_choice.h"
#include "braid/system/calibration.h"

namespace braid {

namespace {

constexpr const char* kJob = "Job";
constexpr const char* kSystem = "System";
constexpr const char* kDegrees = "Degrees";
constexpr const char* kSearch = "Search";
constexpr const char* kOutput = "Output";
constexpr int kMostDegree = 1 << 24;

struct DegreeOption {
  const char* name;
  Degrees JobOptions::*degrees;
  const char* what;
  bool is_usual = true;  ///< Most who plan state it, or at least its list.
};
constexpr DegreeOption kDegreeOptions[] = {
    {"tp", &JobOptions::tp, "tensor parallel degree"},
    {"pp", &JobOptions::pp, "number of pipeline stages"},
    {"dp", &JobOptions::dp, "data parallel degree"},
    {"cp", &JobOptions::cp, "context parallel degree"},
    {"ep", &JobOptions::ep, "expert parallel degree"},
    {"vp", &JobOptions::vp, "model chunks per stage", false},
    {"micro-batch", &JobOptions::micro_batch, "samples per micro-batch"},
};

std::vector<int> parse_degrees(const std::string& option, const std::string& text) {
  std::vector<int> values;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    values.push_back(
        static_cast<int>(parse_count(option, text.substr(at, end - at), 1, kMostDegree)));
    at = end + 1;
  }
  return values;
}

void add_job(Verb& app, JobOptions& o) {
  add_count(app, "--global-batch", o.global_batch, 1, std::numeric_limits<int>::max(),
            "Samples per iteration (default: 16 per device)")
      .group(kJob);
  add_count(app, "--seq-len", o.seq_len, 1, std::int64_t{1} << 28,
            "Tokens per sample (default: the model's own maximum)")
      .group(kJob);
  add_text(app, "--precision", o.precision,
           "bf16, fp16, fp8, tf32 or fp32 (default: the first of bf16, fp16 and fp32 that "
           "the chips list)")
      .group(kJob);
  add_text(app, "--for", o.trainer,
           "The trainer that is to run the plan: a name of braid list trainers, or a YAML file "
           "(default: megatron for language models on GPUs, maxtext on TPUs, else ideal)")
      .group(kJob);
  add_dims(app, o.dims).group(kSeldom);
}

void add_system(Verb& app, JobOptions& o) {
  add_text(app, "--cluster", o.cluster,
           "NAME, NAME:64 (devices), NAME:8nodes, or a YAML file; A:2nodes+B:1nodes mixes")
      .group(kSystem);
  add_text(app, "--chip", o.chip, "A single device instead of a cluster").group(kSeldom);
  add_text(app, "--max-memory", o.max_memory, "Use no more device memory than this, e.g. '40 GiB'")
      .group(kSeldom);
  add_text(app, "--calibration", o.calibration,
           "Achieved efficiencies of your own cluster, from braid calibrate --out")
      .group(kSeldom);
}

/// The schedules of all planners, and what single ones take beside them.
void add_schedule(Verb& app, JobOptions& o, bool states_one) {
  std::string description = "The schedule";
  std::vector<std::string> words = {"gpipe", "1f1b", "interleaved"};
  std::vector<std::string> own;
  for (const FamilyOptions* of_family : family_options()) {
    for (const FamilyOption& option : of_family->options) {
      if (!option.adds_to_general || option.name != "schedule") continue;
      description += fmt::format("; {}", option.description);
      own.insert(own.end(), option.words.begin(), option.words.end());
    }
  }
  words.insert(words.end(), own.begin(), own.end());
  app.add_option(
         "--schedule",
         [&o, own](const std::string& word) {
           const bool is_own = std::find(own.begin(), own.end(), word) != own.end();
           (is_own ? o.own["schedule"] : o.schedule) = word;
         },
         description)
      .one_of(words)
      .group(states_one ? kDegrees : kSeldom);
}

void add_form(Verb& app, JobOptions& o, bool states_one) {
  for (const DegreeOption& option : kDegreeOptions) {
    const std::string name = option.name;
    const std::string what = option.what;
    Degrees& degrees = o.*option.degrees;
    const VerbOption added =
        add_degrees(app, "--" + name, degrees,
                    "The " + what + (states_one ? "" : ", or several to choose from: 1,2,4"))
            .group(states_one || option.is_usual ? kDegrees : kSeldom);
    if (states_one) added.type_name("N");
    add_count(app, "--max-" + name, 1, kMostDegree, "Upper limit of the " + what,
              [&degrees](std::int64_t most) {
                degrees = Degrees(degrees.list(), static_cast<int>(most));
              })
        .group(kLimits);
  }
  app.add_option("--recompute", o.recompute, "Activation recomputation")
      .one_of({"none", "selective", "full"})
      .group(kDegrees);
  add_count(app, "--zero", o.zero, 0, 3, "The ZeRO stage, 0 to 3").group(kDegrees);
  add_schedule(app, o, states_one);
  app.add_option("--sequence-parallel", o.sequence_parallel,
                 "Whether tensor parallel ranks shard the tokens between layers")
      .one_of({"on", "off"})
      .group(kSeldom);
  app.add_option("--whole-experts", o.whole_experts,
                 "Whether tensor parallelism leaves experts whole, spread over its ranks too")
      .one_of({"on", "off"})
      .group(kSeldom);
  app.add_option("--sharding", o.sharding,
                 "How tensor parallel ranks shard layers: as the model says (manual), or also as "
                 "a search finds best (auto)")
      .one_of({"manual", "auto"})
      .group(kSeldom);
}

}  // namespace

VerbOption add_degrees(Verb& verb, const std::string& option, Degrees& degrees,
                       const std::string& description) {
  return verb
      .add_option(
          option,
          [option, &degrees](const std::string& text) {
            degrees = Degrees(parse_degrees(option, text), degrees.limit());
          },
          description)
      .type_name("N,N,...");
}

void add_job_options(Verb& app, JobOptions& o, bool states_one) {
  app.add_option("MODEL", o.model,
                 "Zoo name, Hugging Face folder or config.json, ONNX file, or graph JSON")
      .required();
  add_job(app, o);
  add_system(app, o);
  add_form(app, o, states_one);
  app.add_flag("--no-offload", o.no_offload,
               states_one ? "Nothing is kept in host memory, here and in the best"
                          : "Never move state to host memory")
      .group(kSearch);
  app.add_flag("--all-devices", o.all_devices, "Leave no device idle, even where that is faster")
      .group(kSeldom);
  add_count(app, "--budget", o.budget, 1, std::int64_t{1} << 40,
            "Stop after this many timed configurations")
      .group(kSeldom);
  add_count(app, "--threads", o.threads, 1, 1024, "Worker threads (results do not depend on it)")
      .group(kSeldom);
  app.add_flag("--progress", o.progress, "Show progress even when stderr is no terminal")
      .group(kSeldom);
  app.add_flag("--json", o.json, "Print exactly one JSON object").group(kOutput);
}

void add_planner_options(Verb& app, JobOptions& o) {
  for (const FamilyOptions* of_family : family_options()) {
    for (const FamilyOption& option : of_family->options) {
      if (option.adds_to_general) continue;
      app.add_option(
             fmt::format("--{}", option.name),
             [&o, name = std::string(option.name)](const std::string& word) { o.own[name] = word; },
             std::string(option.description))
          .one_of({option.words.begin(), option.words.end()})
          .group(std::string(of_family->heading));
    }
  }
}

bool is_shown(const std::string& heading, const std::vector<std::string>& planners,
              bool from_profile) {
  if (heading == kLimits || heading == kSeldom || heading == kRunCosts) return false;
  if (heading == kOfProfiles) return from_profile;
  const auto tells = [&](const PlannerEntry& entry) {
    return entry.family_options != nullptr && entry.family_options->heading == heading;
  };
  return std::none_of(braid::planners().begin(), braid::planners().end(), tells) ||
         std::any_of(planners.begin(), planners.end(), [&](const std::string& name) {
           return !name.empty() && tells(find_planner(name));
         });
}

namespace {

System single_device(const std::string& name) {
  System system;
  DeviceGroup group;
  group.chip = load_chip(name);
  system.name = group.chip.name;
  // A network of one unit carries nothing; its figures only have to be valid.
  group.intra_node.name = "none";
  group.intra_node.bytes_per_s = group.chip.memory.bytes_per_s;
  group.intra_node.unit_bytes_per_s = group.chip.memory.bytes_per_s;
  system.groups.push_back(std::move(group));
  return system;
}

/// Best, bound, gap and work, at most ten times a second; on a terminal written over in place.
class ProgressLine {
 public:
  ProgressLine(bool terminal, std::string label) : terminal_(terminal), label_(std::move(label)) {}
  ~ProgressLine() {
    if (terminal_ && shown_) std::fputs("\n", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(double best_s, double bound_s, std::int64_t work) {
    const auto now = std::chrono::steady_clock::now();
    if (shown_ && now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    const bool found = std::isfinite(best_s) && best_s > 0;
    fmt::print(stderr, "{}{}best {:>10}  bound {:>10}  gap {:>8}  work {}{}", terminal_ ? "\r" : "",
               label_, found ? format_seconds(best_s) : "-",
               std::isfinite(bound_s) ? format_seconds(bound_s) : "-",
               found ? fmt::format("{:.2f} %", 100 * (1 - bound_s / best_s)) : "-", work,
               terminal_ ? "   " : "\n");
    std::fflush(stderr);
  }

 private:
  bool terminal_;
  std::string label_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace

System load_devices(const std::string& cluster, const std::string& chip) {
  if (cluster.empty() == chip.empty()) {
    throw Error(cluster.empty() ? "--cluster or --chip is required"
                                : "--cluster and --chip exclude each other",
                "say what to run on, such as --cluster dgx-h100:64");
  }
  return cluster.empty() ? single_device(chip) : load_system(cluster);
}

Precision job_precision(const std::string& name, const System& system) {
  return name.empty() ? usual_precision(system) : parse_precision(name);
}

void calibrate_system(const std::string& path, System& system) {
  if (apply_calibration(read_calibration(path), system)) return;
  throw Error(Where{path, 0, ""},
              "no chip of " + (system.name.empty() ? "the system" : system.name) + " is calibrated",
              "run braid calibrate on runs of " + system.groups.front().chip.name);
}

void limit_memory(const std::string& text, System& system) {
  if (text.empty()) return;
  const auto bytes = parse_quantity(text, Unit::bytes);
  if (!bytes || *bytes <= 0) {
    throw Error(Where{"", 0, "--max-memory"}, "'" + text + "' is not an amount of memory",
                "write it with its unit, such as '40 GiB'");
  }
  if (const auto fault = implausible(*bytes, Unit::bytes)) {
    throw Error(Where{"", 0, "--max-memory"}, fault->message, fault->remedy);
  }
  const auto most = std::max_element(system.groups.begin(), system.groups.end(),
                                     [](const DeviceGroup& a, const DeviceGroup& b) {
                                       return a.chip.memory.bytes < b.chip.memory.bytes;
                                     });
  if (*bytes > most->chip.memory.bytes) {
    throw Error(Where{"", 0, "--max-memory"},
                fmt::format("{} is more than there is: {} has {}", in_quotes(text),
                            most->chip.name.empty() ? "a device" : most->chip.name,
                            format_bytes(most->chip.memory.bytes)),
                "it only lowers what plans may use: give less, or leave it out");
  }
  for (DeviceGroup& group : system.groups) {
    Chip& chip = group.chip;
    chip.reserved_bytes = std::max(chip.reserved_bytes, chip.memory.bytes - *bytes);
  }
}

PlannerOptions space_of(const JobOptions& o) {
  PlannerOptions space;
  space.tp = o.tp;
  space.pp = o.pp;
  space.dp = o.dp;
  space.cp = o.cp;
  space.ep = o.ep;
  space.vp = o.vp;
  space.micro_batch = o.micro_batch;
  if (!o.sequence_parallel.empty()) space.sequence_parallel = o.sequence_parallel == "on";
  if (!o.whole_experts.empty()) space.whole_experts = o.whole_experts == "on";
  if (!o.recompute.empty()) space.recompute = parse_recompute(o.recompute);
  if (!o.schedule.empty()) space.schedule = parse_schedule(o.schedule);
  if (o.zero >= 0) space.zero = static_cast<Zero>(o.zero);
  space.allow_offload = !o.no_offload;
  space.all_devices = o.all_devices;
  space.top = o.top;
  space.own = o.own;
  return space;
}

Graph named_model(const JobOptions& o) {
  return load_model(o.model, {.seq_len = o.seq_len, .dims = parse_dims(o.dims)});
}

void load_job(const JobOptions& o, LoadedJob& loaded, const JobBasis& basis) {
  if (o.threads > 0) set_thread_count(o.threads);
  const bool named = !o.cluster.empty() || !o.chip.empty();
  loaded.system =
      basis.system != nullptr && !named ? *basis.system : load_devices(o.cluster, o.chip);
  loaded.job.precision = job_precision(o.precision, loaded.system);
  if (o.precision.empty() && loaded.job.precision != Precision{}) {
    loaded.assumptions.push_back("precision: " + name_of(loaded.job.precision) +
                                 ", as no bf16 peak is listed (no --precision given)");
  }
  loaded.graph = basis.model != nullptr ? *basis.model : named_model(o);
  check_computes(loaded.graph, o.model);
  set_working_precision(loaded.graph, loaded.job.precision.activation, loaded.job.precision.weight);
  if (!o.calibration.empty()) calibrate_system(o.calibration, loaded.system);
  if (!o.max_memory.empty()) loaded.unlimited = loaded.system;
  loaded.max_memory = o.max_memory;
  limit_memory(o.max_memory, loaded.system);
  loaded.job.graph = &loaded.graph;
  loaded.job.model_source = o.model;
  loaded.job.global_batch = o.global_batch;
  loaded.job.sharding = parse_sharding(o.sharding);
  if (o.global_batch == 0) {
    loaded.job.global_batch = kSamplesPerDevice * loaded.system.device_count;
    loaded.assumptions.push_back("global batch: 16 samples per device (no --global-batch given)");
  }
  if (o.seq_len == 0 && loaded.graph.seq_len > 0) {
    loaded.longest_samples = true;
    loaded.assumptions.push_back("sequence length: the model's maximum (no --seq-len given)");
  }
  if (std::filesystem::path(o.model).extension() == ".onnx") {
    loaded.assumptions.emplace_back(
        "ONNX: attention, activations and norms that the file writes out run as one kernel each");
  }
  loaded.space = space_of(o);
  loaded.budget.work = o.budget;
}

namespace {

/// Throws Error where the trainer of a run that is read cannot run the job.
void check_trainer_of_run(const std::string& name, const TrainerNeeds& needs) {
  const std::string reason = refusal(load_trainer(name), needs);
  if (reason.empty()) return;
  throw Error(Where{"", 0, "--from"}, fmt::format("it is of {}, which {}", name, reason),
              "change --cluster or what is fixed, or name another trainer with --for, such as "
              "ideal");
}

}  // namespace

TrainerFile set_job_trainer(const JobOptions& o, const std::vector<const PlannerEntry*>& planners,
                            LoadedJob& loaded, const TrainerBasis& basis) {
  const TrainerNeeds needs{&loaded.job, &loaded.system, &loaded.space, planners, basis.own_code};
  const Profile* listed = loaded.job.layers != nullptr ? loaded.job.layers->listed() : nullptr;
  std::string name = o.trainer;
  if (name.empty() && listed != nullptr) {
    // The profile's own, where it can run the job.
    for (const TrainerFile& trainer : trainer_catalogue()) {
      if (trainer.name == listed->trainer && refusal(trainer, needs).empty()) name = trainer.name;
    }
  }
  if (basis.of_run && !name.empty()) check_trainer_of_run(name, needs);
  TrainerFile trainer = choose_trainer(name, needs);
  loaded.trainer_notes = trainer_notes(trainer, needs, !name.empty());
  set_trainer(trainer, loaded.system, loaded.job, loaded.space);
  if (basis.run != nullptr && basis.run->trainer == trainer.name) {
    const TrainerBehaviour usual = loaded.job.trainer.does;
    take_behaviour(*basis.run, loaded.job.trainer.does);
    loaded.unusual_trainer = loaded.job.trainer.does != usual;
  }
  if (loaded.job.graph != nullptr) {
    adapt_graph(loaded.job.trainer.does, loaded.graph);
    return trainer;
  }
  if (std::exchange(loaded.job.trainer.does.gradient_placeholders, false)) {
    loaded.assumptions.push_back("the profile does not say the shapes of weights, of which " +
                                 trainer.name + " keeps placeholders in memory");
  }
  if (listed != nullptr && !listed->trainer.empty() && listed->trainer != trainer.name) {
    loaded.assumptions.push_back("the profile's times, of kernels of " + listed->trainer +
                                 ", are taken for those of " + trainer.name);
  }
  return trainer;
}

ShardingSource parse_sharding(const std::string& name) {
  return name == "auto" ? ShardingSource::automatic : ShardingSource::manual;
}

void check_planner_options(const JobOptions& o, const std::vector<const PlannerEntry*>& planners) {
  for (const FamilyOptions* of_family : family_options()) {
    const auto takes = [&](const PlannerEntry& entry) { return entry.family_options == of_family; };
    if (std::any_of(planners.begin(), planners.end(),
                    [&](const PlannerEntry* entry) { return takes(*entry); })) {
      continue;
    }
    for (const FamilyOption& option : of_family->options) {
      const std::string_view word = word_of(o.own, option.name);
      if (word.empty()) continue;
      throw Error(Where{"", 0, fmt::format("--{}", option.name)},
                  fmt::format("{}is for {}", option.adds_to_general ? fmt::format("{} ", word) : "",
                              planners_text(takes)),
                  option.adds_to_general ? "fix gpipe, 1f1b or interleaved, or leave it out"
                                         : "leave it out");
    }
  }
}

Progress progress_line(const JobOptions& o, const std::string& planner) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (!o.progress && !terminal) return {};
  const auto line = std::make_shared<ProgressLine>(
      terminal, planner.empty() ? "" : fmt::format("{:<12}", planner));
  return [line](double best_s, double bound_s, std::int64_t work) {
    line->show(best_s, bound_s, work);
  };
}

}  // namespace braid
