#include "braid/trainers/megatron/import.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/expert_shards.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/megatron_fsdp.h"
#include "braid/trainers/exchange/open_script.h"
#include "braid/trainers/exchange/recomputed_modules.h"
#include "braid/trainers/exchange/shell_script.h"
#include "braid/trainers/exchange/signs.h"
#include "braid/trainers/exchange/started_processes.h"
#include "braid/trainers/megatron/behaviour_arguments.h"
#include "braid/trainers/megatron/deepspeed_arguments.h"
#include "braid/trainers/megatron/ignored_arguments.h"
#include "braid/trainers/megatron/model_sizes.h"
#include "braid/trainers/megatron/pipeline_arguments.h"

namespace braid {
namespace {

constexpr OwnOption kOwnOptions[] = {{"--tp", "--tensor-model-parallel-size"},
                                     {"--pp", "--pipeline-model-parallel-size"},
                                     {"--cp", "--context-parallel-size"},
                                     {"--ep", "--expert-model-parallel-size"},
                                     {"--vp", "--num-layers-per-virtual-pipeline-stage"},
                                     {"--vp", "--num-virtual-stages-per-pipeline-rank"},
                                     {"--layout", "--pipeline-model-parallel-layout"},
                                     {"--micro-batch", "--micro-batch-size"},
                                     {"--global-batch", "--global-batch-size"},
                                     {"--seq-len", "--seq-length"}};

int degree(GivenArguments& given, std::string_view name, int otherwise = 1) {
  return static_cast<int>(given.count(name, 1, 1 << 20).value_or(otherwise));
}

/// Formats of what the optimizer keeps, which it has with --use-precision-aware-optimizer alone.
void read_optimizer_formats(GivenArguments& given, Precision& precision) {
  const bool aware = given.has("--use-precision-aware-optimizer");
  double bytes = 0;
  for (const char* name : {"--main-params-dtype", "--exp-avg-dtype", "--exp-avg-sq-dtype"}) {
    const std::string format = given.text(name).value_or("fp32");
    bytes += format == "fp32" ? 4 : format == "fp8" ? 1 : 2;
  }
  if (precision.weight == Dtype::f32) bytes -= 4;  // Which are the main parameters.
  const std::string gradients = given.text("--main-grads-dtype").value_or("fp32");
  if (!aware) return;
  precision.optimizer_bytes_per_parameter = bytes;
  if (gradients == "bf16") precision.gradient = Dtype::bf16;
}

/// Megatron-FSDP sums gradients in the weights' format unless its own argument says otherwise
/// (_resolve_group_grad_dtype() in
/// core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py).
void read_fsdp_gradients(GivenArguments& given, Precision& precision) {
  const bool fsdp = given.has("--use-megatron-fsdp") || given.has("--use-custom-fsdp");
  const std::string format = given.text("--megatron-fsdp-main-grads-dtype").value_or("auto");
  if (!fsdp) return;
  precision.gradient = format == "fp32"   ? Dtype::f32
                       : format == "bf16" ? Dtype::bf16
                       : format == "fp16" ? Dtype::f16
                                          : precision.weight;
}

Precision read_precision(GivenArguments& given) {
  const bool bf16 = given.has("--bf16");
  const bool fp16 = given.has("--fp16");
  const bool fp8 = given.has("--fp8-format") || given.has("--fp8-hybrid");
  Precision precision = parse_precision(fp8 ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
  const bool narrow = given.has("--grad-reduce-in-bf16");
  const bool wide = given.has("--accumulate-allreduce-grads-in-fp32");
  if (narrow && !wide) precision.gradient = Dtype::bf16;
  // Weights in FP16 have gradients in FP16 where nothing else is said; BF16 ones, in FP32.
  if (fp16 && !wide) precision.gradient = Dtype::f16;
  read_optimizer_formats(given, precision);
  read_fsdp_gradients(given, precision);
  return precision;
}

void read_sharding(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  const bool optimizer = given.has("--use-distributed-optimizer");
  const bool fsdp = given.has("--use-megatron-fsdp") || given.has("--use-custom-fsdp");
  const bool torch_fsdp = given.has("--use-torch-fsdp2");
  const std::string strategy =
      given.text("--data-parallel-sharding-strategy").value_or("optim_grads_params");
  if (optimizer) p.zero = Zero::optimizer;
  if (torch_fsdp) p.zero = Zero::parameters;
  if (fsdp) p.zero = zero_of_megatron_fsdp(strategy);
  if (given.has("--fine-grained-activation-offloading")) p.offload_activations = true;
  if (given.has("--optimizer-cpu-offload")) {
    const double share =
        finite_double(given.text("--optimizer-offload-fraction").value_or("1")).value_or(1);
    p.offload_optimizer = true;
    if (share < 1) {
      run.notes.emplace_back(
          "--optimizer-offload-fraction: all of the optimizer state is on the host here");
    }
  }
}

void read_recomputation(GivenArguments& given, Import& run) {
  const std::string granularity = given.text("--recompute-granularity").value_or("");
  if (given.has("--recompute-activations") || granularity == "selective") {
    run.parallel.recompute = Recompute::selective;
    take_recomputed_modules(given.text("--recompute-modules").value_or("core_attn"),
                            "--recompute-modules", run);
  }
  if (granularity != "full") return;
  run.parallel.recompute = Recompute::full;
  const std::string method = given.text("--recompute-method").value_or("uniform");
  const std::int64_t layers = given.count_or("--recompute-num-layers", 1);
  if (method == "block" || layers != 1) {
    run.notes.push_back(
        fmt::format("--recompute-method {} of {} layers: here every layer is "
                    "recomputed for itself",
                    in_quotes(method), layers));
  }
}

/// The words behind the script that has Megatron-LM's arguments, and those before it.
struct Launch {
  ShellCommand before, arguments;
  std::string script;                ///< The name of the program that has the arguments.
  std::size_t first = 0;             ///< Where the arguments begin in the command.
  std::vector<UnknownPart> unknown;  ///< Of the command.
};

bool is_argument(std::string word) {
  std::replace(word.begin(), word.end(), '_', '-');
  constexpr std::array<std::string_view, 4> kUsual = {
      "--tensor-model-parallel-size", "--micro-batch-size", "--num-layers", "--hidden-size"};
  return std::any_of(kUsual.begin(), kUsual.end(),
                     [&](std::string_view usual) { return word.starts_with(usual); });
}

std::optional<Launch> launch_of(const ShellCommand& command) {
  // What is printed is no launch yet.
  if (command.front() == "echo" || command.front() == "printf") return std::nullopt;
  if (std::none_of(command.begin(), command.end(), is_argument)) return std::nullopt;
  const auto name = std::find_if(command.begin(), command.end(),
                                 [](const std::string& word) { return word.ends_with(".py"); });
  if (name == command.end()) return Launch{{}, command, "", 0, {}};
  const auto first = static_cast<std::size_t>(name - command.begin()) + 1;
  const std::string script = name->substr(name->rfind('/') + 1);
  return Launch{{command.begin(), name}, {name + 1, command.end()}, script, first, {}};
}

/// The first that the script starts; where it starts others with other arguments, a note says so.
Launch find_launch(const ShellScript& script, const std::string& file,
                   std::vector<std::string>& notes) {
  std::optional<Launch> first;
  for (std::size_t c = 0; c < script.commands.size(); ++c) {
    std::optional<Launch> launch = launch_of(script.commands[c]);
    const bool is_inner = !launch;
    for (const ShellCommand& inner : inner_commands(script.commands[c], script, file)) {
      if (!launch) launch = launch_of(inner);
    }
    if (!launch) continue;
    if (first) {
      if (launch->arguments == first->arguments) continue;
      notes.emplace_back(
          "several lines start it, with other arguments each: the first is read here");
      break;
    }
    for (const UnknownPart& part : script.unknown_parts) {
      if (part.command != c) continue;
      launch->unknown.push_back(part);
      // Words of another command: which argument it is of is not known.
      if (is_inner) launch->unknown.back().word = std::numeric_limits<std::size_t>::max();
    }
    first = std::move(launch);
  }
  if (first) return *std::move(first);
  throw Error(Where{file, 0, ""}, "no command has Megatron-LM's arguments",
              "give the line that starts pretrain_gpt.py, or its launch script");
}

/// The argument whose first value something not known is, or is a part of; empty: of none.
std::string argument_of(std::size_t unknown, const Launch& launch) {
  const UnknownPart& part = launch.unknown[unknown];
  const UnknownPart* previous = unknown > 0 ? &launch.unknown[unknown - 1] : nullptr;
  if (previous != nullptr && previous->is_left_out && previous->word == part.word) return "";
  const auto word = [&](std::size_t at) -> std::string {
    if (at < launch.before.size()) return launch.before[at];
    const std::size_t behind = at - launch.first;
    return at >= launch.first && behind < launch.arguments.size() ? launch.arguments[behind] : "";
  };
  std::string own = word(part.word);
  if (own.starts_with("-") && contains(own, "=")) return own.substr(0, own.find('='));
  std::string before = part.word > 0 ? word(part.word - 1) : "";
  return before.starts_with("--") && !contains(before, "=") ? before : "";
}

/// Whether figures depend on the argument, of torchrun or of the script.
bool counts(std::string argument) {
  std::replace(argument.begin(), argument.end(), '_', '-');
  constexpr std::array<std::string_view, 8> kOfPlace = {
      "--node-rank", "--master-addr",  "--master-port", "--rdzv-endpoint",
      "--rdzv-id",   "--rdzv-backend", "--log-dir",     "--local-addr"};
  return std::find(kOfPlace.begin(), kOfPlace.end(), argument) == kOfPlace.end() &&
         !is_ignored_by_megatron_reader(argument);
}

/// What the script leaves open, as notes.
void note_open_parts(const ShellScript& script, const Launch& launch, Import& run) {
  std::vector<std::string> undefined = script.of_conditions;
  for (std::size_t i = 0; i < launch.unknown.size(); ++i) {
    const std::string& name = launch.unknown[i].name;
    const bool is_listed = std::find(undefined.begin(), undefined.end(), name) != undefined.end();
    if (!is_listed && counts(argument_of(i, launch))) undefined.push_back(name);
  }
  note_what_is_open(undefined, script, run.notes);
}

}  // namespace

bool is_megatron(std::string_view text) {
  return has_sign(
      text, {"pretrain_gpt.py", "pretrain_hybrid.py", "pretrain_mamba.py", "pretrain_bert.py",
             "pretrain_t5.py", "--tensor-model-parallel-size", "--pipeline-model-parallel-size",
             "--micro-batch-size", "--num-attention-heads"});
}

namespace {

/// The command line of a file of the functional tests, whose MODEL_ARGS has lines "--name: value"
/// (tests/functional_tests/test_cases/*/model_config.yaml); empty for other texts.
std::string command_of_test(std::string_view text) {
  if (!text.starts_with("MODEL_ARGS:\n") && !contains(text, "\nMODEL_ARGS:\n")) return "";
  std::string command = "pretrain_gpt.py";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("--") || colon == std::string_view::npos) continue;
    std::string value(line.substr(colon + 2));
    if (const std::size_t comment = value.find(" #"); comment != std::string::npos) {
      value.erase(comment);
    }
    value.erase(value.find_last_not_of(" \r") + 1);
    if (value == "false") continue;
    const bool is_plain = value.find_first_of("'\"") == std::string::npos;
    command += " " + std::string(line.substr(0, colon));
    if (value != "true") command += is_plain ? " '" + value + "'" : " " + value;
  }
  return command;
}

/// Blocks that stages are dealt: of the model that is named, or of that beside the script where the
/// arguments do not say all of one, else of the arguments.
std::int64_t blocks_to_deal(const ImportChoice& choice, const Import& run) {
  const bool is_whole = run.shape && run.shape->vocab > 0;
  const std::int64_t blocks = is_whole ? choice.blocks : choice.blocks_of_model();
  return blocks > 0 ? blocks : run.blocks;
}

}  // namespace

