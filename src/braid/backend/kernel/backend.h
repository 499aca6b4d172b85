#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/kernel/kernel_job.h"
#include "braid/backend/kernel/layout.h"
#include "braid/backend/pattern/pattern_rule.h"

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
  /// order. Tensors lie as the pattern's `layouts` say. Throws Error when the library fails.
  virtual void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) = 0;
  /// The same for a job of any number of outputs, which only regions have more than one of.
  virtual void run_all(std::span<const DenseTensor* const> inputs,
                       std::span<DenseTensor* const> outputs) {
    run(inputs, *outputs.front());
  }
};

/// How images lie that a kernel reads and writes: tensors of rank 4 that are no constants. Its
/// first leaf lies as `reads` says, others and the output as `writes` says; what cannot lie so is
/// plain.
struct KernelLayouts {
  ImageLayout reads = ImageLayout::plain, writes = ImageLayout::plain;
  friend bool operator==(const KernelLayouts&, const KernelLayouts&) = default;
};

/// That of something that a job reads.
ImageLayout layout_of(const KernelJob& job, ValueId input, const KernelLayouts& layouts);

/// Whether what a job reads and writes can lie like that.
bool can_lie(const KernelJob& job, const KernelLayouts& layouts);

/// A kernel of a backend and what it can be made for.
struct BackendPattern {
  std::string name;
  Pattern pattern;
  /// Whether a match can be run: types, shapes and attributes that the library takes. Cheap.
  std::function<bool(const KernelJob&)> accepts;
  /// Precondition: `accepts`. nullptr where the library itself refuses.
  std::function<std::unique_ptr<ComputeKernel>(const KernelJob&)> make;
  KernelLayouts layouts = {};
  /// Works element by element: where all operands have the output's shape (or are single numbers),
  /// it does the same in every layout.
  bool is_elementwise = false;
  /// Of regions: for whole networks alone, since their parts are kernels of the same library.
  bool is_whole_alone = false;
};

/// Kernels for all that a rule generates; their `pattern`s are not used.
struct GeneratedPatterns {
  PatternRule rule;
  std::vector<BackendPattern> patterns;
};

/// A library that computes operators.
struct Backend {
  std::string name;
  std::string version;  ///< Of the library as it is loaded.
  std::vector<BackendPattern> patterns;
  std::vector<GeneratedPatterns> generated = {};
  /// How it runs any nodes together, up to a whole network, plain in and out: jobs of all nodes
  /// whose `accepts` holds. Their `pattern` is not used.
  std::vector<BackendPattern> regions = {};
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
  /// Those that are wanted; others are not loaded. nullopt: all.
  std::optional<std::vector<std::string>> names = {};
};

}  // namespace braid
