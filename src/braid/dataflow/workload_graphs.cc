#include "braid/dataflow/workload_graphs.h"

#include <cmath>
#include <string>
#include <utility>

namespace braid {
namespace {

/// Puts kernels together by the numbers that it gives them.
class Builder {
 public:
  explicit Builder(double word_bytes) { graph_.word_bytes = word_bytes; }

  struct Size {
    std::int64_t outer = 1, m = 1, k = 1, n = 1;
  };

  void backward() { backward_ = true; }

  std::int32_t elementwise(const char* name, const Size& size) {
    return add(name, size, KernelDim::n, false);
  }
  /// A GEMM by parameters.
  std::int32_t layer(std::string name, const Size& size, KernelDim tiled) {
    const std::int32_t number = add(std::move(name), size, tiled, true);
    last().weights = true;
    return number;
  }
  /// A GEMM of two tensors, of which the first, M x K, has as many elements as given.
  std::int32_t gemm(std::string name, const Size& size, KernelDim tiled, double first_elements) {
    const std::int32_t number = add(std::move(name), size, tiled, true);
    last().first_input_bytes = first_elements * graph_.word_bytes;
    return number;
  }
  /// A gradient of parameters, reduced once per batch.
  std::int32_t gradient(std::string name, const Size& size, KernelDim tiled,
                        double first_elements) {
    const std::int32_t number = gemm(std::move(name), size, tiled, first_elements);
    const double elements = static_cast<double>(size.m) * static_cast<double>(size.n);
    send(KernelTransfer::all_reduce_per_batch, elements * graph_.word_bytes);
    return number;
  }

  void read(std::int32_t reader, std::initializer_list<std::int32_t> writers) {
    for (const std::int32_t writer : writers) graph_.tensors.push_back({writer, reader});
  }
  void send(KernelTransfer transfer, double bytes) { last().messages.push_back({transfer, bytes}); }
  Kernel& last() { return graph_.kernels.back(); }
  KernelGraph take() { return std::move(graph_); }

 private:
  std::int32_t add(std::string name, const Size& size, KernelDim tiled, bool matrix) {
    Kernel kernel;
    kernel.name = std::move(name);
    kernel.matrix = matrix;
    kernel.backward = backward_;
    kernel.outer = size.outer;
    kernel.m = size.m;
    kernel.k = size.k;
    kernel.n = size.n;
    kernel.tiled = tiled;
    graph_.kernels.push_back(std::move(kernel));
    return static_cast<std::int32_t>(graph_.kernels.size()) - 1;
  }

