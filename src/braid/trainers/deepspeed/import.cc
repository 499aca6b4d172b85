#include "braid/trainers/deepspeed/import.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/text.h"
#include "braid/trainers/deepspeed/ignored_keys.h"
#include "braid/trainers/deepspeed/start_line.h"
#include "braid/trainers/exchange/hf_arguments.h"
#include "braid/trainers/exchange/nested_settings.h"
#include "braid/trainers/exchange/signs.h"
#include "braid/trainers/exchange/started_processes.h"

namespace braid {
namespace {

constexpr OwnOption kOwnOptions[] = {{"--tp", "autotp_size"},
                                     {"--cp", "sequence_parallel_size"},
                                     {"--ep", "autoep_size"},
                                     {"--micro-batch", "train_micro_batch_size_per_gpu"},
                                     {"--global-batch", "train_batch_size"}};

constexpr std::int64_t kMostSamples = 1 << 30;

/// The end of the string that begins at `at`; the text's where it is not closed.
std::size_t end_of_json_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return std::min(at + 1, text.size());
}

/// The end of the comment that begins at `at`; `at` where none does.
std::size_t end_of_comment(std::string_view text, std::size_t at) {
  const std::string_view here = text.substr(at);
  if (here.starts_with("//") || here.starts_with('#')) {
    return std::min(text.find('\n', at), text.size());
  }
  if (!here.starts_with("/*")) return at;
  const std::size_t end = text.find("*/", at + 2);
  return end == std::string_view::npos ? text.size() : end + 2;
}

/// With blanks in place of what DeepSpeed's reader (Hjson) skips and JSON does not have: comments,
/// and the comma behind a last member.
std::string as_json(std::string_view text) {
  std::string plain(text);
  std::size_t last = 0;  // That is neither blank nor of a comment.
  for (std::size_t i = 0; i < plain.size();) {
    if (const std::size_t end = end_of_comment(text, i); end > i) {
      for (; i < end; ++i) plain[i] = plain[i] == '\n' ? '\n' : ' ';
      continue;
    }
    if ((text[i] == '}' || text[i] == ']') && plain[last] == ',') plain[last] = ' ';
    if (!contains(" \t\r\n", text.substr(i, 1))) last = i;
    i = text[i] == '"' ? end_of_json_string(text, i) : i + 1;
  }
  return plain;
}

/// A count; null and "auto", which Hugging Face's Trainer fills in, are "not given".
std::int64_t number(GivenArguments& given, std::string_view name, std::int64_t otherwise,
                    std::int64_t least = 1) {
  const std::string text = given.text(name).value_or("null");
  if (text == "null" || text == "auto") return otherwise;
  return given.count(name, least, kMostSamples).value_or(otherwise);
}

/// 0 stands for "none".
int degree(GivenArguments& given, std::string_view name) {
  const std::string text = given.text(name).value_or("null");
  if (text == "null" || text == "auto") return 1;
  return static_cast<int>(std::max<std::int64_t>(1, given.count(name, 0, 1 << 15).value_or(1)));
}

bool says_yes(GivenArguments& given, std::string_view name) {
  return given.text(name).value_or("false") == "true";
}

void read_zero(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  const std::int64_t stage = number(given, "--zero_optimization.stage", 0, 0);
  constexpr std::int64_t kLast = 3;
  if (stage > kLast) {
    given.fail("--zero_optimization.stage", "there is no ZeRO-" + std::to_string(stage),
               "use 0 to 3");
  }
  p.zero = static_cast<Zero>(stage);
  const auto is_moved = [&](const char* name) {
    const std::string device = given.text(name).value_or("none");
    if (device == "nvme") {
      run.notes.push_back(std::string(name + 2) + ": what is on NVMe is taken to be in memory");
    }
    return device != "none" && device != "null";
  };
  p.offload_optimizer = is_moved("--zero_optimization.offload_optimizer.device");
  p.offload_weights = is_moved("--zero_optimization.offload_param.device");
  if (says_yes(given, "--zero_optimization.cpu_offload")) p.offload_optimizer = true;
  if (p.offload_weights && p.zero == Zero::parameters) {
    p.offload_weights = false;
    run.host_shards = true;
  }
  const std::string ratio = given.text("--zero_optimization.offload_optimizer.ratio").value_or("1");
  if (finite_double(ratio).value_or(1) < 1) {
    run.notes.emplace_back(
        "offload_optimizer.ratio: all of the optimizer state is on the host here");
  }
}

void read_precision(GivenArguments& given, Import& run) {
  const bool half = says_yes(given, "--fp16.enabled");
  bool narrow = says_yes(given, "--bf16.enabled");
  if (says_yes(given, "--bfloat16.enabled")) narrow = true;
  for (const char* name : {"--fp16.enabled", "--bf16.enabled", "--bfloat16.enabled"}) {
    // Hugging Face's Trainer fills in what is "auto".
    if (half || narrow || given.text(name).value_or("") != "auto") continue;
    run.gradients_like_weights =
        given.text("--data_types.grad_accum_dtype").value_or("null") != "fp32";
    return;
  }
  run.precision = parse_precision(half ? "fp16" : narrow ? "bf16" : "fp32");
  // Gradients have the weights' format where nothing else is said (get_data_types in engine.py).
  const std::string gradients = given.text("--data_types.grad_accum_dtype").value_or("null");
  if (gradients == "null") {
    run.precision->gradient = half ? Dtype::f16 : narrow ? Dtype::bf16 : Dtype::f32;
  } else if (gradients == "fp32" || gradients == "fp16" || gradients == "bf16") {
    run.precision->gradient = gradients == "fp32"   ? Dtype::f32
                              : gradients == "fp16" ? Dtype::f16
                                                    : Dtype::bf16;
  } else {
    given.fail("--data_types.grad_accum_dtype", in_quotes(gradients) + " is no number format",
               "use fp32, fp16 or bf16");
  }
}

void read_batch(GivenArguments& given, Import& run) {
  constexpr std::string_view kMicro = "--train_micro_batch_size_per_gpu";
  const std::int64_t batch = number(given, "--train_batch_size", 0);
  const std::int64_t micro = number(given, kMicro, 0);
  const std::int64_t steps = number(given, "--gradient_accumulation_steps", 0);
  run.parallel.micro_batch = static_cast<int>(std::max<std::int64_t>(1, micro));
  run.says_micro_batch = micro > 0;
  const bool says_steps = steps > 0 || (micro > 0 && batch == 0);
  if (says_steps && (micro > 0 || batch == 0)) run.accumulation = std::max<std::int64_t>(1, steps);
  if (batch == 0) return;
  if (micro == 0) run.steps_of_batch = std::max<std::int64_t>(1, steps);
  // Counts all ranks but those of sequence parallelism as replicas.
  run.global_batch = batch;
  if (run.parallel.tp == 1) return;
  run.global_batch = std::max<std::int64_t>(1, batch / run.parallel.tp);
  run.notes.emplace_back(
      "train_batch_size counts tensor-parallel ranks as replicas: here it is shared among them");
}

/// Of what the optimizer and the checkpoints of activations are told, what no figure depends on.
void note_what_is_otherwise(GivenArguments& given, Import& run) {
  const std::string optimizer = given.text("--optimizer.type").value_or("auto");
  constexpr std::array<std::string_view, 7> kAdam = {"auto",   "null",    "adam",     "adamw",
                                                     "muadam", "muadamw", "fusedadam"};
  if (std::find(kAdam.begin(), kAdam.end(), lowered(optimizer)) == kAdam.end()) {
    run.notes.push_back("optimizer " + in_quotes(optimizer) +
                        ": here state and step are Adam's, and gradients are summed whole");
  }
  if (says_yes(given, "--activation_checkpointing.partition_activations") && run.parallel.tp > 1) {
    run.notes.emplace_back(
        "partition_activations divides checkpoints among tensor-parallel ranks: here each keeps "
        "them whole");
  }
}

/// overlap_comm is off below ZeRO-3 and on there where nothing is said (runtime/zero/config.py).
void read_overlap(GivenArguments& given, Import& run) {
  const Zero zero = run.parallel.zero;
  const std::string said = given.text("--zero_optimization.overlap_comm").value_or("null");
  const bool overlaps = said == "true" || (said != "false" && zero == Zero::parameters);
  if (zero == Zero::optimizer && overlaps) {
    run.does.push_back({&TrainerBehaviour::overlapped_gradients, true});
  }
  if (zero >= Zero::gradients && !overlaps) {
    run.notes.emplace_back(
        "without overlap_comm the passes wait for what ranks exchange: here it hides behind them");
  }
}

/// The run that its settings tell; `run` has what is known of it besides.
Import import_settings(const std::vector<Setting>& settings, const std::string& file, Import run) {
  const auto starts = [&](std::string_view section) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const Setting& each) { return each.name.starts_with(section); });
  };
  const bool recomputes = starts("activation_checkpointing");
  GivenArguments given = as_arguments(settings, file);
  run.trainer = "deepspeed";
  run.own_options = kOwnOptions;
  Parallelism& p = run.parallel;
  p.dp = 0;
  p.tp = std::max(degree(given, "--tensor_parallel.autotp_size"),
                  degree(given, "--tensor_parallel.tp.tp_size"));
  p.cp = degree(given, "--sequence_parallel_size");
  p.ep = degree(given, "--expert_parallel.autoep_size");
  if (!says_yes(given, "--expert_parallel.enabled")) p.ep = 1;
  p.pp = degree(given, "--pipeline.stages");
  if (p.cp > 1) {
    run.notes.emplace_back(
        "sequence_parallel_size: Ulysses exchanges heads; here keys and values go round");
  }
  read_zero(given, run);
  read_precision(given, run);
  read_batch(given, run);
  read_overlap(given, run);
  note_what_is_otherwise(given, run);
  note_unmodelled(given, unmodelled_deepspeed_keys(), run);
  if (recomputes) {
    p.recompute = Recompute::full;
    p.offload_activations = says_yes(given, "--activation_checkpointing.cpu_checkpointing");
    run.notes.emplace_back(
        "activation_checkpointing: the model's code says which layers recompute; here all do, or "
        "those of --recompute");
  }
  for (const Setting& each : settings) {
    if (is_ignored_by_deepspeed_reader(each.name)) given.has("--" + each.name);
  }
  std::vector<std::string> unknown = unknown_settings(given);
  run.unknown.insert(run.unknown.end(), std::make_move_iterator(unknown.begin()),
                     std::make_move_iterator(unknown.end()));
  return run;
}

