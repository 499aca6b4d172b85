#include "braid/backend/xnnpack/xnnpack_backend.h"

#include <string>
#include <utility>

#include "braid/backend/kernel/convolution_spec.h"
#include "braid/backend/xnnpack/xnnpack_kernels.h"

namespace braid {

FoundBackend xnnpack_backend(const BackendOptions& options) {
  const auto [library, problem] = load_xnnpack(options.threads);
  if (library == nullptr) return {"xnnpack", std::nullopt, problem};
  // The library tells no version; Debian 12's is of this day.
  Backend backend{"xnnpack", "20220216", {}};
  const auto add = [&, x = library](const std::string& name, Pattern pattern, auto accepts,
                                    auto make) {
    backend.patterns.push_back({name, std::move(pattern), accepts,
                                [x, make](const KernelJob& job) { return make(x, job); }});
  };
  for (NamedPattern& each : gemm_patterns()) {
    add(each.name, std::move(each.pattern), xnnpack_takes_product, xnnpack_product);
  }
  for (const ImageLayout layout : {ImageLayout::plain, ImageLayout::channels_last}) {
    const bool plain = layout == ImageLayout::plain;
    const std::string suffix = plain ? " (turning)" : " (channels last)";
    const auto add_image = [&](const std::string& name, const Pattern& pattern, auto accepts,
                               auto make) {
      add(name + suffix, pattern, accepts,
          [make, layout](const Xnnpack& x, const KernelJob& job) { return make(x, job, layout); });
      backend.patterns.back().layouts = {layout, layout};
    };
    for (const NamedPattern& each : convolution_patterns()) {
      add_image(each.name, each.pattern, xnnpack_takes_convolution, xnnpack_convolution);
    }
    add_image("max_pool", pattern("MaxPool", {any()}), xnnpack_takes_max_pooling,
              xnnpack_max_pooling);
  }
  for (const char* operation : {"Relu", "Sigmoid"}) {
    add(operation, pattern(operation, {any()}), xnnpack_takes_unary, xnnpack_unary);
    backend.patterns.back().is_elementwise = true;
  }
  add("softmax", pattern("Softmax", {any()}), xnnpack_takes_softmax, xnnpack_unary);
  for (const char* operation : {"Add", "Mul"}) {
    add(operation, pattern(operation, {any(), any()}), xnnpack_takes_binary, xnnpack_binary);
    backend.patterns.back().is_elementwise = true;
  }
  return {"xnnpack", std::move(backend), {}};
}

}  // namespace braid
