#include "braid/backend/libtorch/module/torch_network.h"

#include <algorithm>
#include <set>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

/// The numbers of a weight; the tensor keeps them.
at::Tensor weight_of(const std::shared_ptr<const DenseTensor>& constant, ImageLayout layout) {
  auto* const memory = const_cast<std::byte*>(constant->data.data());
  const at::Tensor tensor = at::from_blob(
      memory, constant->shape, [constant](void*) {}, torch_type(constant->type));
  const bool turns = layout == ImageLayout::channels_last && tensor.dim() == 4;
  return turns ? tensor.contiguous(at::MemoryFormat::ChannelsLast) : tensor;
}

const DenseTensor* constant_of(const KernelJob& job, ValueId value) {
  return value < 0 ? nullptr : job.region.values[at(value)].constant.get();
}

}  // namespace

TorchNetwork::TorchNetwork(const KernelJob& job, const KernelLayouts& layouts)
    : outputs_(job.region.outputs),
      is_done_(job.region.nodes.size(), false),
      values_(job.region.values.size()) {
  for (const ProgramInput& each : job.region.inputs) inputs_.push_back(each.value);
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const auto& constant = job.region.values[v].constant;
    if (constant && is_torch_type(constant->type)) values_[v] = weight_of(constant, layouts.reads);
  }
  for (std::size_t n = 0; n < job.region.nodes.size(); ++n) {
    const ProgramNode& node = job.region.nodes[n];
    if (!is_done_[n] && !add_linear(job, node)) add_step(job, node);
  }
  find_ends(job);
}

void TorchNetwork::add_step(const KernelJob& job, const ProgramNode& node) {
  const auto entry = torch_entries().find(node.operation);
  std::vector<const DenseTensor*> constants;
  for (const ValueId input : node.inputs) constants.push_back(constant_of(job, input));
  const TorchNode call(job, node, constants);
  if (entry == torch_entries().end() || !node.domain.empty()) call.fail("is not done by libtorch");
  steps_.push_back({entry->second.make(call), node.inputs, node.outputs, {}});
}

const ProgramNode* TorchNetwork::bias_behind(const KernelJob& job, const ProgramNode& node) const {
  const ValueId product = node.outputs.front();
  if (std::count(outputs_.begin(), outputs_.end(), product) > 0) return nullptr;
  const ProgramNode* reader = nullptr;
  for (const ProgramNode& each : job.region.nodes) {
    for (const ValueId input : each.inputs) {
      if (input != product) continue;
      if (reader != nullptr || each.operation != "Add") return nullptr;
      reader = &each;
    }
  }
  if (reader == nullptr) return nullptr;
  const ValueId other = reader->inputs[reader->inputs[0] == product ? 1 : 0];
  const DenseTensor* bias = constant_of(job, other);
  const bool is_row = bias != nullptr && bias->shape == Shape{job.form(product).shape.back()};
  return is_row ? reader : nullptr;
}

bool TorchNetwork::add_linear(const KernelJob& job, const ProgramNode& node) {
  if (node.operation != "MatMul" || !node.domain.empty()) return false;
  const DenseTensor* matrix = constant_of(job, node.inputs[1]);
  if (matrix == nullptr || matrix->shape.size() != 2 || matrix->type != ElementType::f32 ||
      job.form(node.inputs[0]).shape.size() < 2 || constant_of(job, node.inputs[0]) != nullptr) {
    return false;
  }
  const at::Tensor weight = values_[at(node.inputs[1])].t().contiguous();
  at::Tensor bias;
  std::vector<ValueId> outputs = node.outputs;
  if (const ProgramNode* sum = bias_behind(job, node)) {
    bias = values_[at(sum->inputs[sum->inputs[0] == node.outputs.front() ? 1 : 0])];
    outputs = sum->outputs;
    is_done_[static_cast<std::size_t>(sum - job.region.nodes.data())] = true;
  }
  steps_.push_back({torch_linear(weight, bias), {node.inputs[0]}, std::move(outputs), {}});
  return true;
}

void TorchNetwork::find_ends(const KernelJob& job) {
  std::set<ValueId> kept(outputs_.begin(), outputs_.end());
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (job.region.values[v].constant) kept.insert(static_cast<ValueId>(v));
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    for (const std::vector<ValueId>* values : {&step->outputs, &step->inputs}) {
      for (const ValueId each : *values) {
        if (each >= 0 && kept.insert(each).second) step->ends.push_back(each);
      }
    }
  }
}

const std::vector<at::Tensor>& TorchNetwork::operands_of(const Step& step) {
  operands_.clear();
  for (const ValueId each : step.inputs) {
    operands_.push_back(each < 0 ? at::Tensor() : values_[at(each)]);
  }
  return operands_;
}

void TorchNetwork::feed(const std::vector<at::Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) values_[at(inputs_[i])] = inputs[i];
}

std::vector<at::Tensor> TorchNetwork::run(const std::vector<at::Tensor>& inputs) {
  feed(inputs);
  for (const Step& step : steps_) {
    std::vector<at::Tensor> results = step.operation.compute(operands_of(step));
    operands_.clear();
    for (std::size_t i = 0; i < std::min(results.size(), step.outputs.size()); ++i) {
      if (step.outputs[i] >= 0) values_[at(step.outputs[i])] = std::move(results[i]);
    }
    for (const ValueId each : step.ends) values_[at(each)] = at::Tensor();
  }
  std::vector<at::Tensor> outputs;
  for (const ValueId each : outputs_) outputs.push_back(values_[at(each)]);
  return outputs;
}

void TorchNetwork::run_into(const std::vector<at::Tensor>& inputs, at::Tensor& output) {
  if (steps_.size() == 1 && steps_.front().operation.into) {
    feed(inputs);
    steps_.front().operation.into(operands_of(steps_.front()), output);
    return;
  }
  output.copy_(run(inputs).front());
}

}  // namespace braid
