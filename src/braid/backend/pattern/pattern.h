#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/backend/pattern/op_graph.h"

namespace braid {

/// What a backend's kernel computes, as an expression over what it reads (Jeon 2024, section 2.3.1;
/// the language is that of Relay's patterns).
///
///   // relu(conv(x, w) + b), in any order of the sum:
///   pattern("Relu", {commutative("Add", {pattern("Conv", {any(), constant()}), any()})});
struct Pattern {
  enum class Kind : std::uint8_t {
    any,       ///< Any expression, also a constant: the kernel reads it.
    constant,  ///< A constant, which the kernel reads.
    operation,
    tuple,
    projection,
  };
  Kind kind = Kind::any;
  std::string operation;
  std::vector<Pattern> args;  ///< As many as the operator's operands; those left out match `none`.
  bool commutes = false;      ///< Two operands match in either order.
  std::int32_t index = 0;     ///< Of projections.
  /// The node must have these with these values.
  std::vector<Attribute> attributes;
  /// The node may have more operands than `args`, which the kernel reads.
  bool takes_more = false;

  friend bool operator==(const Pattern&, const Pattern&);
};

Pattern any();
Pattern constant();
Pattern pattern(std::string operation, std::vector<Pattern> args);
Pattern commutative(std::string operation, std::vector<Pattern> args);
Pattern tuple_of(std::vector<Pattern> fields);
Pattern projection(std::int32_t index, Pattern from);

/// "Relu(Add(Conv(*, const), *))", as a key and for people.
std::string pattern_text(const Pattern& pattern);

/// A pattern's place in a graph.
struct PatternMatch {
  /// What the kernel computes, in the pattern's post-order; the root is the last.
  std::vector<std::int32_t> nodes;
  /// What it reads, in the pattern's order: a node for each `any` and `constant`.
  std::vector<std::int32_t> leaves;

  friend bool operator==(const PatternMatch&, const PatternMatch&) = default;
};

/// Whether a wildcard has matched what the kernel itself computes, as in m + m with m = a · b: true
/// to the pattern, but no kernel has such an operand.
bool reads_itself(const PatternMatch& match);

/// Every way in which `pattern` matches with its result at `root`, without repetitions. Matches
/// through which no kernel can be run are left out: those where a path leaves the matched nodes and
/// comes back, and those where another node reads one of them that is not the root, or it is an
/// output.
/// Cost: nodes of the pattern, doubled for each commutative one, and the edges between its nodes
/// for the paths.
class PatternMatcher {
 public:
  explicit PatternMatcher(const OpGraph& graph);

  std::vector<PatternMatch> matches(const Pattern& pattern, std::int32_t root) const;

 private:
  bool is_single_exit(const PatternMatch& match) const;
  bool is_convex(const PatternMatch& match) const;

  const OpGraph* graph_;
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace braid