/// The run of the file that a start line names, with what the line says beside it.
Import import_start_line(std::string_view text, const std::string& file,
                         const ImportChoice& choice) {
  const DeepspeedStart start = deepspeed_start(text, file, choice);
  const std::string named = read_file(start.settings_file);
  if (is_deepspeed_start(named)) {
    throw Error(Where{file, 0, "--deepspeed_config"},
                in_quotes(start.settings_file) + " is no JSON", "name the file of settings");
  }
  std::vector<Setting> settings = settings_of_json(as_json(named), start.settings_file);
  Import run;
  take_trainer_arguments(start.arguments, file, settings, run);
  run = import_settings(settings, start.settings_file, std::move(run));
  run.devices = processes_started(start.launcher, file);
  // What lets GEMMs of FP32 run in TF32: the variable that export writes, or the Trainer's flag.
  GivenArguments arguments(start.arguments, file);
  const bool allows = contains(text, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1");
  const bool asks = is_set_for_hf(arguments, "--tf32");
  const bool wide = run.precision && run.precision->matmul == Dtype::f32;
  if (wide && (allows || asks)) {
    run.precision = parse_precision("tf32");
  }
  return run;
}

}  // namespace

bool is_deepspeed(std::string_view text) {
  if (is_deepspeed_start(text)) return true;
  const std::string plain = as_json(text);
  const std::size_t first = plain.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || plain[first] != '{') return false;
  return has_sign(
      text, {"\"zero_optimization\"", "\"train_batch_size\"", "\"train_micro_batch_size_per_gpu\"",
             "\"gradient_accumulation_steps\"", "\"fp16\"", "\"bf16\""});
}

Import import_deepspeed(std::string_view text, const std::string& file,
                        const ImportChoice& choice) {
  if (is_deepspeed_start(text)) return import_start_line(text, file, choice);
  return import_settings(settings_of_json(as_json(text), file), file, {});
}

}  // namespace braid
