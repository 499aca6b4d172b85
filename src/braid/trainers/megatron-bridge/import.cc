#include "braid/trainers/megatron-bridge/import.h"

#include <algorithm>
#include <array>
#include <vector>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/settings.h"
#include "braid/trainers/exchange/shell_script.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 13> kSections = {
    "model.",  "train.",      "ddp.",           "optimizer.", "dataset.",
    "dist.",   "scheduler.",  "checkpoint.",    "tokenizer.", "rng.",
    "logger.", "validation.", "mixed_precision"};

/// Options of run_recipe.py and what they set (scripts/training/run_recipe.py).
struct RecipeOption {
  std::string_view option, short_form, setting;
};
constexpr RecipeOption kRecipeOptions[] = {
    {"global_batch_size", "gb", "train.global_batch_size"},
    {"micro_batch_size", "mb", "train.micro_batch_size"},
    {"seq_length", "sl", "dataset.seq_length"},
    {"tensor_model_parallel_size", "tp", "model.tensor_model_parallel_size"},
    {"pipeline_model_parallel_size", "pp", "model.pipeline_model_parallel_size"},
    {"context_parallel_size", "cp", "model.context_parallel_size"},
    {"virtual_pipeline_model_parallel_size", "vp", "model.virtual_pipeline_model_parallel_size"},
    {"expert_model_parallel_size", "ep", "model.expert_model_parallel_size"},
    {"expert_tensor_parallel_size", "etp", "model.expert_tensor_parallel_size"}};

/// The words behind run_recipe.py; empty where the text is no such command line.
ShellCommand recipe_words(std::string_view text, const std::string& file) {
  if (!contains(text, "run_recipe.py") || contains(text, "import ")) return {};
  for (ShellCommand& command : read_shell_script(text, file).commands) {
    const auto script = std::find_if(command.begin(), command.end(), [](const std::string& word) {
      return word.ends_with("run_recipe.py");
    });
    if (script != command.end()) return {script + 1, command.end()};
  }
  return {};
}

/// What the options of a command line set, "-tp 4" and "--tensor_model_parallel_size=4" alike.
std::vector<Setting> options_of_recipe(const ShellCommand& words) {
  std::vector<Setting> all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) continue;
    std::string name = word.substr(word.find_first_not_of('-') == 1 ? 1 : 2);
    std::string value;
    if (const std::size_t sign = name.find('='); sign != std::string::npos) {
      value = name.substr(sign + 1);
      name.erase(sign);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with('-')) {
      value = words[i + 1];
    }
    for (const RecipeOption& each : kRecipeOptions) {
      if (name == each.option || name == each.short_form) {
        all.push_back({std::string(each.setting), value, 0});
      }
    }
  }
  return all;
}

/// Overrides by "section.field", whatever the script calls its configuration.
std::vector<Setting> overrides_of(std::string_view text, const ShellCommand& recipe) {
  std::vector<Setting> all = options_of_recipe(recipe);
  for (Setting& each : settings_of(text)) {
    for (const std::string_view root : {"cfg.", "config.", "recipe."}) {
      if (each.name.starts_with(root)) each.name.erase(0, root.size());
    }
    for (const std::string_view section : kSections) {
      if (!each.name.starts_with(section)) continue;
      all.push_back(std::move(each));
      break;
    }
  }
  return all;
}

/// None and null are "not given".
std::int64_t number(GivenArguments& given, std::string_view name, std::int64_t otherwise) {
  const std::string text = lowered(given.text(name).value_or("none"));
  if (text == "none" || text == "null") return otherwise;
  return given.count(name, 1, 1 << 20).value_or(otherwise);
}

std::int32_t degree(GivenArguments& given, std::string_view name, std::int64_t otherwise = 1) {
  return static_cast<std::int32_t>(number(given, name, otherwise));
}

/// Blocks of each chunk from a layout "Ett|tt|tL" of single letters.
void read_layout(GivenArguments& given, Import& run) {
  const std::string text = given.text("--model.pipeline_model_parallel_layout").value_or("None");
  if (text.find_first_not_of("Et|L") != std::string::npos) {
    if (text != "None" && text != "null") {
      run.notes.push_back("pipeline_model_parallel_layout " + in_quotes(text) +
                          ": read only where it is of E, t, L and |");
    }
    return;
  }
  run.chunk_blocks.push_back(0);
  for (const char c : text) {
    if (c == '|') run.chunk_blocks.push_back(0);
    if (c == 't') ++run.chunk_blocks.back();
  }
}

void read_sharding(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  const bool first = is_on(given, "--ddp.use_distributed_optimizer");
  const bool second = is_on(given, "--optimizer.use_distributed_optimizer");
  const bool said = given.has("--ddp.use_distributed_optimizer");
  p.zero = first || second || !said ? Zero::optimizer : Zero::none;
  const bool fsdp = is_on(given, "--ddp.use_megatron_fsdp");
  const bool also = is_on(given, "--dist.use_megatron_fsdp");
  const std::string strategy =
      given.text("--ddp.data_parallel_sharding_strategy").value_or("optim_grads_params");
  if (fsdp || also) {
    p.zero = strategy == "no_shard"      ? Zero::none
             : strategy == "optim"       ? Zero::optimizer
             : strategy == "optim_grads" ? Zero::gradients
                                         : Zero::parameters;
  }
  p.offload_optimizer = is_on(given, "--optimizer.optimizer_cpu_offload");
}

