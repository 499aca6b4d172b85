#include "braid/backend/onednn/onednn_backend.h"

#include "braid/backend/kernel/convolution_spec.h"
#include "braid/backend/onednn/onednn_kernels.h"

namespace braid {
namespace {

using Functions = std::shared_ptr<const OneDnnFunctions>;

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
  for (const OneDnnLayout layout : {OneDnnLayout::nchw, OneDnnLayout::blocked}) {
    const std::string suffix = layout == OneDnnLayout::nchw ? " (nchw)" : " (blocked)";
    for (NamedPattern& each : convolution_patterns()) {
      patterns.push_back(
          {each.name + suffix, std::move(each.pattern), takes,
           [f, layout](const KernelJob& job) { return onednn_convolution(f, job, layout); }});
    }
  }
}

void add_pooling(const Functions& f, std::vector<BackendPattern>& patterns) {
  for (NamedPattern& each : pooling_patterns()) {
    patterns.push_back(
        {std::move(each.name), std::move(each.pattern),
         [](const KernelJob& job) { return pooling_spec(job).has_value(); },
         [f](const KernelJob& job) { return onednn_pooling(f, job, *pooling_spec(job)); }});
  }
}

void add_pointwise(const Functions& f, std::vector<BackendPattern>& patterns) {
  for (NamedPattern& each : onednn_unary_patterns()) {
    patterns.push_back({std::move(each.name), std::move(each.pattern), is_full_f32,
                        [f](const KernelJob& job) { return onednn_unary(f, job); }});
  }
  for (NamedPattern& each : onednn_binary_patterns()) {
    patterns.push_back({std::move(each.name), std::move(each.pattern), onednn_takes_binary,
                        [f](const KernelJob& job) { return onednn_binary(f, job); }});
  }
  for (NamedPattern& each : onednn_chain_patterns()) {
    patterns.push_back({std::move(each.name), std::move(each.pattern), onednn_takes_chain,
                        [f](const KernelJob& job) { return onednn_chain(f, job); }});
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
