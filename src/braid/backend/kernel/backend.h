#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/kernel/kernel_job.h"

namespace braid {

/// A job made ready to run: weights packed, library objects created. Not for use by several threads
/// at once.
class ComputeKernel {
 public:
  ComputeKernel() = default;
  ComputeKernel(const ComputeKernel&) = delete;
  ComputeKernel& operator=(const ComputeKernel&) = delete;
  virtual ~ComputeKernel() = default;

  /// Computes the output, which has its type and shape already, from the region's inputs in their
  /// order. Tensors are row-major. Throws Error when the library fails.
  virtual void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) = 0;
};

/// A kernel of a backend and what it can be made for.
struct BackendPattern {
  std::string name;
  Pattern pattern;
  /// Whether a match can be run: types, shapes and attributes that the library takes. Cheap.
  std::function<bool(const KernelJob&)> accepts;
  /// Precondition: `accepts`. nullptr where the library itself refuses.
  std::function<std::unique_ptr<ComputeKernel>(const KernelJob&)> make;
};

/// A library that computes operators.
struct Backend {
  std::string name;
  std::string version;  ///< Of the library as it is loaded.
  std::vector<BackendPattern> patterns;
};

/// A backend, or why there is none: it was not there when braid was built, or its library is not
/// there now.
struct FoundBackend {
  std::string name;
  std::optional<Backend> backend;
  std::string missing;
};

struct BackendOptions {
  int threads = 1;  ///< That a kernel may use.
};

}  // namespace braid
