#include "braid/backend/xnnpack/xnnpack_kernels.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "braid/backend/kernel/convolution_spec.h"
#include "braid/backend/kernel/pooling_spec.h"
#include "braid/base/error.h"
#include "braid/program/node_call.h"

namespace braid {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t u32(std::int64_t number) { return static_cast<std::uint32_t>(number); }
std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }

void check_xnnpack(xnn_status status, const char* what) {
  if (status == xnn_status_success) return;
  throw Error(std::string("XNNPACK fails to ") + what);
}

/// An operator of the library and what it belongs to.
class XnnpackKernel : public ComputeKernel {
 public:
  XnnpackKernel(Xnnpack library, xnn_operator_t op, const KernelJob& job)
      : library_(std::move(library)), op_(op), operands_(job), leaves_(job.leaves) {}
  ~XnnpackKernel() override { library_->destroy(op_); }

 protected:
  const XnnpackFunctions& library() const { return *library_; }
  xnn_operator_t op() const { return op_; }
  const float* leaf(std::span<const DenseTensor* const> inputs, std::size_t i) const {
    return operands_.reals(inputs, leaves_[i]);
  }
  void run_operator() const {
    check_xnnpack(library_->run(op_, library_->pool), "run an operator");
  }

 private:
  Xnnpack library_;
  xnn_operator_t op_;
  Operands operands_;
  std::vector<ValueId> leaves_;
};

class ProductKernel : public XnnpackKernel {
 public:
  ProductKernel(Xnnpack library, xnn_operator_t op, const KernelJob& job, std::int64_t rows)
      : XnnpackKernel(std::move(library), op, job), rows_(rows) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    check_xnnpack(library().setup_product(op(), size(rows_), leaf(inputs, 0),
                                          output.as<float>().data(), library().pool),
                  "set a GEMM up");
    run_operator();
  }

 private:
  std::int64_t rows_;
};

/// One over images, which are channels last or are turned so, computed, and turned back.
template <typename Setup>
class ImageKernel : public XnnpackKernel {
 public:
  ImageKernel(Xnnpack library, xnn_operator_t op, const KernelJob& job, Setup setup, bool turns)
      : XnnpackKernel(std::move(library), op, job),
        in_(job.leaf_form(0).shape),
        out_(job.output_form().shape),
        in_numbers_(ElementType::f32, turns ? in_ : Shape{0}),
        out_numbers_(ElementType::f32, turns ? out_ : Shape{0}),
        setup_(setup),
        turns_(turns) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    const float* x = turns_ ? in_numbers_.as<float>().data() : leaf(inputs, 0);
    float* y = (turns_ ? out_numbers_ : output).template as<float>().data();
    if (turns_) {
      exchange_inner(leaf(inputs, 0), in_numbers_.as<float>().data(),
                     {in_[0], in_[1], in_[2] * in_[3]});
    }
    check_xnnpack(setup_(op(), size(in_[0]), size(in_[2]), size(in_[3]), x, y, library().pool),
                  "set an operator up");
    run_operator();
    if (turns_) exchange_inner(y, output.as<float>().data(), {out_[0], out_[2] * out_[3], out_[1]});
  }

 private:
  Shape in_, out_;
  DenseTensor in_numbers_, out_numbers_;
  Setup setup_;
  bool turns_;
};

template <typename Setup>
class PointwiseKernel : public XnnpackKernel {
 public:
  PointwiseKernel(Xnnpack library, xnn_operator_t op, const KernelJob& job, Setup setup,
                  std::int64_t rows)
      : XnnpackKernel(std::move(library), op, job), setup_(setup), rows_(rows) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    check_xnnpack(
        setup_(op(), size(rows_), leaf(inputs, 0), output.as<float>().data(), library().pool),
        "set an operator up");
    run_operator();
  }

 private:
  Setup setup_;
  std::int64_t rows_;
};

