#include "braid/backend/kernel/gemm_spec.h"

#include <algorithm>

#include "braid/base/index.h"
#include "braid/program/node_call.h"

namespace braid {
namespace {

using OptionalSpec = std::optional<GemmSpec>;

OptionalSpec spec_of_matmul(const KernelJob& job, const ProgramNode& node) {
  GemmSpec spec;
  spec.a = node.inputs[0];
  spec.b = node.inputs[1];
  const Shape& a = job.form(spec.a).shape;
  const Shape& b = job.form(spec.b).shape;
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  spec.m = a[a.size() - 2];
  spec.k = a.back();
  spec.n = b.back();
  const Shape a_stack(a.begin(), a.end() - 2);
  const Shape b_stack(b.begin(), b.end() - 2);
  spec.batch = element_count(a_stack);
  spec.shares_b = element_count(b_stack) == 1 && b_stack.size() <= a_stack.size();
  if (!spec.shares_b && a_stack != b_stack) return std::nullopt;
  if (spec.shares_b) {
    // Stacked rows are one tall matrix.
    spec.m *= spec.batch;
    spec.batch = 1;
  }
  return spec;
}

OptionalSpec spec_of_gemm(const KernelJob& job, const ProgramNode& node) {
  const NodeCall call(job.region, node, {});
  GemmSpec spec;
  spec.a = node.inputs[0];
  spec.b = node.inputs[1];
  spec.shares_b = true;
  spec.transposes_a = call.flag("transA", false);
  spec.transposes_b = call.flag("transB", false);
  if (call.real("alpha", 1) != 1 || call.real("beta", 1) != 1) return std::nullopt;
  const Shape& a = job.form(spec.a).shape;
  const Shape& b = job.form(spec.b).shape;
  spec.m = a[spec.transposes_a ? 1 : 0];
  spec.k = a[spec.transposes_a ? 0 : 1];
  spec.n = b[spec.transposes_b ? 0 : 1];
  if (node.inputs.size() > 2) spec.bias = node.inputs[2];
  return spec;
}

/// Says how the bias is added; false where it is broadcast otherwise.
bool read_bias(const KernelJob& job, GemmSpec& spec) {
  if (spec.bias < 0) return true;
  const Shape& shape = job.form(spec.bias).shape;
  const Shape& out = job.output_form().shape;
  if (shape == out) {
    spec.added = GemmSpec::Added::matrix;
  } else if (element_count(shape) == spec.n && !shape.empty() && shape.back() == spec.n &&
             shape.size() <= out.size()) {
    spec.added = GemmSpec::Added::row;
  } else {
    return false;
  }
  return true;
}

std::vector<NamedPattern> product_patterns() {
  const Pattern matmul = pattern("MatMul", {any(), any()});
  return {{"matmul", matmul},
          {"matmul+add", commutative("Add", {matmul, any()})},
          {"gemm", pattern("Gemm", {any(), any()})},
          {"gemm+bias", pattern("Gemm", {any(), any(), any()})}};
}

}  // namespace

std::optional<GemmSpec> gemm_spec(const KernelJob& job) {
  const ProgramNode& product = job.region.nodes.front();
  OptionalSpec spec =
      product.operation == "Gemm" ? spec_of_gemm(job, product) : spec_of_matmul(job, product);
  if (!spec) return std::nullopt;
  ValueId result = product.outputs.front();
  for (std::size_t i = 1; i < job.region.nodes.size(); ++i) {
    const ProgramNode& node = job.region.nodes[i];
    if (node.operation == "Relu") {
      spec->relu = true;
    } else if (node.operation == "Gelu") {
      spec->gelu = gelu_form(job.region, node);
    } else {
      if (spec->bias >= 0) return std::nullopt;
      spec->bias = node.inputs[0] == result ? node.inputs[1] : node.inputs[0];
    }
    result = node.outputs.front();
  }
  if (!read_bias(job, *spec)) return std::nullopt;
  if (job.output_form().count() != spec->batch * spec->m * spec->n) return std::nullopt;
  for (const ValueId each : {spec->a, spec->b, spec->bias}) {
    if (each >= 0 && job.form(each).type != ElementType::f32) return std::nullopt;
  }
  return spec->batch * spec->m * spec->n * spec->k > 0 ? spec : std::nullopt;
}

GeluForm gelu_form(const Program& region, const ProgramNode& node) {
  const NodeCall call(region, node, {});
  return call.text("approximate", "none") == "tanh" ? GeluForm::tanh : GeluForm::erf;
}

std::vector<NamedPattern> gemm_patterns() {
  std::vector<NamedPattern> patterns;
  for (const NamedPattern& each : product_patterns()) {
    patterns.push_back(each);
    patterns.push_back({each.name + "+relu", pattern("Relu", {each.pattern})});
  }
  return patterns;
}

std::vector<NamedPattern> gelu_gemm_patterns() {
  std::vector<NamedPattern> patterns;
  for (const NamedPattern& each : product_patterns()) {
    patterns.push_back({each.name + "+gelu", pattern("Gelu", {each.pattern})});
  }
  return patterns;
}

Operands::Operands(const KernelJob& job) : input_(job.region.values.size(), -1) {
  for (const ProgramValue& value : job.region.values) constants_.push_back(value.constant);
  for (std::size_t i = 0; i < job.region.inputs.size(); ++i) {
    input_[at(job.region.inputs[i].value)] = static_cast<std::int32_t>(i);
  }
}

const float* Operands::reals(std::span<const DenseTensor* const> inputs, ValueId value) const {
  const std::int32_t input = input_[at(value)];
  const DenseTensor& tensor = input < 0 ? *constants_[at(value)] : *inputs[at(input)];
  return tensor.as<float>().data();
}

void write_addend(const GemmSpec& spec, const Operands& operands,
                  std::span<const DenseTensor* const> inputs, std::span<float> out) {
  if (spec.added == GemmSpec::Added::nothing) return;
  const float* addend = operands.reals(inputs, spec.bias);
  const std::size_t width = spec.added == GemmSpec::Added::row ? at(spec.n) : out.size();
  for (std::size_t first = 0; first < out.size(); first += width) {
    std::copy(addend, addend + width, out.data() + first);
  }
}

void apply_relu(const GemmSpec& spec, std::span<float> out) {
  if (!spec.relu) return;
  for (float& each : out) each = std::max(each, 0.0F);
}

}  // namespace braid
