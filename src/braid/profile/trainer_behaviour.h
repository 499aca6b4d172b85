#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/profile/layer_cost.h"
#include "braid/profile/precision.h"
#include "braid/system/system.h"

namespace braid {

/// What the program that runs a plan does beside what the plan says: the same facts whether a plan
/// is searched for, simulated, verified, exported or held against a measured run. The defaults are
/// those of a program that waits for nothing and fuses nothing.
struct TrainerBehaviour {
  // How operators run.
  bool flash_attention = true;  ///< Attention's scores are never written to memory.
  /// Rate of its attention kernels over that of the chip's best, for which
  /// Efficiency::attention_peak_fraction stands.
  double attention_rate = 1;
  bool captured_graphs = false;  ///< Iterations are replayed graphs: the host issues no kernels.
  /// Cross entropy is one kernel that leaves the gradient where the logits were.
  bool fused_loss = false;
  bool fused_experts = false;   ///< Experts' GEMMs take biases and clamps along.
  bool padded_experts = false;  ///< Experts have room for the average; tokens beyond are dropped.
  // What selective recomputation repeats (SelectiveParts).
  bool selective_attention = true, selective_attention_output = true;
  bool selective_norms = true, selective_expert_norms = true;
  bool selective_activations = true;
  // How layers run.
  /// MTP modules run with the head: they are one layer, of one stage.
  bool predictions_with_head = false;
  /// Input gradients are summed over tensor-parallel ranks behind the weights' gradients.
  bool overlapped_tensor_parallel = true;
  /// Tokens of one micro-batch travel to experts and back behind the kernels of another.
  bool overlapped_dispatch = false;
  /// The GEMM that makes a weight's gradient adds it to what earlier micro-batches left; otherwise
  /// a kernel of its own does.
  bool fused_accumulation = true;
  /// Gradients that a fused GEMM has added up are handed on as a placeholder of each weight's
  /// format and shape.
  bool gradient_placeholders = false;
  // How stages and replicas run.
  /// Without interleaving, a stage waits for what it sends before its next pass.
  bool blocking_sends = false;
  /// Gradients are synchronised behind the last backward pass; false: after it.
  bool overlapped_gradients = true;
  bool half_gradients = false;  ///< Training in fp16 keeps and reduces gradients in fp16.
  /// Gradients of parameters that several stages hold are summed in the weights' format.
  bool narrow_tied_gradients = false;
  /// Fully sharded state is sharded over the devices of a node (a slice of TPUs); each node holds
  /// all of it, and gradients are summed over nodes after the backward pass.
  bool node_replicas = false;
  friend bool operator==(const TrainerBehaviour&, const TrainerBehaviour&) = default;
};

/// A flag of the behaviour, as files name it, and what it means in a few words.
struct BehaviourFlag {
  const char* key;
  bool TrainerBehaviour::*flag;
  const char* meaning;
};
/// All of them, in the order in which they are shown.
const std::vector<BehaviourFlag>& behaviour_flags();

/// Makes formats of gradients those that the trainer keeps them in.
void adapt_precision(const TrainerBehaviour& does, Precision& precision);

/// Makes `graph` what the trainer runs: plain or flash attention, fused or padded operators, what
/// selective recomputation repeats, one layer of MTP modules and the head.
/// Linear in the operators.
void adapt_graph(const TrainerBehaviour& does, Graph& graph);

/// `system` with the figures that its chips reach under the trainer, for estimating layers alone.
System adapted_system(const TrainerBehaviour& does, const System& system);

/// What adding a micro-batch's gradients to those of earlier ones in kernels of their own takes for
/// each parameter, on average over `micro_batches`, of which the first has nothing to add to.
double accumulation_s_per_parameter(std::int64_t micro_batches, const Precision& precision,
                                    const System& system);

/// Makes `cost`, of a layer that runs by itself, what it is under the trainer: what hides behind
/// weights' gradients shows or not, dispatch hides behind other micro-batches' kernels (a share
/// `overlap_loss` of what hides is lost), and each parameter takes `accumulation_s` more.
void adapt_cost(const TrainerBehaviour& does, double overlap_loss, double accumulation_s,
                LayerCost& cost);

}  // namespace braid
