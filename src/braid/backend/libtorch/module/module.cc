#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/version.h>

#include "braid/backend/libtorch/module/torch_network.h"
#include "braid/backend/libtorch/module/torch_script.h"
#include "braid/backend/libtorch/torch_module.h"
#include "braid/base/loaded_blas.h"

namespace braid {
namespace {

/// Calls of ATen on the memory of what the kernel is given.
class AtenKernel : public ComputeKernel {
 public:
  AtenKernel(const KernelJob& job, const KernelLayouts& layouts)
      : network_(job, layouts), writes_(layouts.writes) {
    for (const ProgramInput& each : job.region.inputs) {
      layouts_.push_back(layout_of(job, each.value, layouts));
    }
  }

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    const c10::InferenceMode inference;
    at::Tensor out = torch_view(output, writes_);
    network_.run_into(torch_views(inputs, layouts_), out);
  }

  void run_all(std::span<const DenseTensor* const> inputs,
               std::span<DenseTensor* const> outputs) override {
    const c10::InferenceMode inference;
    const std::vector<at::Tensor> results = network_.run(torch_views(inputs, layouts_));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      torch_view(*outputs[i], writes_).copy_(results[i]);
    }
  }

 private:
  TorchNetwork network_;
  std::vector<ImageLayout> layouts_;
  ImageLayout writes_;
};

class LoadedModule : public TorchModule {
 public:
  std::string version() const override { return TORCH_VERSION; }

  std::vector<Operation> operations() const override {
    std::vector<Operation> all;
    for (const auto& [name, entry] : torch_entries()) {
      all.push_back({std::string(name), entry.is_elementwise});
    }
    return all;
  }

  bool computes(const KernelJob& job) const override {
    const bool operations =
        std::all_of(job.region.nodes.begin(), job.region.nodes.end(), [](const ProgramNode& node) {
          return node.domain.empty() && torch_entries().contains(node.operation);
        });
    return operations && std::all_of(job.forms.begin(), job.forms.end(),
                                     [](const TensorForm& f) { return is_torch_type(f.type); });
  }

  std::unique_ptr<ComputeKernel> kernel(const KernelJob& job,
                                        const KernelLayouts& layouts) const override {
    return made([&] { return std::make_unique<AtenKernel>(job, layouts); });
  }

  std::unique_ptr<ComputeKernel> network(const KernelJob& job, TorchWay way) const override {
    if (way == TorchWay::eager) return kernel(job, {});
    return made([&] { return torch_script(job, way); });
  }

 private:
  template <typename Make>
  static std::unique_ptr<ComputeKernel> made(const Make& make) {
    try {
      return make();
    } catch (const std::exception&) {
      return nullptr;
    }
  }
};

}  // namespace
}  // namespace braid

extern "C" const braid::TorchModule* braid_torch_module(int threads);
extern "C" const braid::TorchModule* braid_torch_module(int threads) {
  at::set_num_threads(threads);
  braid::set_blas_threads(threads);
  static const braid::LoadedModule module;
  return &module;
}
