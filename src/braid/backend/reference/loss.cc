#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/backend/reference/rows.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Losses against the classes that are right.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

/// Negative log likelihood of `log_probabilities` [N, C, …] for the classes in operand 1 [N, …],
/// weighted by class (operand 2); classes of `ignore_index` count nothing.
DenseTensor likelihood_loss(const NodeCall& call, const std::vector<double>& log_probabilities) {
  const Shape& in = call.shape(0);
  Shape rows = in;
  rows.erase(rows.begin() + 1);
  if (call.shape(1) != rows) {
    call.fail(fmt::format("classes of the shape {} do not fit {}", shape_text(call.shape(1)),
                          shape_text(in)));
  }
  const std::vector<std::int64_t> classes = call.integers(1);
  std::vector<double> weights(at(in[1]), 1.0);
  if (call.has(2)) {
    if (call.input(2).count() != in[1]) call.fail("its weights do not fit its classes");
    weights = call.reals(2);
  }
  std::vector<bool> is_axis(in.size(), false);
  is_axis[1] = true;
  const RowPlaces places = row_places(in, is_axis);
  const bool ignores = call.has_attribute("ignore_index");
  const std::int64_t ignored = call.integer("ignore_index", 0);
  std::vector<double> losses(classes.size(), 0.0);
  double weight = 0;
  for (std::size_t row = 0; row < classes.size(); ++row) {
    if (ignores && classes[row] == ignored) continue;
    if (classes[row] < 0 || classes[row] >= in[1]) {
      call.fail(fmt::format("the class {} does not lie in {}", classes[row], in[1]));
    }
    const double own = weights[at(classes[row])];
    losses[row] =
        -own * log_probabilities[at(places.starts[row] + places.offsets[at(classes[row])])];
    weight += own;
  }
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return tensor_of(call.type(0), rows, losses);
  double sum = 0;
  for (const double each : losses) sum += each;
  if (reduction == "mean") sum /= weight;
  return tensor_of(call.type(0), {}, std::vector<double>{sum});
}

Tensors negative_log_likelihood(const NodeCall& call) {
  call.need_inputs(2, 3);
  call.need_rank(0, 2, 64);
  return {likelihood_loss(call, call.reals(0))};
}

Tensors softmax_cross_entropy(const NodeCall& call) {
  call.need_inputs(2, 3);
  call.need_rank(0, 2, 64);
  std::vector<bool> is_axis(call.rank(0), false);
  is_axis[1] = true;
  std::vector<double> numbers = call.reals(0);
  change_rows(numbers, row_places(call.shape(0), is_axis), [](std::vector<double>& row) {
    double most = row.front();
    for (const double each : row) most = std::max(most, each);
    double sum = 0;
    for (const double each : row) sum += std::exp(each - most);
    for (double& each : row) each -= most + std::log(sum);
  });
  return {likelihood_loss(call, numbers), tensor_of(call.type(0), call.shape(0), numbers)};
}

constexpr std::array<ReferenceEntry, 2> loss_entries{{
    {"NegativeLogLikelihoodLoss", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
}};

}  // namespace

std::span<const ReferenceEntry> loss_kernels() { return loss_entries; }

}  // namespace braid
