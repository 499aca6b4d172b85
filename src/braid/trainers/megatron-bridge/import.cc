#include "braid/trainers/megatron-bridge/import.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/expert_shards.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/megatron_fsdp.h"
#include "braid/trainers/exchange/recomputed_modules.h"
#include "braid/trainers/exchange/settings.h"
#include "braid/trainers/exchange/signs.h"
#include "braid/trainers/exchange/stage_ends.h"
#include "braid/trainers/exchange/stage_layout.h"
#include "braid/trainers/exchange/started_processes.h"
#include "braid/trainers/megatron-bridge/hf_model.h"
#include "braid/trainers/megatron-bridge/ignored_fields.h"
#include "braid/trainers/megatron-bridge/recipe_source.h"

namespace braid {
namespace {

constexpr OwnOption kOwnOptions[] = {{"--tp", "tensor_model_parallel_size"},
                                     {"--pp", "pipeline_model_parallel_size"},
                                     {"--cp", "context_parallel_size"},
                                     {"--ep", "expert_model_parallel_size"},
                                     {"--vp", "virtual_pipeline_model_parallel_size"},
                                     {"--micro-batch", "micro_batch_size"},
                                     {"--global-batch", "global_batch_size"},
                                     {"--seq-len", "seq_length"}};

/// None and null are "not given".
std::int64_t number(GivenArguments& given, std::string_view name, std::int64_t otherwise) {
  const std::string text = lowered(given.text(name).value_or("none"));
  if (text == "none" || text == "null") return otherwise;
  return given.count(name, 1, 1 << 20).value_or(otherwise);
}

/// A size of the model; `otherwise` where a program works it out.
std::int64_t size(GivenArguments& given, std::string_view name, std::int64_t otherwise) {
  const std::string text = given.text(name).value_or("");
  const bool is_whole = !text.empty() && text.size() < 10 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
  return is_whole ? std::stoll(text) : otherwise;
}

std::int32_t degree(GivenArguments& given, std::string_view name, std::int64_t otherwise = 1) {
  return static_cast<std::int32_t>(number(given, name, otherwise));
}

/// Blocks, or layers, of each chunk from a layout "Ett|tt|tL" or a hybrid's pattern "MEM*|EMEM".
void read_layout(GivenArguments& given, const std::string& file, Import& run) {
  constexpr const char* kPattern = "--model.hybrid_layer_pattern";
  const std::string pattern = given.text(kPattern).value_or("None");
  const std::string text = given.text("--model.pipeline_model_parallel_layout").value_or("None");
  if (pattern.find('|') < pattern.find('/')) run.chunk_blocks = layers_of_pattern(pattern);
  if (text == "None" || text == "null") return;
  try {
    run.chunk_blocks = blocks_of_layout(text, file);
  } catch (const Error&) {  // Such as the lists of names of recipes.
    run.notes.push_back("pipeline_model_parallel_layout " + in_quotes(text) +
                        ": read only where it is of E, t, m, L and |");
  }
}

constexpr StageEndNames kEndNames = {
    "--model.num_layers_in_first_pipeline_stage", "--model.num_layers_in_last_pipeline_stage",
    "--model.account_for_embedding_in_pipeline_split", "--model.account_for_loss_in_pipeline_split",
    "--model.virtual_pipeline_model_parallel_size"};

/// Stages at the ends, where no layout says what all have.
void read_ends(GivenArguments& given, std::int64_t blocks, Import& run) {
  StageEnds ends;
  for (auto [name, said] :
       {std::pair(kEndNames.first, &ends.first), {kEndNames.last, &ends.last}}) {
    if (const std::int64_t count = number(given, name, 0); count > 0) *said = count;
  }
  ends.counts_embedding = is_on(given, kEndNames.embedding);
  ends.counts_loss = is_on(given, kEndNames.loss);
  if (!run.chunk_blocks.empty() || !ends.are_said()) return;
  if (blocks == 0) {
    given.fail(ends.said_by(kEndNames), "how many layers the model has is not said",
               "name the model, MODEL");
  }
  deal_blocks(given, kEndNames, blocks, ends, run);
}

/// The depth of MTP follows from the model that is named.
void read_predictions(GivenArguments& given, Import& run) {
  run.predicts_further = size(given, "--model.mtp_num_layers", 0) > 0;
  for (const char* name :
       {"--model.mtp_hybrid_override_pattern", "--model.mtp_use_repeated_layer"}) {
    given.has(name);
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
  if (fsdp || also) p.zero = zero_of_megatron_fsdp(strategy);
  p.offload_optimizer = is_on(given, "--optimizer.optimizer_cpu_offload");
}

/// CommOverlapConfig of training/comm_overlap.py, which the fields of ddp and model are set from.
void read_overlap(GivenArguments& given, Import& run) {
  const auto is_off = [&](std::string_view name) {
    return lowered(given.text(name).value_or("true")) == "false";
  };
  const bool of_ddp = is_off("--ddp.overlap_grad_reduce");
  const bool of_overlap = is_off("--comm_overlap.overlap_grad_reduce");
  if ((of_ddp || of_overlap) && run.parallel.zero < Zero::gradients) {
    run.does.push_back({&TrainerBehaviour::overlapped_gradients, false});
  }
  const bool gathers_late = is_off("--ddp.overlap_param_gather");
  const bool late = is_off("--comm_overlap.overlap_param_gather") || gathers_late;
  if (late && run.parallel.zero == Zero::optimizer) {
    run.notes.emplace_back(
        "overlap_param_gather: updated weights are gathered before the first forward pass; here "
        "behind it");
  }
  if (is_on(given, "--comm_overlap.tp_comm_overlap") && run.parallel.tp > 1) {
    run.notes.emplace_back(
        "tp_comm_overlap: what it hides of tensor parallelism behind GEMMs shows here");
  }
  const bool dispatch = is_on(given, "--comm_overlap.overlap_moe_expert_parallel_comm");
  if (is_on(given, "--model.overlap_moe_expert_parallel_comm") || dispatch) {
    run.does.push_back({&TrainerBehaviour::overlapped_dispatch, true});
  }
}

void read_behaviour(GivenArguments& given, Import& run) {
  read_overlap(given, run);
  if (lowered(given.text("--model.gradient_accumulation_fusion").value_or("true")) == "false") {
    run.does.push_back({&TrainerBehaviour::fused_accumulation, false});
  }
  const std::string backend = lowered(given.text("--model.attention_backend").value_or("auto"));
  const bool is_plain = contains(backend, "unfused") || contains(backend, "local");
  if (given.text("--model.transformer_impl").value_or("") == "local" || is_plain) {
    run.does.push_back({&TrainerBehaviour::flash_attention, false});
  }
  const std::string graphs = lowered(given.text("--model.cuda_graph_impl").value_or("none"));
  if (graphs != "none") run.does.push_back({&TrainerBehaviour::captured_graphs, true});
  // Its fused loss is said by two fields, of which the second names the kernel.
  const bool fuses = is_on(given, "--model.cross_entropy_loss_fusion");
  const std::string kernel = given.text("--model.cross_entropy_fusion_impl").value_or("native");
  if (fuses && kernel == "te") run.does.push_back({&TrainerBehaviour::fused_loss, true});
}

/// What is kept in other formats, or elsewhere, than braid has it.
void read_state_formats(GivenArguments& given, Import& run) {
  if (is_on(given, "--model.fine_grained_activation_offloading")) {
    run.parallel.offload_activations = true;
  }
  bool narrow = false;
  for (const char* name : {"--optimizer.main_grads_dtype", "--optimizer.main_params_dtype",
                           "--optimizer.exp_avg_dtype", "--optimizer.exp_avg_sq_dtype"}) {
    const std::string format = given.text(name).value_or("torch.float32");
    narrow = narrow || (format != "torch.float32" && format != "float32" && format != "fp32");
  }
  if (is_on(given, "--optimizer.use_precision_aware_optimizer") && narrow) {
    run.notes.emplace_back(
        "use_precision_aware_optimizer: here gradients and optimizer state have the formats of "
        "mixed_precision");
  }
}

/// What a precision is called. Where a function makes it, that is what it is asked for, as in
/// `_perf_precision("fp8_cs")`, or its own name, as in `bf16_with_mxfp8_mixed()`.
std::string name_of_precision(std::string_view text, const std::string& said) {
  for (const char quote : {'"', '\''}) {
    const std::string call = said + "(" + quote;
    const std::size_t at = text.rfind(call);
    if (at == std::string_view::npos) continue;
    const std::string_view asked = text.substr(at + call.size());
    return lowered(std::string(asked.substr(0, asked.find(quote))));
  }
  return lowered(said);
}

void read_precision(std::string_view text, GivenArguments& given, Import& run) {
  const std::string said = given.text("--mixed_precision").value_or("bf16_mixed");
  const std::string name = name_of_precision(text, said);
  const bool is_eight = contains(name, "fp8"), is_half = contains(name, "fp16");
  run.precision = parse_precision(is_eight ? "fp8" : is_half ? "fp16" : "bf16");
  if (contains(name, "nvfp4")) {
    run.notes.push_back("mixed_precision: nvfp4 is taken as bf16; give --precision");
  } else if (!is_eight && !is_half && !contains(name, "bf16")) {
    run.notes.push_back(on_one_line("mixed_precision " + said) +
                        ": which one that is is not known here, and taken as bf16; give "
                        "--precision");
  }
  const std::string wide =
      lowered(given.text("--mixed_precision.grad_reduce_in_fp32").value_or("true"));
  if (wide == "false") run.precision->gradient = Dtype::bf16;
  // Megatron-FSDP sums them in the weights' format unless its own field says otherwise.
  const std::string fsdp = given.text("--ddp.megatron_fsdp_main_grads_dtype").value_or("auto");
  if (run.parallel.zero >= Zero::gradients) {
    run.precision->gradient = contains(fsdp, "32") ? Dtype::f32 : run.precision->weight;
  }
}

void read_recomputation(GivenArguments& given, Import& run) {
  const std::string granularity = given.text("--model.recompute_granularity").value_or("None");
  const std::string modules = given.text("--model.recompute_modules").value_or("None");
  run.parallel.recompute = granularity == "full"        ? Recompute::full
                           : granularity == "selective" ? Recompute::selective
                                                        : Recompute::none;
  const std::string method = lowered(given.text("--model.recompute_method").value_or("uniform"));
  const std::int64_t layers = number(given, "--model.recompute_num_layers", 1);
  if (run.parallel.recompute == Recompute::full && (method == "block" || layers != 1)) {
    run.notes.push_back(
        fmt::format("recompute_method {} of {} layers: here every layer is recomputed for itself",
                    in_quotes(method), layers));
  }
  if (run.parallel.recompute != Recompute::selective) return;
  take_recomputed_modules(lowered(modules) == "none" ? "core_attn" : modules,
                          "model.recompute_modules", run);
}

/// What figures depend on, and what it is taken for where nothing is said.
constexpr UsualSetting kUsual[] = {
    {"--model.tensor_model_parallel_size", "1", "--tp"},
    {"--model.pipeline_model_parallel_size", "1", "--pp"},
    {"--model.context_parallel_size", "1", "--cp"},
    {"--model.expert_model_parallel_size", "1", "--ep"},
    {"--model.sequence_parallel", "off", "--sequence-parallel"},
    {"--model.recompute_granularity", "no recomputation", "--recompute"},
    {"--train.micro_batch_size", "1", "--micro-batch"},
    {"--ddp.use_distributed_optimizer", "on, ZeRO-1", "--zero"}};

/// Processes that the second line of a script that braid wrote starts; 0: it is none, or does not
/// say. Comments of other scripts are examples of how to start them.
std::int64_t processes_of_own_line(std::string_view text, const std::string& file) {
  constexpr std::string_view kTitle = ": written by braid\n# torchrun ";
  const std::size_t title = text.find('\n');
  const std::size_t at = text.find(kTitle);
  if (at == std::string_view::npos || at > title) return 0;
  const std::size_t begin = at + kTitle.size();
  std::istringstream line(std::string(text.substr(begin, text.find('\n', begin) - begin)));
  std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  if (!words.empty()) words.pop_back();  // The script.
  return processes_started(words, file);
}

}  // namespace

bool is_megatron_bridge(std::string_view text) {
  return has_sign(text, {"megatron.bridge", "run_recipe.py", "setup_experiment.py",
                         "model.tensor_model_parallel_size", "model.pipeline_model_parallel_size"});
}

Import import_megatron_bridge(std::string_view text, const std::string& file,
                              const ImportChoice& choice) {
  const BridgeSource source = bridge_source(text, file, choice);
  GivenArguments given = as_arguments(source.settings, file);
  Import run;
  run.trainer = "megatron-bridge";
  run.own_options = kOwnOptions;
  run.notes = source.notes;
  run.devices = source.devices > 0 ? source.devices : processes_of_own_line(text, file);
  run.model = hf_model_of(source.text);
  read_checked_sizes(source.text, run);
  run.blocks = size(given, "--model.num_layers", run.blocks);
  run.hidden = size(given, "--model.hidden_size", run.hidden);
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
  if (p.ep > 1) take_expert_shards(given, "--model.expert_tensor_parallel_size", experts_tp, run);
  p.pp = degree(given, "--model.pipeline_model_parallel_size");
  p.vp = degree(given, "--model.virtual_pipeline_model_parallel_size");
  if (p.pp == 1) p.vp = 1;
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  p.sequence_parallel = is_on(given, "--model.sequence_parallel") && p.tp > 1;
  read_layout(given, file, run);
  read_ends(given, run.blocks > 0 ? run.blocks : choice.blocks_of(run.model), run);
  read_predictions(given, run);
  read_sharding(given, run);
  read_behaviour(given, run);
  read_recomputation(given, run);
  if (is_on(given, "--dist.use_tp_pp_dp_mapping"))
    p.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  read_precision(source.text, given, run);
  read_state_formats(given, run);
  if (lowered(given.text("--peft").value_or("none")) != "none") {
    run.notes.emplace_back("peft: adapters alone are trained; here all weights are");
  }
  note_unmodelled(given, unmodelled_bridge_fields(), run);
  if (source.leaves_recipe) note_usual_settings(given, kUsual, run);
  given.ignore_if(is_ignored_by_bridge_reader);
  run.unknown = unknown_settings(given);
  run.unknown.insert(run.unknown.end(), source.unknown.begin(), source.unknown.end());
  return run;
}

}  // namespace braid
