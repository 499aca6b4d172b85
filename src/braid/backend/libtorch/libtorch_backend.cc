#include "braid/backend/libtorch/libtorch_backend.h"

#include <string>
#include <utility>

#include "braid/backend/kernel/convolution_spec.h"
#include "braid/backend/kernel/gemm_spec.h"
#include "braid/backend/kernel/pooling_spec.h"
#include "braid/backend/kernel/program_module.h"
#include "braid/backend/kernel/shared_library.h"
#include "braid/backend/libtorch/torch_module.h"

namespace braid {
namespace {

class PatternList {
 public:
  PatternList(const TorchModule& module, Backend& backend) : module_(module), backend_(backend) {}

  void add(const std::string& name, Pattern pattern, ImageLayout layout = ImageLayout::plain) {
    const KernelLayouts layouts{layout, layout};
    const bool plain = layout == ImageLayout::plain;
    backend_.patterns.push_back(
        {plain ? name : name + " (channels last)", std::move(pattern),
         [m = &module_](const KernelJob& job) { return m->computes(job); },
         [m = &module_, layouts](const KernelJob& job) { return m->kernel(job, layouts); },
         layouts});
  }

  void add_region(const std::string& name, TorchWay way) {
    backend_.regions.push_back(
        {name, any(), [m = &module_](const KernelJob& job) { return m->computes(job); },
         [m = &module_, way](const KernelJob& job) { return m->network(job, way); }});
  }

 private:
  const TorchModule& module_;
  Backend& backend_;
};

Backend backend_of(const TorchModule& module) {
  Backend backend{"libtorch", module.version(), {}, {}};
  PatternList list(module, backend);
  for (NamedPattern& each : gemm_patterns()) list.add(each.name, std::move(each.pattern));
  for (NamedPattern& each : gelu_gemm_patterns()) list.add(each.name, std::move(each.pattern));
  for (const ImageLayout layout : {ImageLayout::plain, ImageLayout::channels_last}) {
    for (NamedPattern& each : convolution_patterns()) {
      list.add(each.name, std::move(each.pattern), layout);
    }
    for (NamedPattern& each : pooling_patterns()) {
      list.add(each.name, std::move(each.pattern), layout);
    }
  }
  for (const TorchModule::Operation& each : module.operations()) {
    Pattern taken = pattern(each.name, {any()});
    taken.takes_more = true;
    list.add(each.name, std::move(taken));
    backend.patterns.back().is_elementwise = each.is_elementwise;
  }
  list.add_region("eager", TorchWay::eager);
  backend.regions.back().is_whole_alone = true;
  list.add_region("frozen", TorchWay::frozen);
  list.add_region("mobile", TorchWay::mobile);
  return backend;
}

}  // namespace

FoundBackend libtorch_backend(const BackendOptions& options) {
  const std::string path = module_path("braid-torch.so", BRAID_MODULE_FOLDER);
  const SharedLibrary library(path);
  const auto module_of = library.function<TorchModuleFunction>("braid_torch_module");
  if (module_of == nullptr) {
    return {"libtorch", std::nullopt,
            (library.is_loaded() ? path + " lacks a function" : library.problem()) +
                "; install libtorch1.13"};
  }
  return {"libtorch", backend_of(*module_of(options.threads)), {}};
}

}  // namespace braid
