#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// The dimension of a tensor along which its writer's output features lie: what tensor parallelism
/// divides it by.
struct FeatureAxis {
  int axis = -1;           ///< Index into Tensor::dims; -1: not known.
  std::int64_t count = 0;  ///< Parts of equal size along it; ranks must divide it.
  friend bool operator==(const FeatureAxis&, const FeatureAxis&) = default;
};

/// For each tensor. GEMMs, convolutions, look-ups and attention set it; what works element by
/// element, pools, views and concatenates carries it on where sizes leave no doubt. Linear in the
/// graph.
std::vector<FeatureAxis> feature_axes(const Graph& graph);

/// Ways to divide `op` evenly over `ranks` tensor-parallel ranks: DFModel's outer (heads, groups of
/// channels), M (column, or features of elementwise work), K (row) and none, its N being the rows
/// that are streamed; look-ups also by entries of their table and a loss by its logits. An operator
/// that needs sizes that are not known, or of which no way is known, is done by every rank. What
/// the graph itself says is one of the ways wherever ranks divide it (vocabularies are padded), and
/// the only one for experts and for `fixed` operators. First comes `replicated` or `sequence`
/// where there is a choice.
std::vector<Split> operator_splits(const Graph& graph, const Operator& op, LayerId layer,
                                   const std::vector<FeatureAxis>& features, int ranks, bool fixed);

}  // namespace braid
