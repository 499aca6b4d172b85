#include "braid/backend/onednn/onednn_backend.h"

#include <array>

#include <fmt/format.h>

#include "braid/backend/kernel/convolution_spec.h"
#include "braid/backend/onednn/onednn_kernels.h"

namespace braid {
namespace {

using Functions = std::shared_ptr<const OneDnnFunctions>;

/// Those in which the library has fast convolutions: images of few channels are plain.
constexpr std::array<KernelLayouts, 4> convolution_layouts = {{
    {ImageLayout::plain, ImageLayout::plain},
    {ImageLayout::plain, ImageLayout::blocked},
    {ImageLayout::blocked, ImageLayout::blocked},
    {ImageLayout::channels_last, ImageLayout::channels_last},
}};

/// Behind a kernel's name, so that names tell kernels apart.
std::string layouts_text(const KernelLayouts& layouts) {
  if (layouts == KernelLayouts{}) return "";
  if (layouts.reads == layouts.writes) return fmt::format(" ({})", name_of(layouts.reads));
  return fmt::format(" ({} to {})", name_of(layouts.reads), name_of(layouts.writes));
}

bool is_full_f32(const KernelJob& job) {
  const TensorForm& in = job.leaf_form(0);
  return in.type == ElementType::f32 && in.count() > 0 && in.shape.size() <= DNNL_MAX_NDIMS;
}

void add_products(const Functions& f, std::vector<BackendPattern>& patterns) {
  for (const auto& list : {gemm_patterns(), gelu_gemm_patterns()}) {
    for (const NamedPattern& each : list) {
      patterns.push_back({each.name, each.pattern,
                          [](const KernelJob& job) { return gemm_spec(job).has_value(); },
                          [f](const KernelJob& job) { return onednn_product(f, job); }});
    }
  }
  const auto takes = [](const KernelJob& job) { return convolution_spec(job).has_value(); };
  for (const NamedPattern& each : convolution_patterns()) {
    patterns.push_back({each.name + " (turning)", each.pattern, takes,
                        [f](const KernelJob& job) { return onednn_turning_convolution(f, job); }});
    for (const KernelLayouts& layouts : convolution_layouts) {
      patterns.push_back(
          {each.name + layouts_text(layouts), each.pattern, takes,
           [f, layouts](const KernelJob& job) { return onednn_convolution(f, job, layouts); },
           layouts});
    }
  }
}

void add_pooling(const Functions& f, std::vector<BackendPattern>& patterns) {
  for (const NamedPattern& each : pooling_patterns()) {
    for (const ImageLayout layout : all_layouts) {
      const KernelLayouts layouts{layout, layout};
      patterns.push_back(
          {each.name + layouts_text(layouts), each.pattern,
           [](const KernelJob& job) { return pooling_spec(job).has_value(); },
           [f, layout](const KernelJob& job) { return onednn_pooling(f, job, layout); }, layouts});
    }
  }
}

void add_pointwise(const Functions& f, std::vector<BackendPattern>& patterns) {
  for (NamedPattern& each : onednn_unary_patterns()) {
    patterns.push_back({std::move(each.name), std::move(each.pattern), is_full_f32,
                        [f](const KernelJob& job) { return onednn_unary(f, job); }, KernelLayouts{},
                        true});
  }
  for (NamedPattern& each : onednn_binary_patterns()) {
    patterns.push_back({std::move(each.name), std::move(each.pattern), onednn_takes_binary,
                        [f](const KernelJob& job) { return onednn_binary(f, job); },
                        KernelLayouts{}, true});
  }
  for (const NamedPattern& each : onednn_chain_patterns()) {
    for (const ImageLayout layout : all_layouts) {
      const KernelLayouts layouts{layout, layout};
      patterns.push_back(
          {each.name + layouts_text(layouts), each.pattern, onednn_takes_chain,
           [f, layout](const KernelJob& job) { return onednn_chain(f, job, layout); }, layouts});
    }
  }
  for (const auto& [name, args] : std::vector<std::pair<std::string, std::vector<Pattern>>>{
           {"layer_norm", {any(), constant()}},
           {"layer_norm+shift", {any(), constant(), constant()}}}) {
    patterns.push_back({name, pattern("LayerNormalization", args), onednn_takes_layer_norm,
                        [f](const KernelJob& job) { return onednn_layer_norm(f, job); }});
  }
  patterns.push_back({"transpose", pattern("Transpose", {any()}), onednn_takes_transpose,
                      [f](const KernelJob& job) { return onednn_transpose(f, job); }});
  patterns.push_back({"softmax", pattern("Softmax", {any()}), onednn_takes_softmax,
                      [f](const KernelJob& job) { return onednn_softmax(f, job); }});
}

}  // namespace

FoundBackend onednn_backend(const BackendOptions& options) {
  const OneDnnLibrary library = load_onednn(options.threads);
  if (library.functions == nullptr) return {"onednn", std::nullopt, library.problem};
  Backend backend{"onednn", library.version, {}};
  add_products(library.functions, backend.patterns);
  add_pooling(library.functions, backend.patterns);
  add_pointwise(library.functions, backend.patterns);
  return {"onednn", std::move(backend), {}};
}

}  // namespace braid
