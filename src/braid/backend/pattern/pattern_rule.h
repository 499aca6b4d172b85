#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "braid/backend/pattern/pattern.h"

namespace braid {

/// Nodes of a graph, ascending.
using NodeList = std::vector<std::int32_t>;

/// What a compiler of kernels can fuse: patterns that are too many to be listed (Jeon 2024, section
/// 2.3.1, pattern rules).
struct PatternRule {
  /// The operator rule: whether a kernel may begin with a node, and be it alone.
  std::function<bool(const OpGraph&, std::int32_t node)> takes;
  /// The fusion rule: whether a kernel of `nodes` may have `more` as well, those on the ways from
  /// its last node to the post-dominator of that, which is the last of `more`.
  std::function<bool(const OpGraph&, const NodeList& nodes, const NodeList& more)> fuses;
  /// The verifier, asked last; empty: all are right.
  std::function<bool(const OpGraph&, const NodeList& nodes)> verifies = {};
  /// Movements that one of the nodes alone reads are also taken into the kernel.
  bool absorbs_movements = false;
  std::size_t most_nodes = 256;
};

/// What a rule generates for a graph, by last node and then by size: from each node that it takes
/// on, the kernel grows from post-dominator to post-dominator, with all that lies on the ways
/// between them, as long as the rule fuses; each step is a match. Example: for relu(conv + x) and a
/// rule that fuses all, {conv}, {add}, {relu}, {conv, add}, {add, relu}, {conv, add, relu}.
/// Matches are convex, and no other node reads any but the last. Inputs and constants are leaves.
std::vector<PatternMatch> generated_matches(const OpGraph& graph, const PatternRule& rule);

/// TVM's rule as Collage has it for AutoTVM, by operator_class() of the first node: behind what is
/// fusable may follow what works element by element, behind what does so movements as well, behind
/// movements the same; reductions and what is opaque stay alone. The last node is held to that like
/// the inner ones, as the published program does, so that no reduction is fused.
PatternRule tvm_pattern_rule();

}  // namespace braid
