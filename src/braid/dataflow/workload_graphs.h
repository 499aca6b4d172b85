#pragma once

#include <cstdint>

#include "braid/chip/kernel_graph.h"

namespace braid {

// The kernel graphs of the four workloads that DFModel's sweeps are over (section VI-C), as its
// published inputs have them. Sizes are positive; linear in the number of kernels.

/// A layer of a GPT-like transformer on one sample.
struct TransformerShape {
  std::int64_t hidden = 0;
  std::int64_t heads = 1;  ///< Divides `hidden`.
  std::int64_t feed_forward = 0;
  std::int64_t seq_len = 0;
  bool training = true;  ///< Backward pass and gradients as well.
  double word_bytes = 2;
};
/// 18 kernels forward, 41 with the backward pass: attention with its scores between kernels, each
/// gradient a GEMM of its own that is reduced once per batch. The sequence is streamed.
KernelGraph transformer_layer(const TransformerShape& shape);

/// A recommendation model (DLRM): stacks of square dense layers, tables looked up between them.
struct RecommendationShape {
  std::int64_t bottom_layers = 0, top_layers = 0;
  std::int64_t width = 0;        ///< Of a dense layer.
  std::int64_t tables = 0;       ///< Sharded among all chips.
  std::int64_t embedding = 0;    ///< Elements of a row.
  std::int64_t pooled = 1;       ///< Rows looked up per table and sample.
  std::int64_t micro_batch = 1;  ///< Samples of a chip.
  std::int64_t chips = 1;        ///< That exchange the rows.
  double word_bytes = 2;
};
/// Three kernels per dense layer: forward, gradient of the input, gradient of the parameters.
KernelGraph recommendation_layers(const RecommendationShape& shape);

/// Dense elimination (HPL): iteration i updates what is left of an n x n matrix by a block of
/// columns; only the updates, without factorising the blocks.
struct LinpackShape {
  std::int64_t side = 0;
  std::int64_t block = 0;
  std::int64_t iterations = 1;  ///< At most side / block.
  double word_bytes = 8;
};
KernelGraph linpack_iterations(const LinpackShape& shape);

/// A Fourier transform of about `points` in two steps over a square of them (Bailey 1990), each
/// step four GEMMs by butterflies of `radix` points per stage of the shorter transform.
struct FourierShape {
  double points = 0;
  std::int64_t radix = 2;
  double word_bytes = 2;
};
KernelGraph fourier_steps(const FourierShape& shape);

}  // namespace braid
