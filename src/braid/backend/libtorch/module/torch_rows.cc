#include <algorithm>
#include <utility>

#include "braid/backend/libtorch/module/torch_operation.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Rows of a tensor of any rank as a matrix.
at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

TorchOperation matrix_product(const TorchNode& node) {
  node.need_real(0);
  return torch_operation([](TorchOperands x) { return at::matmul(x[0], x[1]); },
                         [](TorchOperands x, at::Tensor& out) { at::matmul_out(out, x[0], x[1]); });
}

TorchOperation gemm(const TorchNode& node) {
  node.need_real(0);
  const bool turns_a = node.flag("transA", false), turns_b = node.flag("transB", false);
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const auto turned = [](const at::Tensor& x, bool turns) { return turns ? x.t() : x; };
  if (node.is_there(2)) {
    return torch_operation(
        [=](TorchOperands x) {
          return at::addmm(x[2], turned(x[0], turns_a), turned(x[1], turns_b), beta, alpha);
        },
        [=](TorchOperands x, at::Tensor& out) {
          at::addmm_out(out, x[2], turned(x[0], turns_a), turned(x[1], turns_b), beta, alpha);
        });
  }
  return torch_operation([=](TorchOperands x) {
    const at::Tensor y = at::mm(turned(x[0], turns_a), turned(x[1], turns_b));
    return alpha == 1 ? y : y * alpha;
  });
}

/// Before version 13 all dimensions from the axis on are one.
TorchOperation softmax_of(const TorchNode& node, bool logarithm) {
  node.need_real(0);
  const bool is_old = node.opset() < 13;
  const std::int64_t axis = node.axis_of(0, node.integer("axis", is_old ? 1 : -1));
  const auto rank = static_cast<std::int64_t>(node.rank_of(0));
  if (is_old && axis != rank - 1) {
    const Shape& shape = node.form(0).shape;
    const Shape rows{element_count({shape.begin(), shape.begin() + axis}), -1};
    return torch_operation([rows, logarithm, shape](TorchOperands x) {
      const at::Tensor in = x[0].reshape(rows);
      return (logarithm ? at::log_softmax(in, 1) : at::softmax(in, 1)).reshape(shape);
    });
  }
  if (logarithm) {
    return torch_operation([axis](TorchOperands x) { return at::log_softmax(x[0], axis); });
  }
  return torch_operation(
      [axis](TorchOperands x) { return at::softmax(x[0], axis); },
      [axis](TorchOperands x, at::Tensor& out) { at::_softmax_out(out, x[0], axis, false); });
}
TorchOperation softmax(const TorchNode& node) { return softmax_of(node, false); }
TorchOperation log_softmax(const TorchNode& node) { return softmax_of(node, true); }

/// The sizes of the dimensions that a normalisation goes over.
Shape normalized_sizes(const TorchNode& node) {
  const std::int64_t axis = node.axis_of(0, node.integer("axis", -1));
  const Shape& shape = node.form(0).shape;
  return {shape.begin() + axis, shape.end()};
}

TorchOperation layer_norm(const TorchNode& node) {
  node.need_one_output();
  const Shape sizes = normalized_sizes(node);
  if (node.form(1).shape != sizes) node.fail("has a scale of another shape");
  if (node.is_there(2) && node.form(2).shape != sizes) node.fail("has a shift of another shape");
  return torch_operation([sizes, epsilon = node.real("epsilon", 1e-5)](TorchOperands x) {
    return at::layer_norm(x[0], sizes, x[1], x.size() > 2 ? x[2] : at::Tensor(), epsilon);
  });
}

TorchOperation rms_norm(const TorchNode& node) {
  node.need_one_output();
  const Shape sizes = normalized_sizes(node);
  Shape axes;
  for (std::size_t d = 1; d <= sizes.size(); ++d) axes.push_back(-static_cast<std::int64_t>(d));
  return torch_operation([axes, epsilon = node.real("epsilon", 1e-5)](TorchOperands x) {
    return x[0] * (x[0].square().mean(axes, true) + epsilon).rsqrt() * x[1];
  });
}

TorchOperation batch_norm(const TorchNode& node) {
  node.need_one_output();
  if (node.flag("training_mode", false) || !node.flag("spatial", true)) node.fail("trains");
  return torch_operation([epsilon = node.real("epsilon", 1e-5)](TorchOperands x) {
    return at::batch_norm(x[0], x[1], x[2], x[3], x[4], false, 0, epsilon, false);
  });
}

TorchOperation instance_norm(const TorchNode& node) {
  return torch_operation([epsilon = node.real("epsilon", 1e-5)](TorchOperands x) {
    return at::instance_norm(x[0], x[1], x[2], {}, {}, true, 0, epsilon, false);
  });
}

/// The axes of a reduction; all where none are named.
Shape reduced_axes(const TorchNode& node) {
  node.need_constants();
  auto axes = node.integers_of(1, "axes");
  if (!axes || axes->empty()) {
    if (node.flag("noop_with_empty_axes", false)) node.fail("does nothing");
    axes.emplace();
    for (std::size_t d = 0; d < node.rank_of(0); ++d) {
      axes->push_back(static_cast<std::int64_t>(d));
    }
  }
  for (std::int64_t& each : *axes) each = node.axis_of(0, each);
  return *axes;
}

using Reduction = at::Tensor (*)(const at::Tensor&, at::IntArrayRef axes, bool keeps);

template <Reduction function>
TorchOperation reduced(const TorchNode& node) {
  node.need_real(0);
  const bool keeps = node.flag("keepdims", true);
  return torch_operation(
      [axes = reduced_axes(node), keeps](TorchOperands x) { return function(x[0], axes, keeps); });
}

at::Tensor sum_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.sum(axes, keeps);
}
at::Tensor mean_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.mean(axes, keeps);
}
at::Tensor most_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.amax(axes, keeps);
}
at::Tensor least_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.amin(axes, keeps);
}
at::Tensor squares_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.square().sum(axes, keeps);
}
at::Tensor sizes_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.abs().sum(axes, keeps);
}
at::Tensor length_over(const at::Tensor& x, at::IntArrayRef axes, bool keeps) {
  return x.square().sum(axes, keeps).sqrt();
}

}  // namespace

TorchOperation torch_linear(const at::Tensor& weight, const at::Tensor& bias) {
  return torch_operation([weight, bias](TorchOperands x) { return at::linear(x[0], weight, bias); },
                         [weight, bias](TorchOperands x, at::Tensor& out) {
                           at::Tensor rows = out.view({-1, out.size(-1)});
                           if (bias.defined()) {
                             at::addmm_out(rows, bias, as_rows(x[0]), weight.t());
                           } else {
                             at::mm_out(rows, as_rows(x[0]), weight.t());
                           }
                         });
}

TorchEntries torch_row_entries() {
  return {{"BatchNormalization", {batch_norm}},
          {"Gemm", {gemm}},
          {"InstanceNormalization", {instance_norm}},
          {"LayerNormalization", {layer_norm}},
          {"LogSoftmax", {log_softmax}},
          {"MatMul", {matrix_product}},
          {"RMSNormalization", {rms_norm}},
          {"ReduceL1", {reduced<sizes_over>}},
          {"ReduceL2", {reduced<length_over>}},
          {"ReduceMax", {reduced<most_over>}},
          {"ReduceMean", {reduced<mean_over>}},
          {"ReduceMin", {reduced<least_over>}},
          {"ReduceSum", {reduced<sum_over>}},
          {"ReduceSumSquare", {reduced<squares_over>}},
          {"Softmax", {softmax}}};
}

}  // namespace braid
