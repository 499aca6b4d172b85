#include "braid/machine/sample_operators.h"

#include <cstdint>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/frontend/graph_builder.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

using Dims = std::vector<std::int64_t>;
constexpr std::int64_t kElementBytes = 4;

/// A graph under construction that will have one operator.
class OneOperator {
 public:
  explicit OneOperator(const std::string& name) : name_(name), builder_(name, 0) {
    builder_.begin_layer("layer");
  }

  TensorId input(const Dims& dims) {
    return builder_.input(fmt::format("input{}", ++inputs_), dims, Dtype::f32);
  }
  TensorId weight(const Dims& dims) {
    return builder_.parameter(fmt::format("weight{}", ++inputs_), dims);
  }
  SampleOperator computes(const OperatorKind& kind, const std::vector<TensorId>& inputs,
                          const Dims& dims) {
    const TensorId output = builder_.add("operator", kind, inputs, dims, Split::replicated);
    Graph graph = builder_.finish({output});
    for (Tensor& tensor : graph.tensors) tensor.dtype = Dtype::f32;
    return {name_, std::move(graph)};
  }

 private:
  std::string name_;
  GraphBuilder builder_;
  int inputs_ = 0;
};

std::string of_size(const char* what, std::int64_t elements) {
  return fmt::format("{} of {}", what, format_bytes(static_cast<double>(elements * kElementBytes)));
}

SampleOperator gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  OneOperator op(fmt::format("GEMM {} x {} x {}", m, n, k));
  const TensorId x = op.input({m, k});
  const TensorId w = op.weight({k, n});
  return op.computes(MatMul{1, m, n, k, true, false}, {x, w}, {m, n});
}

SampleOperator sum(std::int64_t elements) {
  OneOperator op(of_size("sum", elements));
  const TensorId a = op.input({elements});
  const TensorId b = op.input({elements});
  return op.computes(Elementwise{elements, 1, Elementwise::Keeps::nothing}, {a, b}, {elements});
}

SampleOperator gelu(std::int64_t rows, std::int64_t width) {
  OneOperator op(of_size("Gelu", rows * width));
  const TensorId x = op.input({rows, width});
  const Elementwise kind{rows * width, kGeluFlops, Elementwise::Keeps::inputs};
  return op.computes(kind, {x}, {rows, width});
}

SampleOperator softmax(std::int64_t rows, std::int64_t width) {
  OneOperator op(of_size("softmax", rows * width));
  const TensorId x = op.input({rows, width});
  return op.computes(Softmax{rows * width, width}, {x}, {rows, width});
}

SampleOperator layer_norm(std::int64_t rows, std::int64_t width) {
  OneOperator op(of_size("layer norm", rows * width));
  const TensorId x = op.input({rows, width});
  const TensorId scale = op.weight({width});
  const TensorId shift = op.weight({width});
  return op.computes(Normalization{rows * width, width, false}, {x, scale, shift}, {rows, width});
}

SampleOperator attention(std::int64_t heads, std::int64_t length, std::int64_t width) {
  OneOperator op(fmt::format("attention {} heads x {} x {}", heads, length, width));
  const Dims dims{length, heads * width};
  const TensorId q = op.input(dims);
  const TensorId k = op.input(dims);
  const TensorId v = op.input(dims);
  Attention kind;
  kind.heads = kind.kv_heads = heads;
  kind.q_len = kind.kv_len = length;
  kind.qk_dim = kind.v_dim = width;
  return op.computes(kind, {q, k, v}, dims);
}

}  // namespace

std::vector<SampleOperator> sample_operators(double largest_bytes) {
  std::vector<SampleOperator> samples;
  for (const std::int64_t m : {16, 100, 256, 1000}) {
    for (const std::int64_t n : {64, 257, 1024}) {
      for (const std::int64_t k : {64, 256, 1024}) samples.push_back(gemm(m, n, k));
    }
  }
  const auto largest = static_cast<std::int64_t>(largest_bytes) / kElementBytes;
  for (std::int64_t elements = 1024; elements <= largest; elements *= 4) {
    samples.push_back(sum(elements));
  }
  for (const std::int64_t rows : {64, 512}) {
    samples.push_back(gelu(rows, 1024));
    samples.push_back(softmax(rows, 1024));
    samples.push_back(layer_norm(rows, 1024));
  }
  for (const std::int64_t length : {64, 256}) samples.push_back(attention(8, length, 64));
  return samples;
}

}  // namespace braid
