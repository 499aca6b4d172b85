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
///     TensorId tokens = builder.input("tokens", {seq_len}, Dtype::i64);
///     TensorId table = builder.parameter("embedding.weight", {vocab, hidden});
///     TensorId x = builder.embedding("embedding", tokens, table, vocab, hidden, seq_len);
///     …
///     Graph graph = builder.finish({x});
class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::int64_t seq_len);

  void begin_layer(std::string name);

  TensorId input(std::string name, std::vector<std::int64_t> dims, Dtype dtype);
  TensorId parameter(std::string name, std::vector<std::int64_t> dims);
  /// From now on parameters whose names begin with `prefix` are those that stand under `owner` in
  /// its place. Nothing is shared any more when both are empty.
  void share_parameters(std::string prefix, std::string owner);

  /// Adds an operator with one output of the given shape and returns it. Parameters go after the
  /// activations in `inputs`.
  TensorId add(std::string name, OperatorKind kind, std::vector<TensorId> inputs,
               std::vector<std::int64_t> output_dims, Split split);

  /// [rows × k] by a new weight [k × n] (and bias [n]).
  struct LinearSize {
    std::int64_t rows, k, n;
  };
  TensorId linear(const std::string& name, TensorId x, const LinearSize& size, bool bias,
                  Split split);
  /// Normalisation of [rows × width] with a scale (and a shift unless rms).
  TensorId norm(const std::string& name, TensorId x, std::int64_t rows, std::int64_t width,
                bool rms);
  /// Sum of two tensors of one shape.
  TensorId residual(const std::string& name, TensorId a, TensorId b, std::int64_t rows,
                    std::int64_t width);

  /// A row of `table` [entries × width], split by entries, for each of `tokens` tokens.
  TensorId embedding(const std::string& name, TensorId tokens_in, TensorId table,
                     std::int64_t entries, std::int64_t width, std::int64_t tokens);
  /// x [tokens × width] plus the first rows of a new table of `positions` learned positions.
  TensorId add_positions(const std::string& name, TensorId x, std::int64_t positions,
                         std::int64_t tokens, std::int64_t width);
  TensorId dropout(const std::string& name, TensorId x, std::int64_t rows, std::int64_t width);
  /// Logits of x [tokens × width] over `vocab` entries by `weight` (and a bias unless negative),
  /// and their cross entropy.
  TensorId language_loss(TensorId x, TensorId weight, std::int64_t tokens, std::int64_t width,
                         std::int64_t vocab, TensorId bias = -1);

  /// Ends the graph and marks repeated layers.
  Graph finish(std::vector<TensorId> outputs);

 private:
  Graph graph_;
  std::string sharing_prefix_, owner_prefix_;
};

}  // namespace braid
