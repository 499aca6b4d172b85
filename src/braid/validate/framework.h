#pragma once

#include "braid/plan/plan.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// What a trainer does where a row of measured runs is silent. Facts of the programs' published
/// defaults, the same for every run by that trainer.
struct TrainerDefaults {
  bool flash_attention = true;    ///< Attention scores are never written to memory.
  bool sequence_parallel = true;  ///< Norms and dropout are split when tensor parallelism is on.
  Zero zero = Zero::none;         ///< State sharded over data-parallel ranks.
  bool dropout = false;           ///< GPT-like models are trained with it.
  Recompute recompute = Recompute::none;
  bool overlap_gradients = true;  ///< Gradients are synchronised behind the backward pass.
  bool one_layer_chunks = false;  ///< Interleaved pipelines have a chunk for every layer.
  /// Attention kernels are of the generation before Hopper's and Blackwell's asynchronous units.
  bool old_attention = false;
  bool half_gradients = false;  ///< Training in fp16 keeps and reduces gradients in fp16.
  /// The product that makes a weight's gradient adds it to what earlier micro-batches left;
  /// otherwise a kernel of its own does.
  bool fused_accumulation = true;
  /// A whole iteration is one captured graph: the host issues no kernels.
  bool whole_graph = false;
  /// Cross entropy is one kernel that leaves the gradient where the logits were.
  bool fused_loss = false;
  /// What adds a weight's gradient to those of earlier micro-batches hands a placeholder of the
  /// weight's own format and shape to the trainer in its place.
  bool gradient_placeholders = false;
  /// Layers that predict further tokens are trained where the model has them.
  bool further_tokens = false;
  /// Kernels of experts' products take their biases and clamps along.
  bool fused_experts = false;
  /// Experts have room for the average, tokens beyond are dropped (MoeExperts::padded).
  bool padded_experts = false;
  /// Tensor parallelism does not divide experts (Execution::whole_experts).
  bool whole_experts = false;
  /// Tokens of one micro-batch travel to experts and back behind the kernels of another.
  bool overlap_dispatch = false;
  /// State is sharded over the devices of a node (a slice of TPUs), each node holds all of it, and
  /// their gradients are summed after the backward pass.
  bool node_replicas = false;
  /// A step is one micro-batch, whatever else would fit into memory.
  bool whole_batches = false;
  /// Without interleaving a stage waits for what it sends before its next pass: the sends of
  /// Megatron-LM's, NeMo's and DeepSpeed's pipelines are of the stream that computes.
  bool blocking_sends = true;
  /// Input gradients are summed over tensor-parallel ranks behind the weights' gradients.
  bool overlap_tensor_parallel = true;
};

/// By words in the trainer's name, the month of its source where that is on arXiv, and the
/// generation of its chips (Megatron-LM on H100 runs Transformer Engine); one that is not known is
/// taken for a present-day trainer without sharding.
TrainerDefaults trainer_defaults(const MeasuredRun& run);

}  // namespace braid
