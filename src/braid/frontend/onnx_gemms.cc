#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

bool is_weight(const OnnxNodeView& node, std::size_t input) {
  return node.input(input).source == OnnxValue::Source::initializer;
}

Dims leading(const Dims& dims) { return {dims.begin(), dims.end() - 2}; }

/// batch × [m × k]·[k × n] of operands `a` and `b` of a node, as numpy.matmul defines it.
MatMul gemm(OnnxNodeView& node, std::size_t a, std::size_t b, OnnxType type) {
  node.need_rank(a, 1, 1 << 10);
  node.need_rank(b, 1, 1 << 10);
  Dims left = node.dims(a);
  Dims right = node.dims(b);
  const bool left_is_vector = left.size() == 1;
  const bool right_is_vector = right.size() == 1;
  if (left_is_vector) left.insert(left.begin(), 1);
  if (right_is_vector) right.push_back(1);
  MatMul matmul{.batch = 1, .m = left[left.size() - 2], .n = right.back(), .k = left.back()};
  if (right[right.size() - 2] != matmul.k) {
    node.fail(fmt::format("the inner sizes of {} and {} differ", text_of(node.dims(a)),
                          text_of(node.dims(b))));
  }
  Dims out = node.broadcast(leading(left), leading(right));
  matmul.batch = node.product(out);
  matmul.weight = is_weight(node, a) || is_weight(node, b);
  if (matmul.batch > 0 && node.product(leading(right)) == 1) {
    // One right operand for all rows.
    matmul.m = node.times(matmul.m, matmul.batch);
    matmul.batch = 1;
  }
  if (!left_is_vector) out.push_back(left[left.size() - 2]);
  if (!right_is_vector) out.push_back(right.back());
  if (is_weight(node, a) && !is_weight(node, b)) std::swap(matmul.m, matmul.n);
  node.set(0, type, std::move(out));
  return matmul;
}

std::optional<OperatorKind> matmul(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  return gemm(node, 0, 1, node.type(0));
}

std::optional<OperatorKind> matmul_integer(OnnxNodeView& node) {
  node.need_inputs(2, 4);
  node.not_trained(2);
  node.not_trained(3);
  return gemm(node, 0, 1, OnnxType::i32);
}

std::optional<OperatorKind> qlinear_matmul(OnnxNodeView& node) {
  node.need_inputs(8, 8);
  for (const std::size_t scale : {1, 2, 4, 5, 6, 7}) node.not_trained(scale);
  return gemm(node, 0, 3, node.type(7));
}

std::optional<OperatorKind> gemm(OnnxNodeView& node) {
  node.need_inputs(2, 3);
  node.need_rank(0, 2, 2);
  node.need_rank(1, 2, 2);
  Dims a = node.dims(0);
  Dims b = node.dims(1);
  if (node.integer("transA", 0) != 0) std::swap(a[0], a[1]);
  if (node.integer("transB", 0) != 0) std::swap(b[0], b[1]);
  if (a[1] != b[0]) {
    node.fail(fmt::format("the inner sizes of {} and {} differ", text_of(a), text_of(b)));
  }
  const Dims out{a[0], b[1]};
  if (node.has(2) && node.broadcast(out, node.dims(2)) != out) {
    node.fail(fmt::format("{} cannot be added to {}", text_of(node.dims(2)), text_of(out)));
  }
  node.set(0, node.type(0), out);
  MatMul kind{.batch = 1, .m = a[0], .n = b[1], .k = a[1]};
  kind.weight = is_weight(node, 0) || is_weight(node, 1);
  kind.bias = node.has(2);
  if (is_weight(node, 0) && !is_weight(node, 1)) std::swap(kind.m, kind.n);
  return kind;
}

/// The sizes of an Einsum's letters, and what its operands and output are made of.
struct Subscripts {
  std::vector<std::string> operands;
  std::string output;
  std::array<std::int64_t, 128> sizes{};  ///< By letter; 0 where there is none.
};

std::size_t index(char letter) { return static_cast<unsigned char>(letter); }

/// `letters` with "..." written out as one sign for each of the `rank` dimensions left, the same
/// signs counted from the end in all operands.
std::string written_out(const OnnxNodeView& node, const std::string& letters, std::size_t rank) {
  const std::size_t dots = letters.find("...");
  if (dots == std::string::npos) return letters;
  constexpr std::size_t signs = 26;
  const std::size_t named = letters.size() - 3;
  if (rank < named || rank - named > signs) {
    node.fail("the subscripts of its equation do not fit its operands");
  }
  std::string left;
  for (std::size_t d = rank - named; d > 0; --d) left += static_cast<char>(d);
  return letters.substr(0, dots) + left + letters.substr(dots + 3);
}

