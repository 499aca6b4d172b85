#include <algorithm>
#include <array>
#include <string_view>

#include "braid/backend/onednn/onednn_kernels.h"
#include "braid/program/node_call.h"

namespace braid {
namespace {

struct NamedAlgorithm {
  std::string_view operation;
  dnnl_alg_kind_t algorithm = dnnl_alg_kind_undef;
};
constexpr std::array<NamedAlgorithm, 9> unary_operations{{
    {"Abs", dnnl_eltwise_abs},
    {"Exp", dnnl_eltwise_exp},
    {"Gelu", dnnl_eltwise_gelu_erf},
    {"HardSwish", dnnl_eltwise_hardswish},
    {"Log", dnnl_eltwise_log},
    {"Relu", dnnl_eltwise_relu},
    {"Sigmoid", dnnl_eltwise_logistic},
    {"Sqrt", dnnl_eltwise_sqrt},
    {"Tanh", dnnl_eltwise_tanh},
}};

constexpr std::array<NamedAlgorithm, 6> binary_operations{{
    {"Add", dnnl_binary_add},
    {"Div", dnnl_binary_div},
    {"Max", dnnl_binary_max},
    {"Min", dnnl_binary_min},
    {"Mul", dnnl_binary_mul},
    {"Sub", dnnl_binary_sub},
}};

template <typename List>
dnnl_alg_kind_t algorithm_of(const List& list, std::string_view operation) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const NamedAlgorithm& each) {
    return each.operation == operation;
  });
  return found == list.end() ? dnnl_alg_kind_undef : found->algorithm;
}

