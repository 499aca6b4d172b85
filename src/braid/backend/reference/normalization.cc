#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/backend/reference/rows.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Normalisations of rows, softmax among them.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;
using Row = std::vector<double>;

std::vector<bool> axes_from(std::size_t rank, std::size_t first) {
  std::vector<bool> is_axis(rank, false);
  std::fill(is_axis.begin() + static_cast<std::ptrdiff_t>(first), is_axis.end(), true);
  return is_axis;
}

/// Shifts a row so that its greatest element is 0.
void shift_to_zero(Row& row) {
  const double most = *std::max_element(row.begin(), row.end());
  for (double& each : row) each -= most;
}

void make_log_softmax(Row& row) {
  shift_to_zero(row);
  double sum = 0;
  for (const double each : row) sum += std::exp(each);
  for (double& each : row) each -= std::log(sum);
}

void make_softmax(Row& row) {
  shift_to_zero(row);
  double sum = 0;
  for (double& each : row) sum += each = std::exp(each);
  for (double& each : row) each /= sum;
}

/// 1 at the first of the greatest elements.
void make_hardmax(Row& row) {
  const auto most = std::max_element(row.begin(), row.end()) - row.begin();
  std::fill(row.begin(), row.end(), 0.0);
  row[at(most)] = 1;
}

/// Rows are all dimensions from `axis` on before version 13, and only that one since.
template <void (*change)(Row&)>
Tensors softmax_kernel(const NodeCall& call) {
  call.need_inputs(1, 1);
  const bool flattens = call.opset() < 13;
  const std::size_t rank = call.rank(0);
  if (rank == 0) call.fail("its input has no dimensions");
  const std::int64_t otherwise =
      flattens ? std::min<std::int64_t>(1, static_cast<std::int64_t>(rank) - 1) : -1;
  const std::size_t axis = call.axis(call.integer("axis", otherwise), rank);
  std::vector<bool> is_axis = axes_from(rank, axis);
  if (!flattens) {
    is_axis.assign(rank, false);
    is_axis[axis] = true;
  }
  std::vector<double> numbers = call.reals(0);
  if (!numbers.empty()) change_rows(numbers, row_places(call.shape(0), is_axis), change);
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

struct Moments {
  double mean = 0, variance = 0;
};

/// Of all elements; the variance is that of the elements themselves, not of a sample.
Moments moments_of(const Row& row) {
  Moments moments;
  for (const double each : row) moments.mean += each;
  moments.mean /= static_cast<double>(row.size());
  for (const double each : row) {
    moments.variance += (each - moments.mean) * (each - moments.mean);
  }
  moments.variance /= static_cast<double>(row.size());
  return moments;
}

void standardize(Row& row, double epsilon) {
  const Moments moments = moments_of(row);
  const double scale = 1 / std::sqrt(moments.variance + epsilon);
  for (double& each : row) each = (each - moments.mean) * scale;
}

/// numbers · scale + shift, for operands that are broadcast after `shape` (as NumPy does), or that
/// have one number for each index of dimension 1.
class AffineOperands {
 public:
  AffineOperands(const NodeCall& call, const Shape& shape) : call_(&call), shape_(&shape) {}

  void by_broadcast(std::size_t operand, bool scales, std::vector<double>& numbers) const {
    if (!call_->has(operand)) return;
    const Shape& in = call_->shape(operand);
    if (call_->broadcast(in, *shape_) != *shape_) {
      call_->fail(fmt::format("{} does not fit {}", shape_text(in), shape_text(*shape_)));
    }
    apply(operand, scales, broadcast_places(in, *shape_), numbers);
  }

  void by_channel(std::size_t operand, bool scales, std::vector<double>& numbers) const {
    Shape strides(shape_->size(), 0);
    const std::int64_t channels = shape_->size() > 1 ? (*shape_)[1] : 1;
    if (call_->input(operand).count() != channels) {
      call_->fail(
          fmt::format("{} does not fit {} channels", shape_text(call_->shape(operand)), channels));
    }
    if (shape_->size() > 1) strides[1] = 1;
    apply(operand, scales, strided_places(*shape_, strides), numbers);
  }

 private:
  void apply(std::size_t operand, bool scales, const std::vector<std::int64_t>& places,
             std::vector<double>& numbers) const {
    const std::vector<double> factors = call_->reals(operand);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double factor = factors[at(places[i])];
      numbers[i] = scales ? numbers[i] * factor : numbers[i] + factor;
    }
  }

  const NodeCall* call_;
  const Shape* shape_;
};

std::vector<bool> all_but_channels(std::size_t rank) {
  std::vector<bool> is_axis(rank, true);
  if (rank > 1) is_axis[1] = false;
  return is_axis;
}

