#include "braid/chip/systolic/operator_work.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "braid/base/index.h"
#include "braid/chip/systolic/nest_terms.h"
#include "braid/graph/attention_scores.h"
#include "braid/graph/op_work.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

using Nests = std::vector<NestRuns>;

NestRuns once(const LoopNest& nest) { return {nest, 1}; }

/// What the pass of an operator is made of.
struct PassOf {
  Pass pass = Pass::forward;
  std::size_t wanted = 1;  ///< Gradients of activations.
  double kept_words = 0;
};

Nests matmul_nests(const MatMul& kind, const PassOf& of) {
  const std::int64_t batch = kind.weight ? 1 : kind.batch;
  const std::int64_t m = kind.weight ? kind.batch * kind.m : kind.m;
  switch (of.pass) {
    case Pass::forward:
      return {once(gemm_nest(m, kind.n, kind.k, batch))};
    case Pass::weight_gradient:
      return {once(gemm_nest(kind.k, kind.n, m, batch))};
    case Pass::input_gradient:
      break;
  }
  Nests nests = {once(gemm_nest(m, kind.k, kind.n, batch))};
  if (!kind.weight && of.wanted > 1) nests.push_back(once(gemm_nest(kind.k, kind.n, m, batch)));
  return nests;
}

Nests attention_nests(const Attention& kind, const PassOf& of) {
  if (of.pass == Pass::weight_gradient) return {};
  const std::int64_t batch = kind.samples * kind.kv_heads;
  const std::int64_t rows = kind.q_len * std::max<std::int64_t>(1, kind.heads / kind.kv_heads);
  const auto keys = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(
             std::ceil(attended_scores(kind) / static_cast<double>(kind.q_len))));
  const auto held = [&](LoopNest nest, NestOperand scores) {
    return once(kind.flash ? with_on_chip(nest, scores) : nest);
  };
  const NestRuns scores = held(gemm_nest(rows, keys, kind.qk_dim, batch), NestOperand::output);
  if (of.pass == Pass::forward) {
    return {scores, held(gemm_nest(rows, kind.v_dim, keys, batch), NestOperand::first)};
  }
  Nests nests = {
      held(gemm_nest(rows, keys, kind.v_dim, batch), NestOperand::output),   // Of probabilities.
      held(gemm_nest(keys, kind.v_dim, rows, batch), NestOperand::first),    // Of V.
      held(gemm_nest(rows, kind.qk_dim, keys, batch), NestOperand::first),   // Of Q.
      held(gemm_nest(keys, kind.qk_dim, rows, batch), NestOperand::first)};  // Of K.
  if (kind.flash) nests.insert(nests.begin(), scores);
  return nests;
}

std::int64_t whole_root(std::int64_t value) {
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(value))));
  return root * root == value ? root : 0;
}

/// The window by which `out` positions read `in` ones with so many taps.
NestWindow window_of(std::int64_t in, std::int64_t out, std::int64_t taps) {
  NestWindow window;
  window.slope = static_cast<double>(in) / static_cast<double>(out * taps);
  const std::int64_t in_root = whole_root(in), out_root = whole_root(out), side = whole_root(taps);
  const bool square = in_root > 0 && out_root > 0 && side > 0;
  const double row = square ? static_cast<double>(in_root) : 1;
  const double rows = static_cast<double>(square ? side : taps);
  const double stride = square ? static_cast<double>(in_root) / static_cast<double>(out_root)
                               : static_cast<double>(in) / static_cast<double>(out);
  window.offset = std::max(0.0, rows - stride) * row / static_cast<double>(taps);
  window.used = taps > 1;
  return window;
}

Nests convolution_nests(const Convolution& kind, const PassOf& of) {
  // A transposed convolution is one the other way round, so its forward pass is an input gradient.
  const bool turned = kind.transposed;
  const std::int64_t small = turned ? kind.in_positions : kind.out_positions;
  const std::int64_t large = turned ? kind.out_positions : kind.in_positions;
  const std::int64_t read = (turned ? kind.out_channels : kind.in_channels) / kind.groups;
  const std::int64_t made = (turned ? kind.in_channels : kind.out_channels) / kind.groups;
  const std::int64_t gathered = std::max<std::int64_t>(1, read) * kind.kernel_positions;
  const std::int64_t channels = std::max<std::int64_t>(1, made);
  const std::int64_t rows = kind.samples * small;
  LoopNest nest;
  const bool gathers = of.pass == (turned ? Pass::input_gradient : Pass::forward);
  nest.window = window_of(large, small, kind.kernel_positions);
  if (of.pass == Pass::weight_gradient) {
    nest = {.batch = kind.groups, .m = gathered, .n = channels, .k = rows, .window = nest.window};
    nest.window.positions = NestDim::k;
  } else if (gathers) {
    nest = {.batch = kind.groups, .m = rows, .n = channels, .k = gathered, .window = nest.window};
  } else {
    nest = {.batch = kind.groups, .m = rows, .n = gathered, .k = channels, .window = nest.window};
    nest.window.operand = NestOperand::output;
  }
  if (!nest.window.used) nest.window = {};
  return {once(nest)};
}

