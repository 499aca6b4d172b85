#pragma once

#include <vector>

#include "braid/chip/systolic/loop_nest.h"
#include "braid/graph/graph.h"

namespace braid {

//   const Graph step = training_graph(load_model("bert-large", {.seq_len = 512, .dims = {}}));
//   accelerator_work(step, step.operators[3], {.word_bytes = 2, .kept_words = 1 << 24}).nests;

/// A nest that runs so often, one run after the other.
struct NestRuns {
  LoopNest nest;
  double times = 1;
  friend bool operator==(const NestRuns&, const NestRuns&) = default;
};

/// What vector cores do for an operator.
struct VectorWork {
  double elements = 0;
  double operations = 0;  ///< Of all elements, as op_work.h counts them.
  double words = 0;       ///< Between HBM and chip, beside what nests move.
  friend bool operator==(const VectorWork&, const VectorWork&) = default;
};

/// An operator of a graph, in one pass, as an accelerator's cores run it.
struct AcceleratorWork {
  std::vector<NestRuns> nests;  ///< On tensor cores, one after the other.
  VectorWork vector;
  /// Vector cores take what tensor cores make, or make what these take, while they run.
  bool fused = false;
  friend bool operator==(const AcceleratorWork&, const AcceleratorWork&) = default;
};

struct AcceleratorWords {
  double word_bytes = 2;  ///< Of a number of nests; tensors of other formats count by their bytes.
  double kept_words =
      0;  ///< Weights of a recurrent cell up to this stay on chip from step to step.
};

/// The work of an operator as it stands in its graph: a forward operator, or one of another pass of
/// a training graph (training.h). Every kind:
///
/// - *MatMul* by parameters: batch · m rows; of two tensors: a batch. Input gradients: one nest for
///   each operand that wants one; weight gradient: k × n, summed over all rows.
/// - *Attention*: two forward GEMMs, m × attended keys × width for each pair of a sample and a
///   key-value head (its query heads are rows; a mask counts as fewer keys, their mean rounded up),
///   with softmax between them. `flash`: scores never leave the chip, and softmax runs beside the
///   GEMMs; its gradients take five GEMMs. Else scores pass through HBM, softmax runs between the
///   GEMMs, and gradients take four.
/// - *Convolution*: groups are the batch; rows are positions, k the channels and taps, the first
///   operand read through a window (implicit im2col with halo). The input gradient scatters its
///   output through the window; so does a transposed convolution forward. The graph says only how
///   many positions there are: these are taken for squares where all three counts are, else for a
///   line.
/// - *Recurrent*: a small GEMM in every step; weights are kept where they fit. The weight gradient
/// is
///   one GEMM over all steps.
/// - *MoeRouter*, *MoeExperts*: a GEMM; a batch of experts that are reached, with even tokens.
/// - *Normalization, Softmax, Elementwise, Reduction, Embedding, Loss, OptimizerStep*: vector
/// cores,
///   each tensor moved once (a row lies in the vector cores' buffers between passes over it).
/// - *DataMovement*: moves words, or nothing as a view.
///
/// Bias, activations inside experts, gates and the router's softmax are fused tails. Words that
/// op_work.h counts beyond those of the nests are VectorWork::words.
AcceleratorWork accelerator_work(const Graph& graph, const Operator& op,
                                 const AcceleratorWords& words);

}  // namespace braid
