#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/backend/reference/plain_gemm.h"
#include "braid/backend/reference/window.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Convolutions as products of the weights with what lies under the kernel (im2col).

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

struct ConvolutionJob {
  std::int64_t samples = 0, in_channels = 0, out_channels = 0, groups = 1;
  SlidingWindow window;
  std::vector<double> input, weight;

  std::int64_t group_inputs() const { return in_channels / groups; }
  std::int64_t group_outputs() const { return out_channels / groups; }
};

Shape spatial_part(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

ConvolutionJob convolution_job(const NodeCall& call, std::size_t weight) {
  call.need_rank(0, 3, 8);
  call.need_rank(weight, call.rank(0), call.rank(0));
  const Shape& in = call.shape(0);
  const Shape& w = call.shape(weight);
  ConvolutionJob job;
  job.samples = in[0];
  job.in_channels = in[1];
  job.out_channels = w[0];
  job.groups = call.integer("group", 1);
  if (job.groups < 1 || w[0] % job.groups != 0 || in[1] % job.groups != 0 ||
      job.group_inputs() != w[1]) {
    call.fail(fmt::format("{} groups of {} channels do not fit a weight of the shape {}",
                          job.groups, in[1], shape_text(w)));
  }
  job.window = sliding_window(call, spatial_part(w), spatial_part(in));
  job.input = call.reals(0);
  job.weight = call.reals(weight);
  return job;
}

/// [samples, out channels, out positions].
std::vector<double> convolved(const ConvolutionJob& job) {
  const auto places = window_places(job.window);
  const std::int64_t positions = job.window.out_positions();
  const std::int64_t kernel = job.window.kernel_positions();
  const std::int64_t in_positions = job.window.in_positions();
  const std::int64_t depth = job.group_inputs() * kernel;
  std::vector<double> out(at(job.samples * job.out_channels * positions), 0.0);
  std::vector<double> columns(at(depth * positions));
  for (std::int64_t sample = 0; sample < job.samples; ++sample) {
    for (std::int64_t group = 0; group < job.groups; ++group) {
      for (std::int64_t channel = 0; channel < job.group_inputs(); ++channel) {
        const double* from =
            job.input.data() +
            (sample * job.in_channels + group * job.group_inputs() + channel) * in_positions;
        double* to = columns.data() + channel * kernel * positions;
        for (std::size_t i = 0; i < places.size(); ++i) to[i] = places[i] < 0 ? 0 : from[places[i]];
      }
      const std::int64_t first = group * job.group_outputs();
      add_product(job.group_outputs(), positions, depth, job.weight.data() + first * depth,
                  columns.data(), out.data() + (sample * job.out_channels + first) * positions);
    }
  }
  return out;
}

Shape convolution_shape(const ConvolutionJob& job) {
  Shape shape{job.samples, job.out_channels};
  shape.insert(shape.end(), job.window.out.begin(), job.window.out.end());
  return shape;
}

void add_bias(const NodeCall& call, std::size_t bias, const Shape& shape,
              std::vector<double>& numbers) {
  if (!call.has(bias)) return;
  const std::vector<double> added = call.reals(bias);
  if (static_cast<std::int64_t>(added.size()) != shape[1]) call.fail("its bias does not fit");
  Shape strides(shape.size(), 0);
  strides[1] = 1;
  const auto places = strided_places(shape, strides);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += added[at(places[i])];
}

Tensors conv(const NodeCall& call) {
  call.need_inputs(2, 3);
  const ConvolutionJob job = convolution_job(call, 1);
  std::vector<double> out = convolved(job);
  const Shape shape = convolution_shape(job);
  add_bias(call, 2, shape, out);
  return {tensor_of(call.type(0), shape, out)};
}

/// Less one zero point, or one for each output channel of a weight.
void subtract_zero(const NodeCall& call, std::size_t zero, std::int64_t channels,
                   std::vector<double>& numbers) {
  if (!call.has(zero)) return;
  const std::vector<double> zeros = call.reals(zero);
  const auto count = static_cast<std::int64_t>(zeros.size());
  if (count != 1 && count != channels) call.fail("its zero points do not fit");
  const std::size_t each = numbers.size() / zeros.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] -= zeros[i / each];
}