/// What is switched off; its configurations have both on.
void read_behaviour(GivenArguments& given, Import& run) {
  const auto is_off = [&](std::string_view name) {
    return lowered(given.text(name).value_or("true")) == "false";
  };
  if (is_off("--ddp.overlap_grad_reduce") && run.parallel.zero < Zero::gradients) {
    run.does.push_back({&TrainerBehaviour::overlapped_gradients, false});
  }
  if (is_off("--model.gradient_accumulation_fusion")) {
    run.does.push_back({&TrainerBehaviour::fused_accumulation, false});
  }
}

void read_precision(std::string_view text, GivenArguments& given, Import& run) {
  const std::string name = given.text("--mixed_precision").value_or("bf16_mixed");
  const std::string_view call = "get_mixed_precision_config(\"";
  const std::size_t at = text.find(call);
  const std::string_view known =
      at == std::string_view::npos ? std::string_view(name) : text.substr(at + call.size(), 60);
  const std::string_view format = known.substr(0, known.find('"'));
  run.precision = parse_precision(contains(format, "fp8")    ? "fp8"
                                  : contains(format, "fp16") ? "fp16"
                                                             : "bf16");
  if (contains(format, "nvfp4"))
    run.notes.push_back("mixed_precision: nvfp4 is taken as bf16; give --precision");
  const std::string wide =
      lowered(given.text("--mixed_precision.grad_reduce_in_fp32").value_or("true"));
  if (wide == "false") run.precision->gradient = Dtype::bf16;
}

/// What stands between quotes behind from_hf_pretrained; empty where it is a variable.
std::string model_of(std::string_view text) {
  const std::string_view call = "from_hf_pretrained(\"";
  const std::size_t at = text.find(call);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + call.size());
  return std::string(rest.substr(0, rest.find('"')));
}

}  // namespace

bool is_megatron_bridge(std::string_view text) {
  return contains(text, "megatron.bridge") || contains(text, "run_recipe.py") ||
         contains(text, "model.tensor_model_parallel_size") ||
         contains(text, "model.pipeline_model_parallel_size");
}

Import import_megatron_bridge(std::string_view text, const std::string& file) {
  const ShellCommand recipe = recipe_words(text, file);
  GivenArguments given = as_arguments(overrides_of(text, recipe), file);
  Import run;
  run.trainer = "megatron-bridge";
  for (std::size_t i = 0; i + 1 < recipe.size(); ++i) {
    if (recipe[i] != "--model" && recipe[i] != "--recipe") continue;
    run.notes.push_back(recipe[i] + " " + on_one_line(recipe[i + 1]) +
                        ": the recipe's own settings are not read; what this line leaves out is "
                        "taken as listed");
  }
  run.model = model_of(text);
  for (const char* name :
       {"--dataset.sequence_length", "--dataset.seq_length", "--model.seq_length"}) {
    run.seq_len = number(given, name, run.seq_len);
  }
  run.global_batch = number(given, "--train.global_batch_size", 0);
  Parallelism& p = run.parallel;
  p.dp = 0;
  p.micro_batch = degree(given, "--train.micro_batch_size");
  p.tp = degree(given, "--model.tensor_model_parallel_size");
  p.cp = degree(given, "--model.context_parallel_size");
  p.ep = degree(given, "--model.expert_model_parallel_size");
  const int experts_tp = degree(given, "--model.expert_tensor_parallel_size", p.tp);
  p.whole_experts = p.ep > 1 && p.tp > 1 && experts_tp == 1;
  p.pp = degree(given, "--model.pipeline_model_parallel_size");
  p.vp = degree(given, "--model.virtual_pipeline_model_parallel_size");
  if (p.pp == 1) p.vp = 1;
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  p.sequence_parallel = is_on(given, "--model.sequence_parallel") && p.tp > 1;
  read_layout(given, run);
  read_sharding(given, run);
  read_behaviour(given, run);
  const std::string granularity = given.text("--model.recompute_granularity").value_or("None");
  p.recompute = granularity == "full"        ? Recompute::full
                : granularity == "selective" ? Recompute::selective
                                             : Recompute::none;
  if (is_on(given, "--dist.use_tp_pp_dp_mapping"))
    p.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  read_precision(text, given, run);
  constexpr std::array<std::string_view, 20> kIgnored = {
      "--model.pipeline_dtype",
      "--model.recompute_method",
      "--model.recompute_num_layers",
      "--model.recompute_modules",
      "--ddp.overlap_param_gather",
      "--checkpoint.ckpt_format",
      "--checkpoint.save",
      "--checkpoint.load",
      "--optimizer.optimizer_offload_fraction",
      "--optimizer.use_precision_aware_optimizer",
      "--tokenizer.tokenizer_type",
      "--tokenizer.tokenizer_model",
      "--tokenizer.use_tokenizer_vocab_size",
      "--tokenizer.vocab_size",
      "--train.train_iters",
      "--validation.eval_iters",
      "--scheduler.lr_warmup_iters",
      "--optimizer.lr",
      "--optimizer.min_lr",
      "--mixed_precision"};
  given.ignore(kIgnored);
  run.unknown = unknown_settings(given);
  std::erase_if(run.unknown, [](const std::string& setting) {
    constexpr std::array<std::string_view, 3> kOfNoFigure = {"logger.", "checkpoint.", "rng."};
    return std::any_of(kOfNoFigure.begin(), kOfNoFigure.end(),
                       [&](std::string_view section) { return setting.starts_with(section); });
  });
  return run;
}

}  // namespace braid
