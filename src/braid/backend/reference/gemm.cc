#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/backend/reference/plain_gemm.h"
#include "braid/base/index.h"
#include "braid/program/einsum_equation.h"
#include "braid/program/numbers.h"

// GEMMs.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

struct RealMatrix {
  std::vector<double> numbers;
  Shape shape;
};

/// NumPy's matmul: stacks of matrices, broadcast; a vector is a row on the left and a column on the
/// right.
RealMatrix matrix_product(const NodeCall& call, const RealMatrix& left, const RealMatrix& right) {
  Shape a = left.shape;
  Shape b = right.shape;
  if (a.empty() || b.empty()) call.fail("an operand has no dimensions");
  const bool is_row = a.size() == 1;
  const bool is_column = b.size() == 1;
  if (is_row) a.insert(a.begin(), 1);
  if (is_column) b.push_back(1);
  const std::int64_t m = a[a.size() - 2];
  const std::int64_t k = a.back();
  const std::int64_t n = b.back();
  if (b[b.size() - 2] != k) {
    call.fail(fmt::format("{} and {} do not fit", shape_text(left.shape), shape_text(right.shape)));
  }
  const Shape a_stack(a.begin(), a.end() - 2);
  const Shape b_stack(b.begin(), b.end() - 2);
  Shape out = call.broadcast(a_stack, b_stack);
  const auto a_places = broadcast_places(a_stack, out);
  const auto b_places = broadcast_places(b_stack, out);
  std::vector<double> product(a_places.size() * at(m * n), 0.0);
  for (std::size_t i = 0; i < a_places.size(); ++i) {
    add_product(m, n, k, left.numbers.data() + a_places[i] * m * k,
                right.numbers.data() + b_places[i] * k * n, product.data() + i * at(m * n));
  }
  if (!is_row) out.push_back(m);
  if (!is_column) out.push_back(n);
  return {std::move(product), std::move(out)};
}

Tensors matmul(const NodeCall& call) {
  call.need_inputs(2, 2);
  const RealMatrix product =
      matrix_product(call, {call.reals(0), call.shape(0)}, {call.reals(1), call.shape(1)});
  return {tensor_of(call.type(0), product.shape, product.numbers)};
}

/// The numbers of operand `i` less the zero point in operand `zero`: one for all or, where
/// `by_row`, one for each row (of the left factor) or column (of the right one).
RealMatrix less_zero(const NodeCall& call, std::size_t i, std::size_t zero, bool by_row) {
  RealMatrix result{call.reals(i), call.shape(i)};
  if (!call.has(zero)) return result;
  const std::vector<double> zeros = call.reals(zero);
  Shape strides(result.shape.size(), 0);
  if (zeros.size() != 1) {
    const std::size_t from_end = by_row ? 2 : 1;
    if (strides.size() < from_end ||
        result.shape[strides.size() - from_end] != static_cast<std::int64_t>(zeros.size())) {
      call.fail(fmt::format("zero points of the shape {} do not fit {}",
                            shape_text(call.shape(zero)), shape_text(result.shape)));
    }
    strides[strides.size() - from_end] = 1;
  }
  const auto places = strided_places(result.shape, strides);
  for (std::size_t e = 0; e < places.size(); ++e) result.numbers[e] -= zeros[at(places[e])];
  return result;
}

Tensors matmul_integer(const NodeCall& call) {
  call.need_inputs(2, 4);
  const RealMatrix product =
      matrix_product(call, less_zero(call, 0, 2, true), less_zero(call, 1, 3, false));
  return {tensor_of(ElementType::i32, product.shape, product.numbers)};
}

Tensors qlinear_matmul(const NodeCall& call) {
  call.need_inputs(8, 8);
  RealMatrix product =
      matrix_product(call, less_zero(call, 0, 2, true), less_zero(call, 3, 5, false));
  // Scales of rows and columns are those of the product's.
  const auto scaled = [&](std::size_t scale, std::size_t from_end) {
    const std::vector<double> scales = call.reals(scale);
    Shape strides(product.shape.size(), 0);
    if (scales.size() != 1) {
      if (strides.size() < from_end ||
          product.shape[strides.size() - from_end] != static_cast<std::int64_t>(scales.size())) {
        call.fail("scales do not fit");
      }
      strides[strides.size() - from_end] = 1;
    }
    const auto places = strided_places(product.shape, strides);
    for (std::size_t e = 0; e < places.size(); ++e) product.numbers[e] *= scales[at(places[e])];
  };
  scaled(1, 2);
  scaled(4, 1);
  const double scale = call.scalar(6);
  const double zero = call.scalar(7);
  const ElementType to = call.type(7);
  for (double& each : product.numbers) {
    each = std::clamp(std::nearbyint(each / scale) + zero, static_cast<double>(least_of(to)),
                      static_cast<double>(greatest_of(to)));
  }
  return {tensor_of(to, product.shape, product.numbers)};
}

