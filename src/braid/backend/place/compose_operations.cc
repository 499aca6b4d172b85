#include "braid/backend/place/compose_operations.h"

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "braid/backend/pattern/pattern.h"
#include "braid/base/index.h"
#include "braid/program/node_call.h"
#include "braid/program/numbers.h"

namespace braid {
namespace {

/// A match, with the values that it reads in the pattern's order.
struct MatchedParts {
  PatternMatch match;
  std::vector<ValueId> reads;
};

/// The node that stands for the parts; nullopt where their constants or shapes are others.
using ComposedNode = std::function<std::optional<ProgramNode>(const MatchedParts&)>;

struct Composition {
  Pattern pattern;
  ComposedNode node;
};

class Composing {
 public:
  explicit Composing(FixedProgram& fixed) : fixed_(fixed), program_(fixed.program) {}

  void run() {
    const ProgramOpGraph graph = op_graph_of(program_);
    const PatternMatcher matcher(graph.graph);
    for (const Composition& each : compositions()) {
      for (std::size_t root = 0; root < graph.graph.nodes.size(); ++root) {
        if (graph.program_node[root] < 0) continue;
        for (PatternMatch& match : matcher.matches(each.pattern, static_cast<std::int32_t>(root))) {
          try_to_compose(each, graph, std::move(match));
        }
      }
    }
    drop_parts();
  }

 private:
  std::vector<Composition> compositions() const {
    std::vector<Composition> all;
    for (const bool axes_are_read : {false, true}) {
      for (const bool multiplies : {false, true}) {
        all.push_back(
            {layer_norm_pattern(axes_are_read, multiplies), [=, this](const MatchedParts& parts) {
               return layer_norm(parts, axes_are_read, multiplies);
             }});
      }
    }
    for (const bool divides : {false, true}) {
      for (const GeluParts& each : gelu_parts(divides)) {
        all.push_back({each.pattern, [=, this](const MatchedParts& parts) {
                         return gelu(parts, each, divides);
                       }});
      }
    }
    return all;
  }

  /// scale · (d / √(mean(d²) + epsilon)) + shift with d = x - mean(x). Reads x four times, or six
  /// where the square is a product, an axis after each pair.
  static Pattern layer_norm_pattern(bool axes_are_read, bool multiplies) {
    const auto mean = [&](Pattern of) {
      std::vector<Pattern> args{std::move(of)};
      if (axes_are_read) args.push_back(constant());
      return pattern("ReduceMean", std::move(args));
    };
    const Pattern difference = pattern("Sub", {any(), mean(any())});
    const Pattern square = multiplies ? pattern("Mul", {difference, difference})
                                      : pattern("Pow", {difference, constant()});
    const Pattern deviation = pattern("Sqrt", {commutative("Add", {mean(square), constant()})});
    const Pattern scaled =
        commutative("Mul", {pattern("Div", {difference, deviation}), constant()});
    return commutative("Add", {scaled, constant()});
  }

  std::optional<ProgramNode> layer_norm(const MatchedParts& parts, bool axes_are_read,
                                        bool multiplies) const {
    const std::vector<ValueId>& reads = parts.reads;
    const std::size_t differences = multiplies ? 3 : 2;
    const std::size_t of_difference = axes_are_read ? 3 : 2;
    const ValueId x = reads.front();
    for (std::size_t i = 0; i < differences * of_difference; ++i) {
      if (i % of_difference < 2 && reads[i] != x) return std::nullopt;
    }
    std::size_t next = differences * of_difference;
    if (!multiplies && !is_number(reads[next++], 2)) return std::nullopt;
    if (axes_are_read) ++next;
    const std::optional<double> epsilon = number(reads[next]);
    const ValueId scale = reads[next + 1];
    const ValueId shift = reads[next + 2];
    const TensorForm& form = fixed_.forms[at(x)];
    if (!epsilon || form.type != ElementType::f32 || form.shape.empty()) return std::nullopt;
    const TensorForm row{ElementType::f32, {form.shape.back()}};
    if (fixed_.forms[at(scale)] != row || fixed_.forms[at(shift)] != row) return std::nullopt;
    for (const std::int32_t node : parts.match.nodes) {
      if (!averages_rows_if_at_all(node, form.shape.size())) return std::nullopt;
    }
    return ProgramNode{{},
                       "",
                       "LayerNormalization",
                       {x, scale, shift},
                       {},
                       {{"axis", std::int64_t{-1}}, {"epsilon", *epsilon}}};
  }

  /// A pattern of Gelu and which of the values that it reads is what.
  struct GeluParts {
    Pattern pattern;
    std::size_t x = 0, again = 0, root_of_two = 0, one = 0, half = 0;
  };