Import import_megatron(std::string_view text, const std::string& file, const ImportChoice& choice) {
  if (const std::string command = command_of_test(text); !command.empty()) {
    return import_megatron(command, file, choice);
  }
  const ShellScript script = read_script_with_sourced(text, file, choice);
  Import run;
  const Launch launch = find_launch(script, file, run.notes);
  GivenArguments given(launch.arguments, file);
  for (std::size_t i = 0; i < launch.unknown.size(); ++i) {
    UnknownValue why = why_unknown(launch.unknown[i].name, script);
    given.set_unknown_value(argument_of(i, launch), std::move(why.message), std::move(why.remedy));
  }
  run.trainer = "megatron";
  run.own_options = kOwnOptions;
  run.devices = processes_started(launch.before, file);
  run.seq_len = given.count_or("--seq-length", given.count_or("--encoder-seq-length", 0));
  run.global_batch = given.count_or("--global-batch-size", 0);
  Parallelism& p = run.parallel;
  p.dp = 0;
  p.micro_batch = degree(given, "--micro-batch-size");
  if (run.global_batch == 0) {
    run.accumulation = 1;
    run.not_given.push_back(
        {"--global-batch-size: a micro-batch on each data-parallel rank", "--global-batch"});
  }
  p.tp = degree(given, "--tensor-model-parallel-size");
  p.cp = degree(given, "--context-parallel-size");
  p.ep = degree(given, "--expert-model-parallel-size", degree(given, "--moe-expert-parallel-size"));
  read_earlier_arguments(given, run);
  p.sequence_parallel = given.has("--sequence-parallel") && p.tp > 1;
  // Experts are sharded as the other layers where nothing else is said.
  const int expert_tp = degree(given, "--expert-tensor-parallel-size", p.tp);
  if (p.ep > 1 || megatron_experts(given) > 0) {
    take_expert_shards(given, "--expert-tensor-parallel-size", expert_tp, run);
  }
  run.shape = megatron_shape(given, launch.script, run);
  run.blocks = run.shape ? run.shape->blocks : given.count_or("--num-layers", 0);
  run.hidden = given.count_or("--hidden-size", 0);
  read_megatron_layers(given, run);
  run.precision = read_precision(given);
  // The variable that lets GEMMs of FP32 run in TF32 (as export writes it).
  if (run.precision->matmul == Dtype::f32 && contains(text, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1")) {
    run.precision = parse_precision("tf32");
  }
  read_pipeline(given, file, blocks_to_deal(choice, run), run);
  read_sharding(given, run);
  read_recomputation(given, run);
  read_behaviour(given, run);
  if (given.has("--use-tp-pp-dp-mapping")) p.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  if (given.has("--use-checkpoint-args")) {
    run.notes.emplace_back(
        "--use-checkpoint-args: sizes that the checkpoint has count in a run; here those of this "
        "line");
  }
  for (const char* ramp : {"--rampup-batch-size", "--step-batch-size-schedule"}) {
    if (const auto sizes = given.text(ramp)) {
      run.notes.push_back(std::string(ramp) + " " + on_one_line(*sizes) +
                          ": here every iteration has the whole batch");
    }
  }
  read_deepspeed_arguments(given, choice, run);
  given.ignore_if(is_ignored_by_megatron_reader);
  run.unknown = given.unknown();
  note_open_parts(script, launch, run);
  return run;
}

}  // namespace braid
