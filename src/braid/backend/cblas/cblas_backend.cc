#include "braid/backend/cblas/cblas_backend.h"

#include <limits>
#include <string>

#include "braid/backend/kernel/gemm_spec.h"
#include "braid/backend/kernel/shared_library.h"

namespace braid {
namespace {

/// The interface to C of the BLAS (Blackford et al. 2002), with whole numbers of 32 bits.
using Sgemm = void (*)(int order, int transposes_a, int transposes_b, int m, int n, int k,
                       float alpha, const float* a, int row_a, const float* b, int row_b,
                       float beta, float* c, int row_c);
constexpr int row_major = 101, as_it_is = 111, transposed = 112;

bool fits_in_int(const GemmSpec& spec) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return spec.m <= most && spec.n <= most && spec.k <= most;
}

class CblasKernel : public ComputeKernel {
 public:
  CblasKernel(Sgemm sgemm, const KernelJob& job)
      : sgemm_(sgemm), spec_(*gemm_spec(job)), operands_(job) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    const std::span<float> out = output.as<float>();
    write_addend(spec_, operands_, inputs, out);
    const auto m = static_cast<int>(spec_.m);
    const auto n = static_cast<int>(spec_.n);
    const auto k = static_cast<int>(spec_.k);
    const float* a = operands_.reals(inputs, spec_.a);
    const float* b = operands_.reals(inputs, spec_.b);
    const float beta = spec_.added == GemmSpec::Added::nothing ? 0 : 1;
    for (std::int64_t i = 0; i < spec_.batch; ++i) {
      sgemm_(row_major, spec_.transposes_a ? transposed : as_it_is,
             spec_.transposes_b ? transposed : as_it_is, m, n, k, 1, a + i * spec_.m * spec_.k,
             spec_.transposes_a ? m : k, spec_.shares_b ? b : b + i * spec_.k * spec_.n,
             spec_.transposes_b ? k : n, beta, out.data() + i * spec_.m * spec_.n, n);
    }
    apply_relu(spec_, out);
  }

 private:
  Sgemm sgemm_;
  GemmSpec spec_;
  Operands operands_;
};

struct CblasLibrary {
  std::string name, file_name, set_threads, get_version, package;
};

/// `Count` is what the library takes a number of threads as.
template <typename Count>
FoundBackend found_cblas(const CblasLibrary& library, const BackendOptions& options) {
  const SharedLibrary loaded(library.file_name);
  const auto sgemm = loaded.function<Sgemm>("cblas_sgemm");
  const auto set_threads = loaded.function<void (*)(Count)>(library.set_threads.c_str());
  const auto version = loaded.function<const char* (*)()>(library.get_version.c_str());
  if (sgemm == nullptr || set_threads == nullptr || version == nullptr) {
    const std::string problem =
        loaded.is_loaded() ? library.file_name + " lacks a function" : loaded.problem();
    return {library.name, std::nullopt, problem + "; install " + library.package};
  }
  set_threads(options.threads);
  Backend backend{library.name, version(), {}};
  const auto accepts = [](const KernelJob& job) {
    const auto spec = gemm_spec(job);
    return spec && fits_in_int(*spec);
  };
  const auto make = [sgemm](const KernelJob& job) -> std::unique_ptr<ComputeKernel> {
    return std::make_unique<CblasKernel>(sgemm, job);
  };
  for (NamedPattern& each : gemm_patterns()) {
    backend.patterns.push_back({std::move(each.name), std::move(each.pattern), accepts, make});
  }
  return {library.name, std::move(backend), {}};
}

}  // namespace

FoundBackend openblas_backend(const BackendOptions& options) {
  return found_cblas<int>({"openblas", "libopenblas.so.0", "openblas_set_num_threads",
                           "openblas_get_config", "libopenblas0-pthread"},
                          options);
}

FoundBackend blis_backend(const BackendOptions& options) {
  return found_cblas<std::int64_t>({"blis", "libblis.so.4", "bli_thread_set_num_threads",
                                    "bli_info_get_version_str", "libblis4"},
                                   options);
}

}  // namespace braid
