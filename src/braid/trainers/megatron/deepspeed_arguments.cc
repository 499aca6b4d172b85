#include "braid/trainers/megatron/deepspeed_arguments.h"

#include <string>

#include "braid/base/document.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

/// What DeepSpeed's engine takes from its own file, whatever the arguments say.
void read_config(const Value& root, Import& run) {
  Parallelism& p = run.parallel;
  const Value zero = root["zero_optimization"];
  if (zero.exists() && zero["stage"].exists())
    p.zero = static_cast<Zero>(zero["stage"].as_int_in(0, 3));
  const auto is_moved = [&](const char* part) {
    return zero.exists() && zero[part].exists() && zero[part]["device"].string_or("none") != "none";
  };
  p.offload_optimizer = p.offload_optimizer || is_moved("offload_optimizer");
  p.offload_weights = p.offload_weights || is_moved("offload_param");
  for (const char* format : {"bf16", "fp16"}) {
    const bool is_on = root[format].exists() && root[format]["enabled"].bool_or(false);
    if (is_on) run.precision = parse_precision(format);
  }
}

/// ZeRO of DeepSpeed's engine; its parser's default is 1.
void read_stage(GivenArguments& given, const ImportChoice& choice, Import& run) {
  const auto stage = given.count("--zero-stage", 0, 3);
  run.parallel.zero = static_cast<Zero>(stage.value_or(1));
  const auto file = given.text("--deepspeed-config");
  const std::optional<std::string> text = file ? choice.text_of(*file) : std::nullopt;
  if (text) {
    const Document document = Document::parse(*text, Document::Syntax::json, *file);
    read_config(document.root(), run);
    return;
  }
  if (!stage)
    run.not_given.push_back({"--zero-stage: 1, or what --deepspeed_config says", "--zero"});
  if (file) {
    run.notes.push_back(
        "--deepspeed_config " + on_one_line(*file) +
        ": not beside the script, and not read; what it says of precision, ZeRO and "
        "offload counts in a run");
  }
}

void read_memory(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  if (given.has("--cpu-optimizer")) p.offload_optimizer = true;
  if (given.has("--checkpoint-in-cpu")) p.offload_activations = true;
  const bool divides = given.has("--partition-activations");
  const bool distributes = given.has("--distribute-checkpointed-activations");
  if ((divides || distributes) && p.tp > 1) {
    run.notes.emplace_back(
        "--partition-activations divides checkpoints among tensor-parallel ranks: here each keeps "
        "them whole");
  }
  if (given.text("--remote-device").value_or("none") != "none") {
    run.notes.emplace_back("--remote-device: here the shards of the weights stay on the device");
  }
  given.has("--enable-zbh1-exact-semantics");
  if (given.has("--enable-zbh1-pipeline") && p.pp > 1) {
    run.notes.emplace_back("--enable-zbh1-pipeline: taken as 1F1B");
  }
}

void read_sequence(GivenArguments& given, Import& run) {
  const auto ranks = given.count("--ds-sequence-parallel-size", 1, kMostRanks);
  if (!ranks || *ranks == 1) return;
  run.parallel.cp = static_cast<int>(*ranks);
  run.notes.emplace_back(
      "--ds-sequence-parallel-size: Ulysses exchanges heads; here keys and values go round");
  if (given.has("--ds-sequence-parallel-fpdt")) {
    run.notes.emplace_back(
        "--ds-sequence-parallel-fpdt takes the sequence in pieces: here it is taken whole");
  }
}

}  // namespace

void read_deepspeed_arguments(GivenArguments& given, const ImportChoice& choice, Import& run) {
  const bool is_whole = given.has("--no-pipeline-parallel");
  if (!given.has("--deepspeed")) return;
  run.trainer = "deepspeed";
  read_stage(given, choice, run);
  read_memory(given, run);
  read_sequence(given, run);
  for (const char* name : {"--use-flash-attn", "--use-flash-attn-v1", "--use-flash-attn-v2",
                           "--use-flash-attn-triton", "--use-flash-attn-builder"}) {
    if (given.has(name)) run.does.push_back({&TrainerBehaviour::flash_attention, true});
  }
  // --no-pipeline-parallel makes the model one whole in place of a pipeline of one stage.
  if (is_whole && run.parallel.pp > 1) {
    given.fail("--no-pipeline-parallel", "there is no pipeline, and the run has stages",
               "leave out one of it and --pipeline-model-parallel-size");
  }
}

void read_earlier_arguments(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  p.tp = static_cast<int>(given.count("--model-parallel-size", 1, kMostRanks).value_or(p.tp));
  p.micro_batch =
      static_cast<int>(given.count("--batch-size", 1, kMostRanks).value_or(p.micro_batch));
  bool recomputes = false;
  for (const char* name : {"--checkpoint-activations", "--deepspeed-activation-checkpointing",
                           "--activations-checkpoint-method"}) {
    if (given.has(name)) recomputes = true;
  }
  if (!recomputes) return;
  p.recompute = Recompute::full;
  for (const char* name : {"--checkpoint-num-layers", "--activations-checkpoint-num-layers"}) {
    const std::string layers = given.text(name).value_or("1");
    if (layers != "1") {
      run.notes.push_back(std::string(name) + " " + on_one_line(layers) +
                          ": here every layer is recomputed for itself");
    }
  }
}

}  // namespace braid
