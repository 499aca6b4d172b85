#include "braid/frontend/transformer_block.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;

}  // namespace

TensorId state_space(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                     TensorId x, std::int64_t tokens) {
  const StateSpaceSpec& s = spec.state_space;
  const std::int64_t inner = s.heads * s.head_dim;
  // With what heads write into the state and read from it (B and C).
  const std::int64_t convolved = inner + 2 * s.groups * s.state;
  const auto view = [&](const char* name, TensorId of, std::int64_t width) {
    return builder.add(prefix + name, DataMovement{true}, {of}, {tokens, width}, Split::features);
  };
  const TensorId in =
      builder.linear(prefix + "in_proj", x, {tokens, spec.hidden, inner + convolved + s.heads},
                     false, Split::column);
  const TensorId gate = view("gate", in, inner);

  // One kernel: a convolution of each feature by itself, and SiLU.
  const TensorId features =
      builder.add(prefix + "convolution",
                  Elementwise{tokens * convolved, 2 * static_cast<double>(s.kernel) + kSiluFlops,
                              Keeps::inputs},
                  {view("x_b_c", in, convolved),
                   builder.parameter(prefix + "conv.weight", {convolved, s.kernel}),
                   builder.parameter(prefix + "conv.bias", {convolved})},
                  {tokens, convolved}, Split::features);
  const TensorId values = view("values", features, inner);
  const TensorId writes = view("b", features, s.groups * s.state);
  const TensorId reads = view("c", features, s.groups * s.state);
  // Softplus of the steps, and their sums over each chunk.
  constexpr double kStepFlops = 8;
  const TensorId steps =
      builder.add(prefix + "steps", Elementwise{tokens * s.heads, kStepFlops, Keeps::inputs},
                  {view("dt", in, s.heads), builder.parameter(prefix + "dt_bias", {s.heads}),
                   builder.parameter(prefix + "a_log", {s.heads})},
                  {tokens, s.heads}, Split::features);

  // Dao and Gu 2024, section 6 (GEMMs of the names by which estimates know them): within chunks
  // as attention without softmax, between them by states.
  const std::int64_t chunk = s.chunk < tokens ? s.chunk : tokens;
  const std::int64_t chunks = (tokens + chunk - 1) / chunk;
  const std::int64_t state_elements = s.heads * s.head_dim * s.state;
  const TensorId scores = builder.add(
      prefix + "scan_scores", MatMul{chunks * s.groups, chunk, chunk, s.state, false, false},
      {reads, writes}, {chunks, s.groups * chunk * chunk}, Split::heads);
  const TensorId chunk_states = builder.add(
      prefix + "scan_states", MatMul{chunks * s.heads, s.head_dim, s.state, chunk, false, false},
      {values, writes}, {chunks, state_elements}, Split::heads);
  const TensorId states =
      builder.add(prefix + "pass_states", Elementwise{chunks * state_elements, 2, Keeps::nothing},
                  {chunk_states, steps}, {chunks, state_elements}, Split::features);
  // One GEMM of what a chunk and the state before it hold: [scores, reads] · [values; states].
  const TensorId left =
      builder.add(prefix + "scan_left", DataMovement{true}, {scores, reads},
                  {chunks, s.groups * chunk * (chunk + s.state)}, Split::features);
  const TensorId right = builder.add(prefix + "scan_right", DataMovement{true}, {values, states},
                                     {chunks, inner * (chunk + s.state)}, Split::features);
  const TensorId mixed =
      builder.add(prefix + "scan_outputs",
                  MatMul{chunks * s.heads, chunk, s.head_dim, chunk + s.state, false, false},
                  {left, right}, {tokens, inner}, Split::heads);

  const TensorId gated = builder.add(
      prefix + "gated", Elementwise{tokens * inner, kSiluFlops + 1, Keeps::inputs},
      {mixed, gate, builder.parameter(prefix + "d", {s.heads})}, {tokens, inner}, Split::features);
  const TensorId normed =
      builder.add(prefix + "norm", Normalization{tokens * inner, inner / s.groups, true},
                  {gated, builder.parameter(prefix + "norm.weight", {inner})}, {tokens, inner},
                  Split::features);
  return builder.linear(prefix + "out_proj", normed, {tokens, inner, spec.hidden}, false,
                        Split::row);
}

}  // namespace braid