Nests recurrent_nests(const Recurrent& kind, const PassOf& of) {
  if (of.pass == Pass::weight_gradient) {
    return {once(gemm_nest(kind.k, kind.n, kind.steps * kind.rows))};
  }
  const bool forward = of.pass == Pass::forward;
  const LoopNest step = gemm_nest(kind.rows, forward ? kind.n : kind.k, forward ? kind.k : kind.n);
  const auto steps = static_cast<double>(kind.steps);
  const double weights = static_cast<double>(kind.n) * static_cast<double>(kind.k);
  if (weights > of.kept_words || kind.steps == 1) return {{step, steps}};
  return {once(step), {with_on_chip(step, NestOperand::second), steps - 1}};
}

Nests router_nests(const MoeRouter& kind, const PassOf& of) {
  MatMul gemm;
  gemm.m = kind.tokens, gemm.n = kind.experts, gemm.k = kind.hidden;
  return matmul_nests(gemm, of);
}

Nests expert_nests(const MoeExperts& kind, const PassOf& of) {
  const std::int64_t visits = kind.tokens * kind.top_k;
  const std::int64_t experts = std::min(kind.experts, visits);
  const std::int64_t rows = quotient_up(visits, experts);
  const auto inward = static_cast<double>(kind.matrices - 1);
  switch (of.pass) {
    case Pass::forward:
      return {{gemm_nest(rows, kind.inner, kind.hidden, experts), inward},
              once(gemm_nest(rows, kind.hidden, kind.inner, experts))};
    case Pass::input_gradient:
      return {once(gemm_nest(rows, kind.inner, kind.hidden, experts)),
              {gemm_nest(rows, kind.hidden, kind.inner, experts), inward}};
    case Pass::weight_gradient:
      break;
  }
  return {{gemm_nest(kind.hidden, kind.inner, rows, experts), inward},
          once(gemm_nest(kind.inner, kind.hidden, rows, experts))};
}

template <typename Kind>
Nests nests_of(const Kind& kind, const PassOf& of) {
  if constexpr (std::is_same_v<Kind, MatMul>) return matmul_nests(kind, of);
  if constexpr (std::is_same_v<Kind, Attention>) return attention_nests(kind, of);
  if constexpr (std::is_same_v<Kind, Convolution>) return convolution_nests(kind, of);
  if constexpr (std::is_same_v<Kind, Recurrent>) return recurrent_nests(kind, of);
  if constexpr (std::is_same_v<Kind, MoeRouter>) return router_nests(kind, of);
  if constexpr (std::is_same_v<Kind, MoeExperts>) return expert_nests(kind, of);
  return {};
}

/// Elements that vector cores work on, for the rounding to whole lanes: what is written, or the
/// largest tensor that is summed up, of which each lane has a part.
double vector_elements(const Graph& graph, const Operator& op) {
  if (const auto* attention = std::get_if<Attention>(&op.kind)) {
    return static_cast<double>(attention->samples * attention->heads) * attended_scores(*attention);
  }
  if (const auto* reduction = std::get_if<Reduction>(&op.kind)) {
    return static_cast<double>(reduction->elements);
  }
  double elements = 0;
  for (const TensorId id : op.outputs) elements += elements_of(graph.tensors[at(id)]);
  for (const TensorId id : op.inputs) {
    const Tensor& tensor = graph.tensors[at(id)];
    if (!tensor.is_parameter) elements = std::max(elements, elements_of(tensor));
  }
  return elements;
}

}  // namespace

AcceleratorWork accelerator_work(const Graph& graph, const Operator& op,
                                 const AcceleratorWords& words) {
  const OpWork work = forward_work(graph, op);
  AcceleratorWork split;
  const PassOf of{op.pass, std::max<std::size_t>(1, op.outputs.size()), words.kept_words};
  split.nests = std::visit([&](const auto& kind) { return nests_of(kind, of); }, op.kind);
  split.vector.operations = work.vector_flops;
  if (work.vector_flops > 0) split.vector.elements = vector_elements(graph, op);
  double moved = (work.input_bytes + work.weight_bytes + work.output_bytes) / words.word_bytes;
  for (const NestRuns& runs : split.nests) {
    moved -= runs.times * compulsory_hbm_words(runs.nest);
  }
  split.vector.words = std::max(0.0, moved);
  const auto* attention = std::get_if<Attention>(&op.kind);
  split.fused = !split.nests.empty() && (attention == nullptr || attention->flash);
  return split;
}

}  // namespace braid
