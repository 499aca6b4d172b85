#include "braid/trainers/torchtitan/export.h"

#include <fmt/format.h>

namespace braid {
namespace {

/// A layer as torchtitan's decoders name their modules. Nothing for what follows the first layer of
/// the input or of the head: the modules of the first stand for all of them.
std::vector<std::string> modules_of(const ModelShape& shape, std::int64_t layer) {
  if (layer == 0 && shape.first_block > 0) return {"tok_embeddings"};
  if (layer < shape.first_block) return {};
  const std::int64_t block = layer - shape.first_block;
  if (block < shape.blocks) return {fmt::format("layers.{}", block)};
  if (block == shape.blocks) return {"norm", "output"};
  return {};
}

/// One line of module names for each virtual stage, in pipeline order.
std::string modules_text(const Plan& plan) {
  std::string text = "module_fqns_per_model_part = [\n";
  for (std::size_t c = 0; c < plan.stages.front().chunks.size(); ++c) {
    for (const Stage& stage : plan.stages) {
      std::string part;
      for (const std::int32_t layer : stage.chunks[c].layers) {
        for (const std::string& name : modules_of(*plan.shape, layer)) {
          part += fmt::format("{}\"{}\"", part.empty() ? "" : ", ", name);
        }
      }
      text += "  [" + part + "],\n";
    }
  }
  return text + "]\n";
}

void warn_of_memory(const Plan& plan, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.zero == Zero::optimizer || p.zero == Zero::gradients) {
    warnings.push_back(fmt::format(
        "ZeRO-{} is expressed as FSDP that keeps gathered parameters{}", static_cast<int>(p.zero),
        p.zero == Zero::optimizer ? ": it shards the gradients too" : ""));
  }
  if (p.zero == Zero::none && p.dp > 1 && (p.tp > 1 || p.pp > 1 || p.cp > 1)) {
    warnings.emplace_back(
        "torchtitan replicates over data-parallel ranks only where nothing else is parallel: plan "
        "with --zero 1 or more");
  }
  if (p.ep > 1 && p.ep % p.cp != 0) {
    warnings.push_back(fmt::format(
        "torchtitan refuses expert parallelism of {} with context parallelism of {}, which must "
        "divide it",
        p.ep, p.cp));
  }
  if (p.zero == Zero::none && p.ep > p.cp) {
    warnings.emplace_back(
        "expert parallelism goes over ranks that shard the state: plan with --zero 1 or more");
  }
  if (p.zero == Zero::none && p.cp > 1) {
    warnings.emplace_back(
        "context parallel ranks always share the state among them, which takes less memory");
  }
  if (p.offload_optimizer || p.offload_weights) {
    warnings.emplace_back(
        "only offloading of parameters, gradients and optimizer together can be expressed");
  }
  if (p.offload_activations) warnings.emplace_back("offloading activations cannot be expressed");
  if (p.recompute == Recompute::selective) {
    warnings.emplace_back(
        "selective recomputation chooses its operators differently (saves GEMMs)");
  }
  const bool half = plan.precision.matmul == Dtype::f16;
  const bool full = plan.precision.matmul == Dtype::f32 || plan.precision.matmul == Dtype::tf32;
  if (half) warnings.emplace_back("torchtitan has no float16: bfloat16 is used");
  // Mixed precision comes with FSDP, or with autocast where nothing is parallel but data.
  if (!full && p.dp == 1 && p.cp == 1 && (p.tp > 1 || p.pp > 1)) {
    warnings.emplace_back(
        "torchtitan computes in float32 where the state is not sharded: set training.dtype to "
        "bfloat16, which keeps the optimizer state in it too, or plan with data parallelism");
  }
  if (plan.precision.gradient != Dtype::f32) {
    warnings.emplace_back("gradients are reduced in float32, whatever the plan says");
  }
}

void warn_of_order(const Plan& plan, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.tp > 1 && !p.sequence_parallel) {
    warnings.emplace_back("tensor parallelism always comes with sequence parallelism");
  }
  if (p.order != std::vector<Axis>{Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    warnings.emplace_back(
        "the order of ranks cannot be expressed: pp, dp, cp, tp from the outermost is used");
  }
  if (p.pp > 1 && !plan.shape) {
    warnings.emplace_back(
        "the plan does not know the model's modules: give those of each stage by "
        "module_fqns_per_model_part");
  }
  if (p.pp > 1 && plan.shape && plan.shape->tied_embeddings) {
    warnings.emplace_back(
        "torchtitan refuses embeddings tied across stages: untie them, or plan with --pp 1");
  }
  if (plan.seq_len == 0) {
    warnings.emplace_back(
        "torchtitan trains language models, and this model has no sequence: only the degrees carry "
        "over");
  } else if (const std::int64_t pieces = 2 * std::int64_t{p.tp} * p.cp;
             plan.seq_len % pieces != 0) {
    warnings.push_back(fmt::format(
        "torchtitan refuses a sequence of {} tokens: it must be a multiple of {}, twice "
        "the tensor and context parallel ranks",
        plan.seq_len, pieces));
  }
  if (plan.seq_len > 0 && plan.shape && !plan.shape->causal) {
    warnings.emplace_back(
        "torchtitan trains decoders, and this model's attention is not causal: only the degrees "
        "carry over");
  }
}

/// torchtitan's name for the model, where its shape is that of one that torchtitan has.
std::string model_text(const Plan& plan) {
  struct Known {
    std::int64_t blocks, hidden, vocab;
    const char* name;
    const char* flavor;
  };
  constexpr Known kKnown[] = {{32, 4096, 128256, "llama3", "8B"},
                              {80, 8192, 128256, "llama3", "70B"},
                              {126, 16384, 128256, "llama3", "405B"},
                              {61, 7168, 129280, "deepseek_v3", "671B"}};
  std::string text = "\n[model]\n";
  const Known* found = nullptr;
  for (const Known& known : kKnown) {
    if (plan.shape && plan.shape->blocks == known.blocks && plan.shape->hidden == known.hidden &&
        plan.shape->vocab == known.vocab) {
      found = &known;
    }
  }
  if (found != nullptr) {
    text += fmt::format("name = \"{}\"\nflavor = \"{}\"\n", found->name, found->flavor);
  } else {
    text += "# name and flavor, as torchtitan calls the model, are to be added here\n";
  }
  if (plan.precision.matmul == Dtype::f8) text += "converters = [\"quantize.linear.float8\"]\n";
  return text;
}

std::string training_text(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::string text =
      fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\n",
                  p.pp > 1 ? p.micro_batch * p.num_micro_batches : std::int64_t{p.micro_batch},
                  plan.global_batch);
  if (plan.seq_len > 0) text += fmt::format("seq_len = {}\n", plan.seq_len);
  const bool full = plan.precision.matmul == Dtype::f32 || plan.precision.matmul == Dtype::tf32;
  text += fmt::format("mixed_precision_param = \"{}\"\nmixed_precision_reduce = \"float32\"\n",
                      full ? "float32" : "bfloat16");
  if (p.offload_optimizer || p.offload_weights) text += "enable_cpu_offload = true\n";
  return text;
}