RealMatrix transposed_if(const NodeCall& call, std::size_t i, bool transposes) {
  call.need_rank(i, 2, 2);
  RealMatrix matrix{call.reals(i), call.shape(i)};
  if (!transposes) return matrix;
  const std::int64_t rows = matrix.shape[0];
  const std::int64_t columns = matrix.shape[1];
  std::vector<double> turned(matrix.numbers.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      turned[at(c * rows + r)] = matrix.numbers[at(r * columns + c)];
    }
  }
  return {std::move(turned), {columns, rows}};
}

Tensors gemm(const NodeCall& call) {
  call.need_inputs(2, 3);
  RealMatrix product = matrix_product(call, transposed_if(call, 0, call.flag("transA", false)),
                                      transposed_if(call, 1, call.flag("transB", false)));
  const double alpha = call.real("alpha", 1);
  for (double& each : product.numbers) each *= alpha;
  if (call.has(2)) {
    if (call.broadcast(call.shape(2), product.shape) != product.shape) {
      call.fail(fmt::format("{} cannot be added to {}", shape_text(call.shape(2)),
                            shape_text(product.shape)));
    }
    const double beta = call.real("beta", 1);
    const std::vector<double> added = call.reals(2);
    const auto places = broadcast_places(call.shape(2), product.shape);
    for (std::size_t e = 0; e < places.size(); ++e) {
      product.numbers[e] += beta * added[at(places[e])];
    }
  }
  return {tensor_of(call.type(0), product.shape, product.numbers)};
}

/// Where one term's element lies: that of the result's index plus that of the summed letters'.
struct TermPlaces {
  std::vector<double> numbers;
  std::vector<std::int64_t> starts, offsets;
};

TermPlaces term_places(const NodeCall& call, std::size_t i, const std::string& term,
                       const std::string& letters, const Shape& all, std::size_t kept) {
  const Shape own = row_major_strides(call.shape(i));
  Shape strides(all.size(), 0);
  for (std::size_t d = 0; d < own.size(); ++d) {
    if (call.shape(i)[d] != 1) strides[letters.find(term[d])] += own[d];
  }
  const std::span<const std::int64_t> sizes(all), steps(strides);
  return {call.reals(i), strided_places(sizes.first(kept), steps.first(kept)),
          strided_places(sizes.subspan(kept), steps.subspan(kept))};
}

/// Sums of products over all letters that the result does not have.
Tensors einsum(const NodeCall& call) {
  call.need_inputs(1, std::size_t{1} << 10U);
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < call.input_count(); ++i) shapes.push_back(call.shape(i));
  const EinsumEquation equation = einsum_equation(
      call.text("equation", ""), shapes, [&](const std::string& message) { call.fail(message); });
  std::string letters = equation.output;
  for (const char letter : equation.signs()) {
    if (letters.find(letter) == std::string::npos) letters += letter;
  }
  Shape all;
  for (const char letter : letters) all.push_back(equation.size(letter));
  const std::size_t kept = equation.output.size();
  const Shape out(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<TermPlaces> terms;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    terms.push_back(term_places(call, i, equation.operands[i], letters, all, kept));
  }
  const std::size_t summed = terms.front().offsets.size();
  std::vector<double> sums(at(element_count(out)), 0.0);
  for (std::size_t r = 0; r < sums.size(); ++r) {
    for (std::size_t e = 0; e < summed; ++e) {
      double product = 1;
      for (const TermPlaces& term : terms) {
        product *= term.numbers[at(term.starts[r] + term.offsets[e])];
      }
      sums[r] += product;
    }
  }
  return {tensor_of(call.type(0), out, sums)};
}

constexpr std::array<ReferenceEntry, 5> gemm_entries{{
    {"Einsum", einsum},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
}};

}  // namespace

std::span<const ReferenceEntry> gemm_kernels() { return gemm_entries; }

}  // namespace braid
