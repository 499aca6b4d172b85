#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// How libtorch runs a whole program.
enum class TorchWay : std::uint8_t {
  eager,   ///< One call of ATen after the other.
  frozen,  ///< TorchScript, traced, frozen and optimised for inference (oneDNN).
  mobile,  ///< TorchScript, traced and optimised for mobile devices (XNNPACK).
};

/// What the shared module has that is linked to libtorch. The module is compiled with braid and
/// loaded while the program runs: a process that links libtorch takes most of a second to start.
class TorchModule {
 public:
  TorchModule() = default;
  TorchModule(const TorchModule&) = delete;
  TorchModule& operator=(const TorchModule&) = delete;
  virtual ~TorchModule() = default;

  virtual std::string version() const = 0;
  /// The operations of ONNX that there are kernels for, sorted by name.
  struct Operation {
    std::string name;
    bool is_elementwise = false;  ///< As BackendPattern says.
  };
  virtual std::vector<Operation> operations() const = 0;
  /// Whether operations and types of a job are known here. Cheap.
  virtual bool computes(const KernelJob& job) const = 0;
  /// A kernel that calls ATen for each operation, on images that lie as `layouts` say; nullptr
  /// where attributes or shapes are not done.
  virtual std::unique_ptr<ComputeKernel> kernel(const KernelJob& job,
                                                const KernelLayouts& layouts) const = 0;
  /// The whole job as libtorch runs networks; may have several outputs. nullptr as above.
  virtual std::unique_ptr<ComputeKernel> network(const KernelJob& job, TorchWay way) const = 0;
};

/// The type of the module's only function, "braid_torch_module". Kernels may use so many threads,
/// from now on and in the whole process. What it returns lives as long as the process.
using TorchModuleFunction = const TorchModule* (*)(int threads);

}  // namespace braid