std::string parallelism_text(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const bool sharded = p.zero != Zero::none;
  std::string text = fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\ncontext_parallel_degree = {}\npipeline_parallel_degree = {}\n",
      sharded ? 1 : p.dp, sharded ? p.dp : 1, p.tp, p.cp, p.pp);
  if (sharded) {
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        p.zero == Zero::parameters ? "always" : "never");
  }
  if (p.ep > 1) {
    // Unless it is told, torchtitan spreads whole experts over the tensor-parallel ranks.
    text += fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = {}\n", p.ep,
                        p.whole_experts ? 1 : p.tp);
  }
  if (p.pp == 1) return text;
  const char* schedule = p.schedule == ScheduleKind::gpipe         ? "GPipe"
                         : p.schedule == ScheduleKind::interleaved ? "Interleaved1F1B"
                                                                   : "1F1B";
  text +=
      fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                  schedule, p.micro_batch);
  // Left to itself, torchtitan gives the first and the last stage a block less.
  if (plan.shape) text += modules_text(plan);
  return text;
}

}  // namespace

Export export_torchtitan(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = "torchtitan.toml";
  if (const auto chip = chip_without_trainer(plan)) {
    out.warnings.push_back("torchtitan runs on GPUs, and the plan is for " + *chip +
                           ": only the degrees carry over");
  }
  warn_of_memory(plan, out.warnings);
  warn_of_order(plan, out.warnings);

  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  text +=
      "# For torchtitan 0.2, which reads TOML; later versions take most of it as --section.name.\n";
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += model_text(plan);
  text += training_text(plan);
  text += parallelism_text(plan);
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n",
                      p.recompute == Recompute::none   ? "none"
                      : p.recompute == Recompute::full ? "full"
                                                       : "selective");
  if (p.recompute == Recompute::selective) text += "selective_ac_option = \"op\"\n";
  return out;
}

}  // namespace braid
