#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// Appends operators to a Graph in topological order, layer by layer.
///
///     GraphBuilder builder("name", seq_len);
///     builder.begin_layer("embedding");
///     TensorId x = builder.embedding("embed", vocab, hidden, tokens);
///     …
///     Graph graph = builder.finish({x});
class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::int64_t seq_len);

  void begin_layer(std::string name);

  TensorId input(std::string name, std::vector<std::int64_t> dims, Dtype dtype);
  TensorId parameter(std::string name, std::vector<std::int64_t> dims);

  /// Adds an operator with one output of the given shape and returns it. Parameters go after the
  /// activations in `inputs`.
  TensorId add(std::string name, OperatorKind kind, std::vector<TensorId> inputs,
               std::vector<std::int64_t> output_dims, Split split);

  /// [rows × k] by a new weight [k × n] (and bias [n]).
  TensorId linear(const std::string& name, TensorId x, std::int64_t rows, std::int64_t k,
                  std::int64_t n, bool bias, Split split);
  /// Normalisation of [rows × width] with a scale (and a shift unless rms).
  TensorId norm(const std::string& name, TensorId x, std::int64_t rows, std::int64_t width,
                bool rms);
  /// Sum of two tensors of one shape.
  TensorId residual(const std::string& name, TensorId a, TensorId b, std::int64_t rows,
                    std::int64_t width);

  /// Ends the graph and marks repeated layers.
  Graph finish(std::vector<TensorId> outputs);

 private:
  Graph graph_;
};

}  // namespace braid
