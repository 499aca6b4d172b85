#include "braid/base/loaded_blas.h"

#include <array>
#include <cstdint>
#include <string>

#include <dlfcn.h>

namespace braid {
namespace {

struct KnownBlas {
  const char* name;
  const char* file;
  const char* set_threads;
  bool is_64_bits;  ///< The type of the number of threads.
};

constexpr std::array kKnown = {
    KnownBlas{"OpenBLAS", "libopenblas.so.0", "openblas_set_num_threads", false},
    KnownBlas{"BLIS", "libblis.so.4", "bli_thread_set_num_threads", true},
};

/// Null where it is not loaded.
void* loaded_library(const char* file) { return ::dlopen(file, RTLD_NOW | RTLD_NOLOAD); }

}  // namespace

LoadedBlas loaded_blas() {
  for (const KnownBlas& each : kKnown) {
    if (loaded_library(each.file) != nullptr) return {each.name, false};
  }
  void* const library = loaded_library("libblas.so.3");
  void* const gemm = library == nullptr ? nullptr : ::dlsym(library, "sgemm_");
  Dl_info found{};
  if (gemm == nullptr || ::dladdr(gemm, &found) == 0) return {};
  // MKL and ATLAS answer for libblas.so.3 by libraries of other names.
  const std::string path = found.dli_fname;
  const std::size_t name = path.rfind('/') + 1;
  const bool is_atlas = path.find("/atlas/") != std::string::npos;
  return {path, !is_atlas && path.compare(name, 10, "libblas.so") == 0};
}

void set_blas_threads(int threads) {
  for (const KnownBlas& each : kKnown) {
    void* const library = loaded_library(each.file);
    if (library == nullptr) continue;
    void* const set = ::dlsym(library, each.set_threads);
    if (set == nullptr) continue;
    if (each.is_64_bits) {
      reinterpret_cast<void (*)(std::int64_t)>(set)(threads);
    } else {
      reinterpret_cast<void (*)(int)>(set)(threads);
    }
  }
}

}  // namespace braid