template <typename Setup>
class SumKernel : public XnnpackKernel {
 public:
  SumKernel(Xnnpack library, xnn_operator_t op, const KernelJob& job, Setup setup)
      : XnnpackKernel(std::move(library), op, job),
        a_(job.leaf_form(0).shape.begin(), job.leaf_form(0).shape.end()),
        b_(job.leaf_form(1).shape.begin(), job.leaf_form(1).shape.end()),
        setup_(setup) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    check_xnnpack(setup_(op(), a_.size(), a_.data(), b_.size(), b_.data(), leaf(inputs, 0),
                         leaf(inputs, 1), output.as<float>().data(), library().pool),
                  "set an operator up");
    run_operator();
  }

 private:
  std::vector<std::size_t> a_, b_;
  Setup setup_;
};

bool is_image(const TensorForm& form) {
  return form.type == ElementType::f32 && form.shape.size() == 4 && form.count() > 0;
}

bool has_padding_inside(const SlidingWindow& window) {
  for (std::size_t d = 0; d < window.in.size(); ++d) {
    const std::int64_t extent = window.dilations[d] * (window.kernel[d] - 1) + 1;
    const std::int64_t covered = window.in[d] + window.before[d] + window.after[d];
    // What ceil_mode adds behind the padding, and padding that cuts off, the library has not.
    if ((window.out[d] - 1) * window.strides[d] + extent > covered) return false;
    if (window.before[d] < 0 || window.after[d] < 0) return false;
  }
  return true;
}

/// [channels, inner, positions] as [channels, positions, inner].
std::vector<float> channels_innermost(const DenseTensor& weight) {
  const Shape& shape = weight.shape;
  std::vector<float> turned(size(weight.count()));
  exchange_inner(weight.as<float>().data(), turned.data(),
                 {shape[0], shape[1], shape[2] * shape[3]});
  return turned;
}

}  // namespace

bool xnnpack_takes_product(const KernelJob& job) {
  const auto spec = gemm_spec(job);
  if (!spec || spec->batch != 1 || spec->transposes_a) return false;
  const auto constant = [&](ValueId value) {
    return job.region.values[static_cast<std::size_t>(value)].constant != nullptr;
  };
  if (!constant(spec->b) || spec->added == GemmSpec::Added::matrix || spec->a != job.leaves[0]) {
    return false;
  }
  return spec->added == GemmSpec::Added::nothing || constant(spec->bias);
}

std::unique_ptr<ComputeKernel> xnnpack_product(const Xnnpack& library, const KernelJob& job) {
  const GemmSpec spec = *gemm_spec(job);
  const Operands operands(job);
  const float* bias = spec.bias < 0 ? nullptr : operands.reals({}, spec.bias);
  xnn_operator_t op = nullptr;
  const xnn_status status = library->create_product(
      size(spec.k), size(spec.n), size(spec.k), size(spec.n), operands.reals({}, spec.b), bias,
      spec.relu ? 0 : -infinity, infinity, spec.transposes_b ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS, &op);
  if (status != xnn_status_success) return nullptr;
  return std::make_unique<ProductKernel>(library, op, job, spec.m);
}

bool xnnpack_takes_convolution(const KernelJob& job) {
  if (!is_image(job.leaf_form(0))) return false;
  const auto spec = convolution_spec(job);
  return spec && spec->residual < 0 && spec->x == job.leaves[0] && has_padding_inside(spec->window);
}

std::unique_ptr<ComputeKernel> xnnpack_convolution(const Xnnpack& library, const KernelJob& job,
                                                   ImageLayout layout) {
  const ConvolutionSpec spec = *convolution_spec(job);
  const SlidingWindow& w = spec.window;
  const Operands operands(job);
  const auto weights =
      channels_innermost(*job.region.values[static_cast<std::size_t>(spec.weight)].constant);
  const float* bias = spec.bias < 0 ? nullptr : operands.reals({}, spec.bias);
  xnn_operator_t op = nullptr;
  const xnn_status status = library->create_convolution(
      u32(w.before[0]), u32(w.after[1]), u32(w.after[0]), u32(w.before[1]), u32(w.kernel[0]),
      u32(w.kernel[1]), u32(w.strides[0]), u32(w.strides[1]), u32(w.dilations[0]),
      u32(w.dilations[1]), u32(spec.groups), size(spec.in_channels / spec.groups),
      size(spec.out_channels / spec.groups), size(spec.in_channels), size(spec.out_channels),
      weights.data(), bias, spec.relu ? 0 : -infinity, infinity, 0, &op);
  if (status != xnn_status_success) return nullptr;
  return std::make_unique<ImageKernel<decltype(library->setup_convolution)>>(
      library, op, job, library->setup_convolution, layout == ImageLayout::plain);
}