bool is_subscript(char sign) {
  return (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= 1 && sign <= 26);
}

/// The operands' subscripts of an equation.
std::vector<std::string> split_operands(const std::string& left) {
  std::vector<std::string> operands;
  for (std::size_t at = 0; at <= left.size();) {
    const std::size_t end = std::min(left.find(',', at), left.size());
    operands.push_back(left.substr(at, end - at));
    at = end + 1;
  }
  return operands;
}

Subscripts parse_equation(const OnnxNodeView& node) {
  std::string equation = node.text("equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  Subscripts parsed{.operands = split_operands(equation.substr(0, arrow)), .output = {}};
  if (parsed.operands.size() != node.input_count()) {
    node.fail("its equation does not name as many operands as it has");
  }
  std::array<int, 128> seen{};
  std::size_t most_left = 0;
  for (std::size_t i = 0; i < parsed.operands.size(); ++i) {
    std::string& letters = parsed.operands[i];
    const bool has_dots = letters.find("...") != std::string::npos;
    if (has_dots && node.rank(i) + 3 > letters.size()) {
      most_left = std::max(most_left, node.rank(i) + 3 - letters.size());
    }
    letters = written_out(node, letters, node.rank(i));
    if (letters.size() != node.rank(i)) {
      node.fail(fmt::format("the subscripts of operand {} do not fit its shape {}", i,
                            text_of(node.dims(i))));
    }
    for (std::size_t d = 0; d < letters.size(); ++d) {
      if (!is_subscript(letters[d])) node.fail("its equation has other signs than letters");
      const std::size_t letter = index(letters[d]);
      const std::int64_t size = node.dims(i)[d];
      std::int64_t& known = parsed.sizes[letter];
      const bool is_first = seen[letter]++ == 0;
      if (is_first || known == 1) {
        known = size;
      } else if (known != size && size != 1) {
        node.fail(fmt::format("one of its subscripts has the sizes {} and {}", known, size));
      }
    }
  }
  if (arrow != std::string::npos) {
    const std::string output = equation.substr(arrow + 2);
    const std::size_t named = output.find("...") == std::string::npos ? 0 : output.size() - 3;
    parsed.output = written_out(node, output, named + most_left);
  } else {
    for (std::size_t sign = 26; sign > 0; --sign) {
      if (seen[sign] > 0) parsed.output += static_cast<char>(sign);
    }
    for (std::size_t letter = 'A'; letter < seen.size(); ++letter) {
      if (seen[letter] == 1) parsed.output += static_cast<char>(letter);
    }
  }
  for (const char letter : parsed.output) {
    if (index(letter) >= seen.size() || seen[index(letter)] == 0) {
      node.fail("its output has a subscript that no operand has");
    }
  }
  return parsed;
}

std::optional<OperatorKind> einsum(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  const Subscripts subscripts = parse_equation(node);
  Dims out;
  for (const char letter : subscripts.output) out.push_back(subscripts.sizes[index(letter)]);
  node.set(0, node.type(0), out);
  if (node.input_count() == 1) return Reduction{node.elements(0)};
  // Letters of both operands and the output count batches, of both only are summed over.
  MatMul kind;
  kind.weight = is_weight(node, 0) || is_weight(node, 1);
  const auto has = [](const std::string& letters, char letter) {
    return letters.find(letter) != std::string::npos;
  };
  std::string letters = subscripts.operands[0] + subscripts.operands[1];
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  for (const char letter : letters) {
    const bool left = has(subscripts.operands[0], letter);
    const bool right = has(subscripts.operands[1], letter);
    const bool kept = has(subscripts.output, letter);
    std::int64_t& side = left && right ? (kept ? kind.batch : kind.k)
                         : !kept       ? kind.k
                         : left        ? kind.m
                                       : kind.n;
    side = node.times(side, subscripts.sizes[index(letter)]);
  }
  if (is_weight(node, 0) && !is_weight(node, 1)) std::swap(kind.m, kind.n);
  return kind;
}

constexpr std::array<OnnxRuleEntry, 5> gemm_rules{{
    {"Einsum", einsum},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_gemm_rules() { return gemm_rules; }

}  // namespace braid
