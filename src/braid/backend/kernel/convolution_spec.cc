#include "braid/backend/kernel/convolution_spec.h"

#include "braid/program/node_call.h"

namespace braid {

std::optional<ConvolutionSpec> convolution_spec(const KernelJob& job) {
  const ProgramNode& conv = job.region.nodes.front();
  const NodeCall call(job.region, conv, {});
  ConvolutionSpec spec;
  spec.x = conv.inputs[0];
  spec.weight = conv.inputs[1];
  if (conv.inputs.size() > 2) spec.bias = conv.inputs[2];
  const Shape& in = job.form(spec.x).shape;
  const Shape& w = job.form(spec.weight).shape;
  if (in.size() < 3 || w.size() != in.size() || element_count(in) == 0) return std::nullopt;
  spec.samples = in[0];
  spec.in_channels = in[1];
  spec.out_channels = w[0];
  spec.groups = call.integer("group", 1);
  spec.window = sliding_window(call, {w.begin() + 2, w.end()}, {in.begin() + 2, in.end()});
  ValueId result = conv.outputs.front();
  for (std::size_t i = 1; i < job.region.nodes.size(); ++i) {
    const ProgramNode& node = job.region.nodes[i];
    if (node.operation == "Relu") {
      spec.relu = true;
    } else {
      spec.residual = node.inputs[0] == result ? node.inputs[1] : node.inputs[0];
      if (job.form(spec.residual).shape != job.output_form().shape) return std::nullopt;
    }
    result = node.outputs.front();
  }
  for (const ValueId each : {spec.x, spec.weight, spec.bias, spec.residual}) {
    if (each >= 0 && job.form(each).type != ElementType::f32) return std::nullopt;
  }
  return spec;
}

std::vector<NamedPattern> convolution_patterns() {
  std::vector<NamedPattern> patterns;
  for (const bool biased : {false, true}) {
    const std::string name = biased ? "conv+bias" : "conv";
    const Pattern conv = biased ? pattern("Conv", {any(), constant(), constant()})
                                : pattern("Conv", {any(), constant()});
    const Pattern sum = commutative("Add", {conv, any()});
    patterns.push_back({name, conv});
    patterns.push_back({name + "+relu", pattern("Relu", {conv})});
    patterns.push_back({name + "+add", sum});
    patterns.push_back({name + "+add+relu", pattern("Relu", {sum})});
  }
  return patterns;
}

}  // namespace braid
