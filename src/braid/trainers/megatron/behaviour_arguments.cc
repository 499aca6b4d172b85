#include "braid/trainers/megatron/behaviour_arguments.h"

#include <array>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/megatron/ignored_arguments.h"

namespace braid {
namespace {

void set(bool TrainerBehaviour::*flag, bool value, Import& run) {
  run.does.push_back({flag, value});
}

/// Megatron-FSDP turns the overlap of what it shards on by itself, as PyTorch's FSDP2 does
/// (core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py).
void read_overlap(GivenArguments& given, Import& run) {
  const Parallelism& p = run.parallel;
  const bool reduces = given.has("--overlap-grad-reduce");
  const bool gathers = given.has("--overlap-param-gather");
  const bool overlaps = reduces || p.zero >= Zero::gradients;
  set(&TrainerBehaviour::overlapped_gradients, overlaps, run);
  if (!overlaps) {
    run.not_given.push_back(
        {"--overlap-grad-reduce: off, gradients are reduced after the last backward pass", ""});
  }
  if (!gathers && (p.zero == Zero::optimizer || p.zero == Zero::gradients)) {
    run.notes.emplace_back(
        "without --overlap-param-gather updated weights are gathered before the first forward "
        "pass: here behind it");
  }
  if (given.has("--tp-comm-overlap") && p.tp > 1) {
    run.notes.emplace_back(
        "--tp-comm-overlap: what it hides of tensor parallelism behind GEMMs shows here");
  }
  if (given.has("--no-overlap-p2p-communication") && p.vp > 1) {
    run.notes.emplace_back(
        "--no-overlap-p2p-communication: here interleaved stages do not wait for what they send");
  }
  if (given.has("--overlap-moe-expert-parallel-comm")) {
    set(&TrainerBehaviour::overlapped_dispatch, true, run);
  }
}

/// Layers without Transformer Engine have plain attention (core/models/gpt/gpt_layer_specs.py:
/// get_gpt_layer_local_spec) and hand on no placeholders.
void read_kernels(GivenArguments& given, Import& run) {
  const std::string backend = given.text("--attention-backend").value_or("auto");
  const bool local = given.text("--transformer-impl").value_or("transformer_engine") == "local";
  if (local || backend == "unfused" || backend == "local") {
    set(&TrainerBehaviour::flash_attention, false, run);
  }
  if (local) set(&TrainerBehaviour::gradient_placeholders, false, run);
  if (given.has("--no-gradient-accumulation-fusion")) {
    set(&TrainerBehaviour::fused_accumulation, false, run);
  }
  const bool fuses_loss = given.has("--cross-entropy-loss-fusion");
  const std::string loss = given.text("--cross-entropy-fusion-impl").value_or("native");
  if (fuses_loss && loss == "te") set(&TrainerBehaviour::fused_loss, true, run);
  if (fuses_loss && loss != "te") {
    run.notes.push_back("--cross-entropy-loss-fusion of " + in_quotes(loss) +
                        ": here its steps run one by one");
  }
  std::string unfused;
  for (const char* name :
       {"--no-masked-softmax-fusion", "--no-bias-gelu-fusion", "--no-bias-swiglu-fusion",
        "--no-bias-dropout-fusion", "--no-rope-fusion", "--no-persist-layer-norm"}) {
    if (given.has(name)) unfused += (unfused.empty() ? "" : ", ") + std::string(name);
  }
  if (!unfused.empty()) run.notes.push_back(unfused + ": here these kernels are fused");
}

/// Blocks of 32 with a scale each are of compute capability 10.0, as FP4 is (Transformer Engine's
/// check_mxfp8_support).
void read_recipe(GivenArguments& given, Import& run) {
  const std::string recipe = given.text("--fp8-recipe").value_or("delayed");
  if (recipe == "mxfp8") run.needs_fp4_units = "--fp8-recipe mxfp8";
  const bool gathers = given.has("--fp8-param-gather");
  if (run.precision && run.precision->matmul == Dtype::f8 && !gathers) {
    run.notes.emplace_back(
        "without --fp8-param-gather weights and their transposes are kept in FP8 as well, about 2 "
        "bytes a parameter: here they are not");
  }
}

void read_graphs(GivenArguments& given, Import& run) {
  const std::string impl = given.text("--cuda-graph-impl").value_or("none");
  const bool local = given.has("--enable-cuda-graph");
  const bool external = given.has("--external-cuda-graph");
  std::string parts;
  for (const char* name : {"--cuda-graph-modules", "--cuda-graph-scope"}) {
    if (const auto text = given.text(name)) parts = std::string(name) + " " + on_one_line(*text);
  }
  if (impl == "none" && !local && !external) return;
  set(&TrainerBehaviour::captured_graphs, true, run);
  if (!parts.empty()) run.notes.push_back(parts + ": here whole iterations are captured");
}

void read_exchanges(GivenArguments& given, Import& run) {
  const Parallelism& p = run.parallel;
  const std::string ring = given.text("--cp-comm-type").value_or("p2p");
  if (ring.find_first_not_of("p2 ") != std::string::npos && p.cp > 1) {
    run.notes.push_back("--cp-comm-type " + on_one_line(ring) +
                        ": here keys and values go round in a ring");
  }
  const std::string dispatcher = given.text("--moe-token-dispatcher-type").value_or("allgather");
  if (dispatcher == "allgather" && p.ep > 1) {
    run.notes.emplace_back(
        "--moe-token-dispatcher-type allgather (the default): here tokens go to their experts "
        "alone, all to all");
  }
}

/// With momentum alone in place of Adam's two moments; others keep what depends on the layer.
void read_optimizer(GivenArguments& given, Import& run) {
  const std::string name = given.text("--optimizer").value_or("adam");
  if (name == "adam") return;
  if (run.precision && (name == "sgd" || name == "lion")) {
    constexpr double kMoment = 4;
    run.precision->optimizer_bytes_per_parameter -= kMoment;
  } else {
    run.notes.push_back("--optimizer " + on_one_line(name) + ": here state and step are Adam's");
  }
}

}  // namespace

void read_behaviour(GivenArguments& given, Import& run) {
  read_overlap(given, run);
  read_kernels(given, run);
  read_recipe(given, run);
  read_graphs(given, run);
  read_exchanges(given, run);
  read_optimizer(given, run);
  note_unmodelled(given, unmodelled_megatron_arguments(), run);
}

}  // namespace braid