bool xnnpack_takes_max_pooling(const KernelJob& job) {
  if (!is_image(job.leaf_form(0))) return false;
  const auto spec = pooling_spec(job);
  return spec && has_padding_inside(spec->window) && element_count(spec->window.kernel) > 1;
}

std::unique_ptr<ComputeKernel> xnnpack_max_pooling(const Xnnpack& library, const KernelJob& job,
                                                   ImageLayout layout) {
  const SlidingWindow w = pooling_spec(job)->window;
  const std::size_t channels = size(job.leaf_form(0).shape[1]);
  xnn_operator_t op = nullptr;
  const xnn_status status = library->create_max_pooling(
      u32(w.before[0]), u32(w.after[1]), u32(w.after[0]), u32(w.before[1]), u32(w.kernel[0]),
      u32(w.kernel[1]), u32(w.strides[0]), u32(w.strides[1]), u32(w.dilations[0]),
      u32(w.dilations[1]), channels, channels, channels, -infinity, infinity, 0, &op);
  if (status != xnn_status_success) return nullptr;
  return std::make_unique<ImageKernel<decltype(library->setup_max_pooling)>>(
      library, op, job, library->setup_max_pooling, layout == ImageLayout::plain);
}

bool xnnpack_takes_unary(const KernelJob& job) {
  return job.leaf_form(0).type == ElementType::f32 && job.leaf_form(0).count() > 0 &&
         !job.leaf_form(0).shape.empty();
}

bool xnnpack_takes_softmax(const KernelJob& job) {
  if (!xnnpack_takes_unary(job)) return false;
  const NodeCall call(job.region, job.region.nodes.front(), {});
  const std::size_t rank = job.leaf_form(0).shape.size();
  return call.axis(call.integer("axis", call.opset() < 13 ? 1 : -1), rank) + 1 == rank;
}

std::unique_ptr<ComputeKernel> xnnpack_unary(const Xnnpack& library, const KernelJob& job) {
  const std::string& operation = job.region.nodes.front().operation;
  const Shape& shape = job.leaf_form(0).shape;
  const std::int64_t width = shape.back();
  const std::int64_t rows = element_count(shape) / width;
  xnn_operator_t op = nullptr;
  xnn_status status = xnn_status_success;
  if (operation == "Relu") {
    status = library->create_clamp(size(width), size(width), size(width), 0, infinity, 0, &op);
  } else if (operation == "Sigmoid") {
    status = library->create_sigmoid(size(width), size(width), size(width), 0, &op);
  } else {
    status = library->create_softmax(size(width), size(width), size(width), 0, &op);
  }
  if (status != xnn_status_success) return nullptr;
  const auto setup = operation == "Relu"      ? library->setup_clamp
                     : operation == "Sigmoid" ? library->setup_sigmoid
                                              : library->setup_softmax;
  return std::make_unique<PointwiseKernel<decltype(library->setup_clamp)>>(library, op, job, setup,
                                                                           rows);
}

bool xnnpack_takes_binary(const KernelJob& job) {
  const auto fits = [](const TensorForm& form) {
    return form.type == ElementType::f32 && form.count() > 0 &&
           form.shape.size() <= XNN_MAX_TENSOR_DIMS;
  };
  return fits(job.leaf_form(0)) && fits(job.leaf_form(1));
}

std::unique_ptr<ComputeKernel> xnnpack_binary(const Xnnpack& library, const KernelJob& job) {
  const bool adds = job.region.nodes.front().operation == "Add";
  xnn_operator_t op = nullptr;
  const xnn_status status = adds ? library->create_add(-infinity, infinity, 0, &op)
                                 : library->create_multiply(-infinity, infinity, 0, &op);
  if (status != xnn_status_success) return nullptr;
  const auto setup = adds ? library->setup_add : library->setup_multiply;
  return std::make_unique<SumKernel<decltype(library->setup_add)>>(library, op, job, setup);
}

}  // namespace braid
