#include "braid/trainers/maxtext/import.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/trainers/exchange/launch_line.h"
#include "braid/trainers/exchange/settings.h"
#include "braid/trainers/exchange/signs.h"
#include "braid/trainers/maxtext/model_names.h"

namespace braid {
namespace {

constexpr OwnOption kOwnOptions[] = {
    {"--tp", "ici_tensor_parallelism"},         {"--pp", "ici_pipeline_parallelism"},
    {"--cp", "ici_context_parallelism"},        {"--ep", "ici_expert_parallelism"},
    {"--micro-batch", "per_device_batch_size"}, {"--global-batch", "per_device_batch_size"},
    {"--seq-len", "max_target_length"}};

/// A degree of the mesh; -1: what the others leave, as 0.
std::int64_t axis(GivenArguments& given, std::string_view name, std::int64_t otherwise) {
  if (given.text(name).value_or("") == "-1") return 0;
  return given.count(name, 1, 1 << 20).value_or(otherwise);
}

void read_mesh(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  const std::int64_t ici_data = axis(given, "--ici_data_parallelism", 1);
  const std::int64_t ici_fsdp = axis(given, "--ici_fsdp_parallelism", 0);
  const std::int64_t dcn_data = axis(given, "--dcn_data_parallelism", 0);
  const std::int64_t dcn_fsdp = axis(given, "--dcn_fsdp_parallelism", 1);
  const auto tensor = static_cast<int>(axis(given, "--ici_tensor_parallelism", 1));
  p.tp = tensor > 0 ? tensor : 1;
  p.ep = static_cast<int>(std::max<std::int64_t>(1, axis(given, "--ici_expert_parallelism", 1)));
  p.cp = static_cast<int>(std::max<std::int64_t>(1, axis(given, "--ici_context_parallelism", 1)));
  if (tensor == 0) run.notes.emplace_back("ici_tensor_parallelism: -1 is taken as 1");
  // State of the other layers is sharded over the expert axis too (`embed` in logical_axis_rules).
  p.zero = ici_fsdp == 1 && dcn_fsdp == 1 && p.ep == 1 ? Zero::none : Zero::parameters;
  p.sequence_parallel = p.tp > 1;
  const bool all_said = ici_data > 0 && ici_fsdp > 0 && dcn_data > 0 && dcn_fsdp > 0;
  if (!all_said) return;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::int64_t dp = p.ep;
  for (const std::int64_t each : {ici_data, ici_fsdp, dcn_data, dcn_fsdp}) {
    if (dp > kMost / each)
      given.fail("--ici_fsdp_parallelism", "the mesh has more than 2^30 devices", "choose less");
    dp *= each;
  }
  p.dp = static_cast<int>(dp);
  if (p.zero == Zero::parameters) p.replicate = static_cast<int>(ici_data * dcn_data);
  if (dp <= kMost / p.tp / p.cp) run.devices = dp * p.tp * p.cp;
}

void read_memory(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  const std::string policy = given.text("--remat_policy").value_or("full");
  p.recompute = policy == "minimal_with_context"                       ? Recompute::none
                : policy == "minimal" || policy == "minimal_offloaded" ? Recompute::selective
                                                                       : Recompute::full;
  p.offload_activations = policy == "minimal_offloaded";
  if (p.recompute == Recompute::full && policy != "full") {
    run.notes.push_back("remat_policy " + in_quotes(policy) +
                        ": taken as full recomputation, which braid knows");
  }
  p.offload_optimizer = is_on(given, "--optimizer_memory_host_offload");
  p.offload_weights = is_on(given, "--parameter_memory_host_offload");
}

void read_batch(GivenArguments& given, Import& run) {
  const std::string text = given.text("--per_device_batch_size").value_or("12");
  const std::optional<double> each = finite_double(text);
  if (!each || *each <= 0 || *each > 1e6) {
    given.fail("--per_device_batch_size", in_quotes(text) + " is no number of samples",
               "give a number above 0");
  }
  const std::int64_t steps = given.count_or("--gradient_accumulation_steps", 1);
  // Tensor- and context-parallel ranks share samples.
  Parallelism& p = run.parallel;
  const double of_rank = *each * p.tp * p.cp;
  p.micro_batch = std::max(1, static_cast<int>(std::min(1e9, std::round(of_rank))));
  if (run.devices == 0) {
    run.accumulation = steps;
    return;
  }
  const double batch =
      std::round(*each * static_cast<double>(run.devices)) * static_cast<double>(steps);
  constexpr double kMostSamples = 1e9;
  if (batch > kMostSamples) {
    given.fail("--per_device_batch_size", "an iteration has more than 10^9 samples",
               "give a smaller one");
  }
  run.global_batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(batch));
}

/// "MaxText.train", "src/MaxText/train.py", "maxtext.trainers.pre_train.train".
bool is_program(const std::string& word) {
  return contains(lowered(word), "maxtext") && (word.ends_with("train") || word.ends_with(".py"));
}

/// What the file sets, or the line, or script, that starts it.
std::vector<Setting> settings_of_run(std::string_view text, const std::string& file,
                                     const ImportChoice& choice, Import& run) {
  if (has_line_with(text, "python")) {
    if (const auto line = launch_line(text, file, choice, is_program)) {
      run.notes = line->notes;
      std::string words;
      for (const std::string& word : line->words) words += word + "\n";
      return settings_of(words);
    }
  }
  return settings_of(text);
}

}  // namespace

bool is_maxtext(std::string_view text) {
  return has_sign(text, {"ici_fsdp_parallelism", "ici_tensor_parallelism", "per_device_batch_size",
                         "max_target_length"});
}

Import import_maxtext(std::string_view text, const std::string& file, const ImportChoice& choice) {
  Import run;
  GivenArguments given = as_arguments(settings_of_run(text, file, choice, run), file);
  run.trainer = "maxtext";
  run.own_options = kOwnOptions;
  run.model = given.text("--model_name").value_or("");
  run.catalogue_model = our_name(kMaxtextModels, run.model);
  run.seq_len = given.count_or("--max_target_length", 2048);
  run.parallel.dp = 0;
  read_mesh(given, run);
  read_batch(given, run);
  read_memory(given, run);
  const std::string dtype = given.text("--dtype").value_or("bfloat16");
  const std::string numbers = given.text("--quantization").value_or("");
  const bool fp8 = numbers.starts_with("fp8");
  if (!fp8 && !numbers.empty() && lowered(numbers) != "none") {
    run.notes.push_back("quantization " + in_quotes(numbers) +
                        ": here GEMMs have the format of dtype");
  }
  run.precision = parse_precision(fp8 ? "fp8" : dtype == "float32" ? "fp32" : "bf16");
  constexpr std::array<std::string_view, 8> kIgnored = {
      "--base_config",           "--run_name", "--hardware",
      "--dataset_type",          "--steps",    "--enable_checkpointing",
      "--base_output_directory", "--attention"};
  given.ignore(kIgnored);
  run.unknown = unknown_settings(given);
  return run;
}

}  // namespace braid