  KernelGraph graph_;
  bool backward_ = false;
};

/// The kernels whose outputs the backward pass reads.
struct ForwardKernels {
  std::int32_t norm_1 = 0, query = 0, key = 0, value = 0, weights = 0, heads = 0;
  std::int32_t norm_2 = 0, activation = 0;
};

ForwardKernels add_forward(Builder& b, const TransformerShape& shape) {
  const std::int64_t head = shape.hidden / shape.heads, seq = shape.seq_len;
  const Builder::Size wide{1, shape.hidden, 1, seq}, scores{shape.heads, seq, 1, seq};
  const Builder::Size inner{1, shape.feed_forward, 1, seq};
  const Builder::Size to_heads{shape.heads, head, shape.hidden, seq};
  const double hidden_elements = static_cast<double>(shape.hidden) * static_cast<double>(seq);
  constexpr KernelDim kRows = KernelDim::n;
  ForwardKernels f;
  const std::int32_t input = b.elementwise("add_previous", wide);
  f.norm_1 = b.elementwise("norm_1", wide);
  b.read(f.norm_1, {input});
  f.query = b.layer("query", to_heads, kRows);
  b.read(f.query, {f.norm_1});
  f.key = b.layer("key", to_heads, kRows);
  b.read(f.key, {f.norm_1});
  f.value = b.layer("value", to_heads, kRows);
  b.read(f.value, {f.norm_1});
  const std::int32_t score =
      b.gemm("scores", {shape.heads, seq, head, seq}, kRows, hidden_elements);
  b.read(score, {f.query, f.key});
  const std::int32_t softmax = b.elementwise("softmax", scores);
  b.read(softmax, {score});
  f.weights = b.elementwise("dropout_1", scores);
  b.read(f.weights, {softmax});
  f.heads = b.gemm("attend", {shape.heads, head, seq, seq}, kRows, hidden_elements);
  b.read(f.heads, {f.value, f.weights});
  const std::int32_t project = b.layer("project", {1, shape.hidden, shape.hidden, seq}, kRows);
  b.read(project, {f.heads});
  const std::int32_t dropout_2 = b.elementwise("dropout_2", wide);
  b.read(dropout_2, {project});
  const std::int32_t add_1 = b.elementwise("add_1", wide);
  b.read(add_1, {dropout_2, input});
  f.norm_2 = b.elementwise("norm_2", wide);
  b.read(f.norm_2, {add_1});
  const std::int32_t up = b.layer("up", {1, shape.feed_forward, shape.hidden, seq}, kRows);
  b.read(up, {f.norm_2});
  f.activation = b.elementwise("gelu", inner);
  b.read(f.activation, {up});
  const std::int32_t down = b.layer("down", {1, shape.hidden, shape.feed_forward, seq}, kRows);
  b.read(down, {f.activation});
  const std::int32_t dropout_3 = b.elementwise("dropout_3", wide);
  b.read(dropout_3, {down});
  const std::int32_t add_2 = b.elementwise("add_2", wide);
  b.read(add_2, {dropout_3, add_1});
  return f;
}

void add_backward(Builder& b, const TransformerShape& shape, const ForwardKernels& f) {
  const std::int64_t head = shape.hidden / shape.heads, seq = shape.seq_len;
  const std::int64_t hidden = shape.hidden, inner = shape.feed_forward;
  const Builder::Size wide{1, hidden, 1, seq}, scores{shape.heads, seq, 1, seq};
  const Builder::Size to_heads{shape.heads, head, hidden, seq};
  const Builder::Size square{1, hidden, hidden, seq}, from_scores{shape.heads, head, seq, seq};
  const double hidden_elements = static_cast<double>(hidden) * static_cast<double>(seq);
  const double inner_elements = static_cast<double>(inner) * static_cast<double>(seq);
  const double score_elements =
      static_cast<double>(shape.heads) * static_cast<double>(seq) * static_cast<double>(seq);
  constexpr KernelDim kRows = KernelDim::n;
  b.backward();
  const std::int32_t loss = b.elementwise("loss_gradient", wide);
  const std::int32_t dropout_3 = b.elementwise("dropout_3_gradient", wide);
  b.read(dropout_3, {loss});
  const std::int32_t down = b.layer("down_gradient", {1, inner, hidden, seq}, kRows);
  b.read(down, {dropout_3});
  const std::int32_t gelu = b.elementwise("gelu_gradient", {1, inner, 1, seq});
  b.read(gelu, {down});
  const std::int32_t up = b.layer("up_gradient", {1, hidden, inner, seq}, kRows);
  b.read(up, {gelu});
  const std::int32_t norm_2 = b.elementwise("norm_2_gradient", wide);
  b.read(norm_2, {up});
  const std::int32_t dropout_2 = b.elementwise("dropout_2_gradient", wide);
  b.read(dropout_2, {norm_2});
  const std::int32_t project = b.layer("project_gradient", square, kRows);
  b.read(project, {dropout_2});
  const std::int32_t weights =
      b.gemm("attend_weights_gradient", {shape.heads, seq, head, seq}, kRows, hidden_elements);
  b.read(weights, {project, f.value});
  const std::int32_t values = b.gemm("attend_values_gradient", from_scores, kRows, hidden_elements);
  b.read(values, {project, f.weights});
  const std::int32_t value = b.layer("value_gradient", square, kRows);
  b.read(value, {values});
  const std::int32_t dropout_1 = b.elementwise("dropout_1_gradient", scores);
  b.read(dropout_1, {weights});
  const std::int32_t softmax = b.elementwise("softmax_gradient", scores);
  b.read(softmax, {dropout_1});
  const std::int32_t queries =
      b.gemm("scores_queries_gradient", from_scores, kRows, score_elements);
  b.read(queries, {softmax, f.key});
  const std::int32_t keys = b.gemm("scores_keys_gradient", from_scores, kRows, score_elements);
  b.read(keys, {softmax, f.query});
  const std::int32_t query = b.layer("query_gradient", to_heads, kRows);
  b.read(query, {queries});
  const std::int32_t key = b.layer("key_gradient", to_heads, kRows);
  b.read(key, {keys});
  const auto update = [&](const char* name, std::int64_t m, std::int64_t n, double first_elements,
                          std::int32_t gradient, std::int32_t input) {
    const std::int32_t kernel = b.gradient(name, {1, m, seq, n}, KernelDim::k, first_elements);
    b.read(kernel, {gradient, input});
  };
  update("down_parameters", inner, hidden, hidden_elements, dropout_3, f.activation);
  update("up_parameters", hidden, inner, inner_elements, gelu, f.norm_2);
  update("project_parameters", hidden, hidden, hidden_elements, dropout_2, f.heads);
  update("value_parameters", hidden, hidden, hidden_elements, values, f.norm_1);
  update("key_parameters", hidden, hidden, hidden_elements, keys, f.norm_1);
  update("query_parameters", hidden, hidden, hidden_elements, queries, f.norm_1);
}

}  // namespace

KernelGraph transformer_layer(const TransformerShape& shape) {
  Builder b(shape.word_bytes);
  const ForwardKernels forward = add_forward(b, shape);
  if (shape.training) add_backward(b, shape, forward);
  return b.take();
}

KernelGraph recommendation_layers(const RecommendationShape& shape) {
  Builder b(shape.word_bytes);
  const std::int64_t layers = shape.bottom_layers + shape.top_layers;
  const Builder::Size dense{1, shape.width, shape.width, shape.micro_batch};
  const double rows_bytes = static_cast<double>(shape.tables) * static_cast<double>(shape.pooled) *
                            static_cast<double>(shape.embedding) *
                            static_cast<double>(shape.micro_batch) * shape.word_bytes;
  const auto add_dense = [&](const char* name, std::int64_t layer) {
    const std::int32_t kernel = b.layer(name + std::to_string(layer + 1), dense, KernelDim::none);
    if (layer + 1 == shape.bottom_layers) {  // Where the tables' rows come in.
      b.last().dram_bytes = rows_bytes;
      b.send(KernelTransfer::all_to_all, rows_bytes / static_cast<double>(shape.chips));
    }
    return kernel;
  };
  const auto count = static_cast<std::int32_t>(layers);
  for (std::int32_t layer = 0; layer < count; ++layer) {
    add_dense("dense_", layer);
    if (layer > 0) b.read(layer, {layer - 1});
  }
  b.backward();
  for (std::int32_t layer = count - 1; layer >= 0; --layer) {
    const std::int32_t kernel = add_dense("gradient_", layer);
    if (layer < count - 1) b.read(kernel, {kernel - 1});
  }
  const double elements = static_cast<double>(shape.width) * static_cast<double>(shape.micro_batch);
  for (std::int32_t layer = count - 1; layer >= 0; --layer) {
    const std::int32_t kernel =
        b.gradient("parameters_" + std::to_string(layer + 1),
                   {1, shape.width, shape.micro_batch, shape.width}, KernelDim::none, elements);
    if (layer > 0) b.read(kernel, {layer - 1});
    if (layer < count - 1) b.read(kernel, {2 * count - 2 - layer});
  }
  return b.take();
}

KernelGraph linpack_iterations(const LinpackShape& shape) {
  Builder b(shape.word_bytes);
  for (std::int64_t i = 0; i < shape.iterations; ++i) {
    const std::int64_t left = shape.side - i * shape.block;
    const double elements = static_cast<double>(left) * static_cast<double>(shape.block);
    const std::int32_t kernel = b.gemm("iteration_" + std::to_string(i + 1),
                                       {1, left, left, shape.block}, KernelDim::none, elements);
    b.send(KernelTransfer::broadcast, elements * shape.word_bytes);
    b.send(KernelTransfer::point_to_point, elements * shape.word_bytes);
    if (i > 0) b.read(kernel, {kernel - 1});
  }
  return b.take();
}

KernelGraph fourier_steps(const FourierShape& shape) {
  Builder b(shape.word_bytes);
  const double side = std::floor(std::sqrt(shape.points));
  const auto radix = static_cast<double>(shape.radix);
  const double depth = std::max(1.0, std::floor(4 * std::log2(side) / std::log2(radix) * radix));
  const Builder::Size size{1, static_cast<std::int64_t>(side), static_cast<std::int64_t>(depth),
                           static_cast<std::int64_t>(side)};
  b.layer("step_1", size, KernelDim::none);
  const std::int32_t second = b.layer("step_2", size, KernelDim::none);
  b.send(KernelTransfer::all_to_all, side * side * shape.word_bytes);
  b.read(second, {0});
  return b.take();
}

}  // namespace braid
