#include "braid/backend/eigen/eigen_backend.h"

#include <memory>
#include <string>
#include <utility>

#include <Eigen/Core>

#include "braid/backend/kernel/gemm_spec.h"

namespace braid {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMatrix = Eigen::Map<const RowMajor>;
using OutMatrix = Eigen::Map<RowMajor>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;
using OutArray = Eigen::Map<Eigen::ArrayXf>;

class EigenProduct : public ComputeKernel {
 public:
  explicit EigenProduct(const KernelJob& job) : spec_(*gemm_spec(job)), operands_(job) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    const float* a = operands_.reals(inputs, spec_.a);
    const float* b = operands_.reals(inputs, spec_.b);
    const float* bias = spec_.bias < 0 ? nullptr : operands_.reals(inputs, spec_.bias);
    float* out = output.as<float>().data();
    for (std::int64_t i = 0; i < spec_.batch; ++i) {
      OutMatrix to(out + i * spec_.m * spec_.n, spec_.m, spec_.n);
      multiply(a + i * spec_.m * spec_.k, spec_.shares_b ? b : b + i * spec_.k * spec_.n, to);
      if (spec_.added == GemmSpec::Added::row) {
        to.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(bias, spec_.n);
      } else if (spec_.added == GemmSpec::Added::matrix) {
        to += ConstMatrix(bias + i * spec_.m * spec_.n, spec_.m, spec_.n);
      }
      if (spec_.relu) to = to.cwiseMax(0.0F);
    }
  }

 private:
  void multiply(const float* a, const float* b, OutMatrix& to) const {
    const ConstMatrix left(a, spec_.transposes_a ? spec_.k : spec_.m,
                           spec_.transposes_a ? spec_.m : spec_.k);
    const ConstMatrix right(b, spec_.transposes_b ? spec_.n : spec_.k,
                            spec_.transposes_b ? spec_.k : spec_.n);
    if (spec_.transposes_a && spec_.transposes_b) {
      to.noalias() = left.transpose() * right.transpose();
    } else if (spec_.transposes_a) {
      to.noalias() = left.transpose() * right;
    } else if (spec_.transposes_b) {
      to.noalias() = left * right.transpose();
    } else {
      to.noalias() = left * right;
    }
  }

  GemmSpec spec_;
  Operands operands_;
};

/// `Function::of(a, b, out)` for tensors of one shape.
template <typename Function>
class EigenPointwise : public ComputeKernel {
 public:
  explicit EigenPointwise(const KernelJob& job) : operands_(job), leaves_(job.leaves) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    const std::int64_t count = output.count();
    const ConstArray a(operands_.reals(inputs, leaves_.front()), count);
    const ConstArray b(operands_.reals(inputs, leaves_.back()), count);
    OutArray out(output.as<float>().data(), count);
    Function::of(a, b, out);
  }

 private:
  Operands operands_;
  std::vector<ValueId> leaves_;
};

struct EigenSum {
  static void of(const ConstArray& a, const ConstArray& b, OutArray& out) { out = a + b; }
};
struct EigenProductOf {
  static void of(const ConstArray& a, const ConstArray& b, OutArray& out) { out = a * b; }
};
struct EigenRelu {
  static void of(const ConstArray& a, const ConstArray&, OutArray& out) { out = a.max(0.0F); }
};
struct EigenSumRelu {
  static void of(const ConstArray& a, const ConstArray& b, OutArray& out) {
    out = (a + b).max(0.0F);
  }
};

bool has_one_shape(const KernelJob& job) {
  for (const ValueId leaf : job.leaves) {
    if (job.form(leaf) != job.output_form()) return false;
  }
  return job.output_form().type == ElementType::f32;
}

template <typename Function>
BackendPattern pointwise_pattern(const std::string& name, Pattern pattern) {
  return {name,
          std::move(pattern),
          has_one_shape,
          [](const KernelJob& job) {
            return std::unique_ptr<ComputeKernel>(std::make_unique<EigenPointwise<Function>>(job));
          },
          KernelLayouts{},
          true};
}

}  // namespace

FoundBackend eigen_backend(const BackendOptions&) {
  const auto number = [](int part) { return std::to_string(part); };
  Backend backend{"eigen",
                  number(EIGEN_WORLD_VERSION) + "." + number(EIGEN_MAJOR_VERSION) + "." +
                      number(EIGEN_MINOR_VERSION),
                  {}};
  for (NamedPattern& each : gemm_patterns()) {
    backend.patterns.push_back({std::move(each.name), std::move(each.pattern),
                                [](const KernelJob& job) { return gemm_spec(job).has_value(); },
                                [](const KernelJob& job) -> std::unique_ptr<ComputeKernel> {
                                  return std::make_unique<EigenProduct>(job);
                                }});
  }
  const Pattern sum = pattern("Add", {any(), any()});
  backend.patterns.push_back(pointwise_pattern<EigenSum>("Add", sum));
  backend.patterns.push_back(
      pointwise_pattern<EigenProductOf>("Mul", pattern("Mul", {any(), any()})));
  backend.patterns.push_back(pointwise_pattern<EigenRelu>("Relu", pattern("Relu", {any()})));
  backend.patterns.push_back(pointwise_pattern<EigenSumRelu>("Add+relu", pattern("Relu", {sum})));
  return {"eigen", std::move(backend), {}};
}

}  // namespace braid
