#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// What of a product or convolution lies in registers at once: vectors of columns, by rows.
struct HalideTile {
  int vectors = 1, rows = 1;
};

/// The shared module that is linked to Halide, and with it to a compiler: it is loaded while the
/// program runs, so that others start as fast as before.
class HalideModule {
 public:
  HalideModule() = default;
  HalideModule(const HalideModule&) = delete;
  HalideModule& operator=(const HalideModule&) = delete;
  virtual ~HalideModule() = default;

  virtual std::string version() const = 0;
  /// Whether a node can be computed, alone or with others, as far as its operation says.
  virtual bool knows(const std::string& operation) const = 0;
  /// Whether all of a job's nodes and types are done. Cheap.
  virtual bool computes(const KernelJob& job) const = 0;
  /// Tiles worth trying on this processor.
  virtual std::vector<HalideTile> tiles() const = 0;
  /// Whether a tile is worth trying for a product or convolution that gives such a tensor.
  virtual bool suits(const HalideTile& tile, const Shape& result) const = 0;
  /// The job as one compiled loop nest; takes a second. nullptr where it is not done after all.
  virtual std::unique_ptr<ComputeKernel> kernel(const KernelJob& job,
                                                const HalideTile& tile) const = 0;
};

/// The type of the module's only function, "braid_halide_module". What it returns lives as long as
/// the process.
using HalideModuleFunction = const HalideModule* (*)(int threads);

}  // namespace braid