/// With stored statistics; in training mode with the batch's own, which also move the stored ones.
Tensors batch_normalization(const NodeCall& call) {
  call.need_inputs(5, 5);
  call.need_rank(0, 1, 64);
  const double epsilon = call.real("epsilon", 1e-5);
  std::vector<double> numbers = call.reals(0);
  std::vector<double> means = call.reals(3);
  std::vector<double> variances = call.reals(4);
  const RowPlaces channels = row_places(call.shape(0), all_but_channels(call.rank(0)));
  if (means.size() != channels.starts.size() || variances.size() != means.size()) {
    call.fail(fmt::format("its statistics do not fit {} channels", channels.starts.size()));
  }
  const bool training = call.flag("training_mode", false);
  std::vector<double> running_means = means;
  std::vector<double> running_variances = variances;
  if (training) {
    const double momentum = call.real("momentum", 0.9);
    const std::vector<Moments> own = reduced_rows(numbers, channels, moments_of);
    for (std::size_t c = 0; c < own.size(); ++c) {
      means[c] = own[c].mean;
      variances[c] = own[c].variance;
      running_means[c] = momentum * running_means[c] + (1 - momentum) * own[c].mean;
      running_variances[c] = momentum * running_variances[c] + (1 - momentum) * own[c].variance;
    }
  }
  std::size_t channel = 0;
  change_rows(numbers, channels, [&](Row& row) {
    const double scale = 1 / std::sqrt(variances[channel] + epsilon);
    for (double& each : row) each = (each - means[channel]) * scale;
    ++channel;
  });
  const AffineOperands affine(call, call.shape(0));
  affine.by_channel(1, true, numbers);
  affine.by_channel(2, false, numbers);
  Tensors results{tensor_of(call.type(0), call.shape(0), numbers)};
  if (training) {
    results.push_back(tensor_of(call.type(3), call.shape(3), running_means));
    results.push_back(tensor_of(call.type(4), call.shape(4), running_variances));
  }
  return results;
}