Tensors conv_integer(const NodeCall& call) {
  call.need_inputs(2, 4);
  ConvolutionJob job = convolution_job(call, 1);
  subtract_zero(call, 2, 1, job.input);
  subtract_zero(call, 3, job.out_channels, job.weight);
  return {tensor_of(ElementType::i32, convolution_shape(job), convolved(job))};
}

Tensors qlinear_conv(const NodeCall& call) {
  call.need_inputs(8, 9);
  ConvolutionJob job = convolution_job(call, 3);
  subtract_zero(call, 2, 1, job.input);
  subtract_zero(call, 5, job.out_channels, job.weight);
  std::vector<double> out = convolved(job);
  const Shape shape = convolution_shape(job);
  add_bias(call, 8, shape, out);  // In units of the products already.
  const std::vector<double> weight_scales = call.reals(4);
  const double in_scale = call.scalar(1);
  const double out_scale = call.scalar(6);
  const double zero = call.scalar(7);
  const ElementType to = call.type(7);
  const std::int64_t positions = job.window.out_positions();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) / positions % job.out_channels;
    const double scale = weight_scales.size() == 1 ? weight_scales[0] : weight_scales[at(channel)];
    out[i] = std::clamp(std::nearbyint(out[i] * in_scale * scale / out_scale) + zero,
                        static_cast<double>(least_of(to)), static_cast<double>(greatest_of(to)));
  }
  return {tensor_of(to, shape, out)};
}

/// Each input spreads its products with the weights over what lies under the kernel.
Tensors conv_transpose(const NodeCall& call) {
  call.need_inputs(2, 3);
  call.need_rank(0, 3, 8);
  call.need_rank(1, call.rank(0), call.rank(0));
  const Shape& in = call.shape(0);
  const Shape& w = call.shape(1);
  const std::int64_t groups = call.integer("group", 1);
  if (groups < 1 || w[0] != in[1] || in[1] % groups != 0) {
    call.fail(fmt::format("{} groups of {} channels do not fit a weight of the shape {}", groups,
                          in[1], shape_text(w)));
  }
  const SlidingWindow window = transposed_window(call, spatial_part(w), spatial_part(in));
  const auto places = window_places(window);
  const std::int64_t from_positions = window.out_positions();
  const std::int64_t to_positions = window.in_positions();
  const std::int64_t kernel = window.kernel_positions();
  const std::int64_t in_channels = in[1] / groups;
  const std::int64_t out_channels = w[1];
  const std::vector<double> input = call.reals(0);
  const std::vector<double> weight = call.reals(1);
  Shape shape{in[0], out_channels * groups};
  shape.insert(shape.end(), window.in.begin(), window.in.end());
  std::vector<double> out(at(element_count(shape)), 0.0);
  for (std::int64_t row = 0; row < in[0] * in[1]; ++row) {
    const std::int64_t sample = row / in[1];
    const std::int64_t from = row % in[1];
    const double* numbers = input.data() + row * from_positions;
    for (std::int64_t channel = 0; channel < out_channels; ++channel) {
      const std::int64_t to =
          sample * out_channels * groups + from / in_channels * out_channels + channel;
      double* sums = out.data() + to * to_positions;
      for (std::int64_t k = 0; k < kernel; ++k) {
        const double factor = weight[at((from * out_channels + channel) * kernel + k)];
        const std::int64_t* under = places.data() + k * from_positions;
        for (std::int64_t i = 0; i < from_positions; ++i) {
          if (under[i] >= 0) sums[under[i]] += factor * numbers[i];
        }
      }
    }
  }
  add_bias(call, 2, shape, out);
  return {tensor_of(call.type(0), shape, out)};
}

constexpr std::array<ReferenceEntry, 4> convolution_entries{{
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"ConvTranspose", conv_transpose},
    {"QLinearConv", qlinear_conv},
}};

}  // namespace

std::span<const ReferenceEntry> convolution_kernels() { return convolution_entries; }

}  // namespace braid
