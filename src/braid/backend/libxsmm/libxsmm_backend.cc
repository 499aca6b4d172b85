#include "braid/backend/libxsmm/libxsmm_backend.h"

#include <utility>

#include <libxsmm.h>

#include "braid/backend/kernel/gemm_spec.h"

namespace braid {
namespace {

/// Code is made for m·n·k up to this, as the library itself advises (64³ to 128³).
constexpr std::int64_t most_multiplications = std::int64_t{128} * 128 * 128;

bool is_small(const KernelJob& job) {
  const auto spec = gemm_spec(job);
  return spec && !spec->transposes_a && !spec->transposes_b &&
         spec->m * spec->n * spec->k <= most_multiplications;
}

class LibxsmmKernel : public ComputeKernel {
 public:
  LibxsmmKernel(libxsmm_smmfunction multiply, const KernelJob& job)
      : multiply_(multiply), spec_(*gemm_spec(job)), operands_(job) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    const std::span<float> out = output.as<float>();
    const float* a = operands_.reals(inputs, spec_.a);
    const float* b = operands_.reals(inputs, spec_.b);
    write_addend(spec_, operands_, inputs, out);
    for (std::int64_t i = 0; i < spec_.batch; ++i) {
      // The library counts columns first: row-major A·B is its B·A.
      multiply_(spec_.shares_b ? b : b + i * spec_.k * spec_.n, a + i * spec_.m * spec_.k,
                out.data() + i * spec_.m * spec_.n);
    }
    apply_relu(spec_, out);
  }

 private:
  libxsmm_smmfunction multiply_;
  GemmSpec spec_;
  Operands operands_;
};

std::unique_ptr<ComputeKernel> libxsmm_product(const KernelJob& job) {
  const GemmSpec spec = *gemm_spec(job);
  const auto m = static_cast<libxsmm_blasint>(spec.m);
  const auto n = static_cast<libxsmm_blasint>(spec.n);
  const auto k = static_cast<libxsmm_blasint>(spec.k);
  const float alpha = 1;
  const float beta = spec.added == GemmSpec::Added::nothing ? 0 : 1;
  const libxsmm_smmfunction multiply =
      libxsmm_smmdispatch(n, m, k, &n, &k, &n, &alpha, &beta, nullptr, nullptr);
  if (multiply == nullptr) return nullptr;
  return std::make_unique<LibxsmmKernel>(multiply, job);
}

}  // namespace

FoundBackend libxsmm_backend(const BackendOptions&) {
  libxsmm_init();
  Backend backend{"libxsmm", LIBXSMM_VERSION, {}};
  for (NamedPattern& each : gemm_patterns()) {
    backend.patterns.push_back(
        {std::move(each.name), std::move(each.pattern), is_small, libxsmm_product});
  }
  return {"libxsmm", std::move(backend), {}};
}

}  // namespace braid