  /// Products of x, 1 + erf(x / √2) and 1/2, however they are associated.
  static std::vector<GeluParts> gelu_parts(bool divides) {
    const Pattern part =
        divides ? pattern("Div", {any(), constant()}) : commutative("Mul", {any(), constant()});
    const Pattern one_more = commutative("Add", {pattern("Erf", {part}), constant()});
    const auto product = [](Pattern a, Pattern b) {
      return commutative("Mul", {std::move(a), std::move(b)});
    };
    return {{product(product(any(), one_more), constant()), 0, 1, 2, 3, 4},
            {product(any(), product(one_more, constant())), 0, 1, 2, 3, 4},
            {product(product(any(), constant()), one_more), 0, 2, 3, 4, 1}};
  }

  std::optional<ProgramNode> gelu(const MatchedParts& parts, const GeluParts& of,
                                  bool divides) const {
    const std::vector<ValueId>& reads = parts.reads;
    const ValueId x = reads[of.x];
    const double root = std::sqrt(2.0);
    if (reads[of.again] != x || fixed_.forms[at(x)].type != ElementType::f32 ||
        !is_number(reads[of.root_of_two], divides ? root : 1 / root) ||
        !is_number(reads[of.one], 1) || !is_number(reads[of.half], 0.5)) {
      return std::nullopt;
    }
    return ProgramNode{{}, "", "Gelu", {x}, {}, {}};
  }

  /// The one element of a constant in f32; nullopt for others.
  std::optional<double> number(ValueId value) const {
    const DenseTensor* constant = program_.values[at(value)].constant.get();
    if (constant == nullptr || element_count(constant->shape) != 1) return std::nullopt;
    return numbers_of<double>(*constant).front();
  }
  /// As exporters round √2: to four digits at least.
  bool is_number(ValueId value, double wanted) const {
    constexpr double share = 1e-4;
    const std::optional<double> is = number(value);
    return is && std::abs(*is - wanted) <= share * wanted;
  }

  /// False for a mean over anything but the last of `rank` dimensions, kept.
  bool averages_rows_if_at_all(std::int32_t node, std::size_t rank) const {
    const ProgramNode& of_program = program_.nodes[at(node)];
    if (of_program.operation != "ReduceMean") return true;
    std::vector<const DenseTensor*> operands;
    for (const ValueId input : of_program.inputs) {
      operands.push_back(input < 0 ? nullptr : program_.values[at(input)].constant.get());
    }
    const NodeCall call(program_, of_program, operands);
    const std::optional<Shape> axes = call.integers_of(1, "axes");
    if (!axes || axes->size() != 1 || !call.flag("keepdims", true)) return false;
    return call.axis(axes->front(), rank) + 1 == rank;
  }

  void try_to_compose(const Composition& composition, const ProgramOpGraph& graph,
                      PatternMatch match) {
    MatchedParts parts{std::move(match), {}};
    for (const std::int32_t leaf : parts.match.leaves) {
      parts.reads.push_back(graph.program_value[at(leaf)]);
    }
    for (std::int32_t& node : parts.match.nodes) {
      node = graph.program_node[at(node)];
      if (node < 0 || !program_.nodes[at(node)].domain.empty() || is_taken_[at(node)]) return;
    }
    std::optional<ProgramNode> composed = composition.node(parts);
    if (!composed) return;
    const std::int32_t root = parts.match.nodes.back();
    composed->name = program_.nodes[at(root)].name;
    composed->outputs = program_.nodes[at(root)].outputs;
    for (const std::int32_t node : parts.match.nodes) {
      is_taken_[at(node)] = true;
      if (node == root) continue;
      is_part_[at(node)] = true;
      fixed_.reference_s[at(root)] += fixed_.reference_s[at(node)];
    }
    program_.nodes[at(root)] = std::move(*composed);
  }

  void drop_parts() {
    std::size_t kept = 0;
    for (std::size_t n = 0; n < is_part_.size(); ++n) {
      if (is_part_[n]) continue;
      if (kept != n) {
        program_.nodes[kept] = std::move(program_.nodes[n]);
        fixed_.reference_s[kept] = fixed_.reference_s[n];
      }
      ++kept;
    }
    program_.nodes.resize(kept);
    fixed_.reference_s.resize(kept);
  }

  FixedProgram& fixed_;
  Program& program_;
  std::vector<bool> is_taken_ = std::vector<bool>(program_.nodes.size(), false);
  std::vector<bool> is_part_ = is_taken_;  ///< Of a composed node, and no longer there.
};

}  // namespace

void compose_operations(FixedProgram& fixed) { Composing(fixed).run(); }

}  // namespace braid