Tensors instance_normalization(const NodeCall& call) {
  call.need_inputs(3, 3);
  call.need_rank(0, 3, 64);
  const double epsilon = call.real("epsilon", 1e-5);
  std::vector<double> numbers = call.reals(0);
  change_rows(numbers, row_places(call.shape(0), axes_from(call.rank(0), 2)),
              [&](Row& row) { standardize(row, epsilon); });
  const AffineOperands affine(call, call.shape(0));
  affine.by_channel(1, true, numbers);
  affine.by_channel(2, false, numbers);
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

/// Scale and bias have a number for each group in version 18 and for each channel since 21.
Tensors group_normalization(const NodeCall& call) {
  call.need_inputs(3, 3);
  call.need_rank(0, 3, 64);
  const double epsilon = call.real("epsilon", 1e-5);
  const std::int64_t groups = call.need_integer("num_groups");
  const Shape& in = call.shape(0);
  if (groups < 1 || in[1] % groups != 0) {
    call.fail(fmt::format("{} groups do not divide {} channels", groups, in[1]));
  }
  std::vector<double> numbers = call.reals(0);
  const std::int64_t rows = in[0] * groups;
  const Shape as_rows{rows, rows > 0 ? call.input(0).count() / rows : 0};
  change_rows(numbers, row_places(as_rows, {false, true}),
              [&](Row& row) { standardize(row, epsilon); });
  const Shape by_group{in[0], groups, rows > 0 ? as_rows[1] : 0};
  const bool each_channel = call.input(1).count() == in[1];
  const AffineOperands affine(call, each_channel ? in : by_group);
  affine.by_channel(1, true, numbers);
  affine.by_channel(2, false, numbers);
  return {tensor_of(call.type(0), in, numbers)};
}

struct NormalizedRows {
  std::vector<double> numbers;
  DenseTensor means, reciprocals;  ///< The mean and the reciprocal deviation of each row.
};

NormalizedRows normalized_rows(const NodeCall& call, bool rms, std::vector<double> numbers) {
  const Shape& shape = call.shape(0);
  const std::size_t axis = call.axis(call.integer("axis", -1), shape.size());
  const double epsilon = call.real("epsilon", 1e-5);
  std::vector<double> means, reciprocals;
  change_rows(numbers, row_places(shape, axes_from(shape.size(), axis)), [&](Row& row) {
    Moments moments = moments_of(row);
    if (rms) moments.variance += moments.mean * moments.mean;
    if (rms) moments.mean = 0;
    means.push_back(moments.mean);
    reciprocals.push_back(1 / std::sqrt(moments.variance + epsilon));
    for (double& each : row) each = (each - moments.mean) * reciprocals.back();
  });
  Shape statistics = shape;
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  return {std::move(numbers), tensor_of(ElementType::f32, statistics, means),
          tensor_of(ElementType::f32, statistics, reciprocals)};
}

Tensors layer_norm(const NodeCall& call) {
  call.need_inputs(1, 3);
  NormalizedRows rows = normalized_rows(call, false, call.reals(0));
  const AffineOperands affine(call, call.shape(0));
  affine.by_broadcast(1, true, rows.numbers);
  affine.by_broadcast(2, false, rows.numbers);
  return {tensor_of(call.type(0), call.shape(0), rows.numbers), rows.means, rows.reciprocals};
}

/// Without a mean; output 1 is the reciprocal deviation.
Tensors rms_norm(const NodeCall& call) {
  call.need_inputs(1, 2);
  NormalizedRows rows = normalized_rows(call, true, call.reals(0));
  const AffineOperands affine(call, call.shape(0));
  affine.by_broadcast(1, true, rows.numbers);
  return {tensor_of(call.type(0), call.shape(0), rows.numbers), rows.reciprocals};
}

/// y = norm(input + skip + bias), and as output 3 the sum. Operands: input, skip, gamma, and with a
/// mean beta; then bias.
Tensors skip_normalization(const NodeCall& call, bool rms) {
  call.need_inputs(3, 5);
  std::vector<double> sum = call.reals(0);
  const AffineOperands affine(call, call.shape(0));
  affine.by_broadcast(1, false, sum);
  affine.by_broadcast(rms ? 3 : 4, false, sum);
  DenseTensor added = tensor_of(call.type(0), call.shape(0), sum);
  NormalizedRows rows = normalized_rows(call, rms, std::move(sum));
  affine.by_broadcast(2, true, rows.numbers);
  if (!rms) affine.by_broadcast(3, false, rows.numbers);
  return {tensor_of(call.type(0), call.shape(0), rows.numbers), rows.means, rows.reciprocals,
          std::move(added)};
}

Tensors skip_layer_norm(const NodeCall& call) { return skip_normalization(call, false); }
Tensors skip_rms_norm(const NodeCall& call) { return skip_normalization(call, true); }

/// Over `size` neighbouring channels (Krizhevsky et al. 2012, section 3.3).
Tensors local_response(const NodeCall& call) {
  call.need_inputs(1, 1);
  call.need_rank(0, 2, 64);
  const std::int64_t size = call.need_integer("size");
  if (size < 1) call.fail(fmt::format("its size is {}", size));
  const double alpha = call.real("alpha", 1e-4);
  const double beta = call.real("beta", 0.75);
  const double bias = call.real("bias", 1);
  std::vector<bool> is_axis(call.rank(0), false);
  is_axis[1] = true;
  std::vector<double> numbers = call.reals(0);
  change_rows(numbers, row_places(call.shape(0), is_axis), [&](Row& row) {
    const Row before = row;
    const auto channels = static_cast<std::int64_t>(row.size());
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t last = std::min(channels - 1, c + size / 2);
      double squares = 0;
      for (std::int64_t i = std::max<std::int64_t>(0, c - (size - 1) / 2); i <= last; ++i) {
        squares += before[at(i)] * before[at(i)];
      }
      row[at(c)] /= std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
    }
  });
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

Tensors mean_variance(const NodeCall& call) {
  call.need_inputs(1, 1);
  Shape axes{0, 2, 3};
  if (const auto* given = call.integers("axes")) axes = *given;
  std::vector<double> numbers = call.reals(0);
  // ONNX's own definition adds 1e-9 to the deviation.
  change_rows(numbers, row_places(call.shape(0), call.axes(axes, call.rank(0))), [](Row& row) {
    const Moments moments = moments_of(row);
    for (double& each : row) each = (each - moments.mean) / (std::sqrt(moments.variance) + 1e-9);
  });
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

Tensors lp_normalization(const NodeCall& call) {
  call.need_inputs(1, 1);
  const bool absolute = call.integer("p", 2) == 1;
  std::vector<bool> is_axis(call.rank(0), false);
  is_axis[call.axis(call.integer("axis", -1), call.rank(0))] = true;
  std::vector<double> numbers = call.reals(0);
  change_rows(numbers, row_places(call.shape(0), is_axis), [&](Row& row) {
    double sum = 0;
    for (const double each : row) sum += absolute ? std::abs(each) : each * each;
    const double norm = absolute ? sum : std::sqrt(sum);
    for (double& each : row) each = norm == 0 ? 0 : each / norm;
  });
  return {tensor_of(call.type(0), call.shape(0), numbers)};
}

constexpr std::array<ReferenceEntry, 14> normalization_entries{{
    {"BatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},
    {"Hardmax", softmax_kernel<make_hardmax>},
    {"InstanceNormalization", instance_normalization},
    {"LRN", local_response},
    {"LayerNormalization", layer_norm},
    {"LogSoftmax", softmax_kernel<make_log_softmax>},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance},
    {"RMSNormalization", rms_norm},
    {"SimplifiedLayerNormalization", rms_norm},
    {"SkipLayerNormalization", skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", skip_rms_norm},
    {"Softmax", softmax_kernel<make_softmax>},
}};

}  // namespace

std::span<const ReferenceEntry> normalization_kernels() { return normalization_entries; }

}  // namespace braid
