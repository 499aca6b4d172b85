#include "braid/backend/kernel/pooling_spec.h"

#include "braid/program/node_call.h"

namespace braid {

std::optional<PoolingSpec> pooling_spec(const KernelJob& job) {
  const ProgramNode& node = job.region.nodes.front();
  const NodeCall call(job.region, node, {});
  const TensorForm& in = job.leaf_form(0);
  if (in.type != ElementType::f32 || in.shape.size() < 3 || in.count() == 0) return std::nullopt;
  const Shape spatial(in.shape.begin() + 2, in.shape.end());
  PoolingSpec spec;
  spec.kind = node.operation == "MaxPool" ? PoolingSpec::Kind::max : PoolingSpec::Kind::average;
  if (node.operation == "GlobalAveragePool") {
    const Shape ones(spatial.size(), 1), zeros(spatial.size(), 0);
    spec.window = {spatial, ones, ones, zeros, zeros, spatial, ones};
    return spec;
  }
  const auto* kernel = call.integers("kernel_shape");
  if (kernel == nullptr || kernel->size() != spatial.size()) return std::nullopt;
  spec.counts_padding = call.flag("count_include_pad", false);
  spec.window = sliding_window(call, *kernel, spatial);
  const bool ceil = call.flag("ceil_mode", false);
  for (std::size_t d = 0; d < spatial.size(); ++d) {
    // A window in padding alone has no greatest element; one over the padding's end has another
    // count of elements in every library.
    if (spec.window.before[d] >= spec.window.kernel[d]) return std::nullopt;
  }
  if (ceil && spec.counts_padding) return std::nullopt;
  return spec;
}

std::vector<NamedPattern> pooling_patterns() {
  return {{"max_pool", pattern("MaxPool", {any()})},
          {"average_pool", pattern("AveragePool", {any()})},
          {"global_average_pool", pattern("GlobalAveragePool", {any()})}};
}

}  // namespace braid