/// With ones in front, so that it has at least `rank` dimensions and one.
Shape lifted(const Shape& shape, std::size_t rank) {
  Shape result(std::max({rank, shape.size(), std::size_t{1}}) - shape.size(), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

std::size_t softmax_axis(const KernelJob& job) {
  const NodeCall call(job.region, job.region.nodes.front(), {});
  const std::size_t rank = job.leaf_form(0).shape.size();
  return call.axis(call.integer("axis", call.opset() < 13 ? 1 : -1), rank);
}

}  // namespace

std::vector<NamedPattern> onednn_unary_patterns() {
  std::vector<NamedPattern> patterns;
  for (const NamedAlgorithm& each : unary_operations) {
    const std::string name(each.operation);
    patterns.push_back({name, pattern(name, {any()})});
  }
  return patterns;
}

std::unique_ptr<ComputeKernel> onednn_unary(const std::shared_ptr<const OneDnnFunctions>& functions,
                                            const KernelJob& job) {
  OneDnnKernelBuilder builder(functions, job);
  const auto form = plain_memory(*functions, lifted(job.leaf_form(0).shape, 1));
  const ProgramNode& node = job.region.nodes.front();
  const auto algorithm = node.operation == "Gelu" ? onednn_gelu(gelu_form(job.region, node))
                                                  : algorithm_of(unary_operations, node.operation);
  dnnl_eltwise_desc_t operation{};
  if (functions->eltwise_init(&operation, dnnl_forward_inference, algorithm, &form, 0, 0) !=
      dnnl_success) {
    return nullptr;
  }
  const auto description = builder.describe(&operation, {});
  if (description == nullptr) return nullptr;
  builder.add(description, {{DNNL_ARG_SRC, form, builder.buffer_of(job.leaves[0])},
                            {DNNL_ARG_DST, form, builder.output_buffer()}});
  return builder.kernel();
}

std::vector<NamedPattern> onednn_binary_patterns() {
  std::vector<NamedPattern> patterns;
  for (const NamedAlgorithm& each : binary_operations) {
    const std::string name(each.operation);
    patterns.push_back({name, pattern(name, {any(), any()})});
  }
  return patterns;
}

bool onednn_takes_binary(const KernelJob& job) {
  const TensorForm& out = job.output_form();
  return out.type == ElementType::f32 && out.count() > 0 && out.shape.size() <= DNNL_MAX_NDIMS &&
         job.leaf_form(0).type == ElementType::f32 && job.leaf_form(1).type == ElementType::f32 &&
         job.leaf_form(0).shape == out.shape;
}

std::unique_ptr<ComputeKernel> onednn_binary(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job) {
  OneDnnKernelBuilder builder(functions, job);
  const std::size_t rank = job.output_form().shape.size();
  const auto a = plain_memory(*functions, lifted(job.leaf_form(0).shape, rank));
  const auto b = plain_memory(*functions, lifted(job.leaf_form(1).shape, rank));
  const auto algorithm = algorithm_of(binary_operations, job.region.nodes.front().operation);
  dnnl_binary_desc_t operation{};
  if (functions->binary_init(&operation, algorithm, &a, &b, &a) != dnnl_success) return nullptr;
  const auto description = builder.describe(&operation, {});
  if (description == nullptr) return nullptr;
  builder.add(description, {{DNNL_ARG_SRC_0, a, builder.buffer_of(job.leaves[0])},
                            {DNNL_ARG_SRC_1, b, builder.buffer_of(job.leaves[1])},
                            {DNNL_ARG_DST, a, builder.output_buffer()}});
  return builder.kernel();
}

std::vector<NamedPattern> onednn_chain_patterns() {
  std::vector<NamedPattern> patterns;
  for (const char* operation : {"Add", "Mul", "Sub"}) {
    const std::string name(operation);
    const Pattern first = pattern(name, {any(), any()});
    patterns.push_back({name + "+relu", pattern("Relu", {first})});
    const Pattern sum = commutative("Add", {first, any()});
    patterns.push_back({name + "+add", sum});
    patterns.push_back({name + "+add+relu", pattern("Relu", {sum})});
  }
  return patterns;
}

bool onednn_takes_chain(const KernelJob& job) {
  const TensorForm& out = job.output_form();
  if (out.type != ElementType::f32 || out.count() == 0 || out.shape.empty() ||
      out.shape.size() > DNNL_MAX_NDIMS || job.leaf_form(0) != out) {
    return false;
  }
  for (std::size_t leaf = 1; leaf < job.leaves.size(); ++leaf) {
    if (job.leaf_form(leaf).type != ElementType::f32) return false;
  }
  return true;
}

std::unique_ptr<ComputeKernel> onednn_chain(const std::shared_ptr<const OneDnnFunctions>& functions,
                                            const KernelJob& job, ImageLayout layout) {
  OneDnnKernelBuilder builder(functions, job);
  const ProgramNode& first = job.region.nodes.front();
  const std::size_t rank = job.output_form().shape.size();
  const auto out = laid_memory(*functions, job.output_form().shape, layout);
  const auto form_of_value = [&](ValueId value) {
    const Shape& shape = job.form(value).shape;
    return laid_memory(*functions, lifted(shape, rank),
                       shape.size() == rank ? layout : ImageLayout::plain);
  };
  const auto a = form_of_value(first.inputs[0]);
  const auto b = form_of_value(first.inputs[1]);
  dnnl_binary_desc_t operation{};
  if (functions->binary_init(&operation, algorithm_of(binary_operations, first.operation), &a, &b,
                             &out) != dnnl_success) {
    return nullptr;
  }
  OneDnnEpilogue epilogue;
  std::vector<OneDnnStep::Argument> arguments{
      {DNNL_ARG_SRC_0, a, builder.buffer_of(first.inputs[0])},
      {DNNL_ARG_SRC_1, b, builder.buffer_of(first.inputs[1])},
      {DNNL_ARG_DST, out, builder.output_buffer()}};
  const ProgramNode& second = job.region.nodes[1];
  dnnl_memory_desc_t addend{};
  if (second.operation == "Add") {
    const bool is_left = second.inputs[0] == first.outputs.front();
    const ValueId other = second.inputs[is_left ? 1 : 0];
    addend = form_of_value(other);
    epilogue.binary = dnnl_binary_add;
    epilogue.operand = &addend;
    arguments.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, addend, builder.buffer_of(other)});
  }
  if (job.region.nodes.back().operation == "Relu") epilogue.activation = dnnl_eltwise_relu;
  const auto description = builder.describe(&operation, epilogue);
  if (description == nullptr) return nullptr;
  builder.add(description, arguments);
  return builder.kernel();
}

bool onednn_takes_softmax(const KernelJob& job) {
  const TensorForm& in = job.leaf_form(0);
  if (in.type != ElementType::f32 || in.count() == 0 || in.shape.empty()) return false;
  // Before version 13, a row is all dimensions from the axis on.
  return job.region.opset >= 13 || softmax_axis(job) + 1 == in.shape.size();
}

std::unique_ptr<ComputeKernel> onednn_softmax(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job) {
  OneDnnKernelBuilder builder(functions, job);
  const auto form = plain_memory(*functions, job.leaf_form(0).shape);
  dnnl_softmax_desc_t operation{};
  if (functions->softmax_init(&operation, dnnl_forward_inference, &form,
                              static_cast<int>(softmax_axis(job))) != dnnl_success) {
    return nullptr;
  }
  const auto description = builder.describe(&operation, {});
  if (description == nullptr) return nullptr;
  builder.add(description, {{DNNL_ARG_SRC, form, builder.buffer_of(job.leaves[0])},
                            {DNNL_ARG_DST, form, builder.output_buffer()}});
  return builder.kernel();
}

}  // namespace braid
