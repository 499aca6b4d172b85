#include "braid/backend/libtorch/module/torch_script.h"

#include <string>
#include <utility>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/xnnpack_rewrite.h>

namespace braid {
namespace {

namespace jit = torch::jit;

/// A module whose "forward" computes the graph, in a tuple where it has several outputs.
jit::Module module_of(const std::shared_ptr<jit::Graph>& graph) {
  const std::string name = "__torch__.Network";
  jit::Module module(name);
  if (graph->outputs().size() > 1) {
    jit::Node* const all = graph->appendNode(graph->createTuple(graph->outputs()));
    while (!graph->outputs().empty()) graph->eraseOutput(0);
    graph->registerOutput(all->output());
  }
  graph->insertInput(0, "self")->setType(module.type());
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(name + ".forward"), graph));
  module.eval();
  return module;
}

jit::Module traced(const KernelJob& job) {
  TorchNetwork network(job, {});
  jit::Stack inputs;
  for (const ProgramInput& each : job.region.inputs) {
    inputs.emplace_back(
        at::zeros(job.form(each.value).shape, torch_type(job.form(each.value).type)));
  }
  const auto computed = [&](const jit::Stack& given) {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& each : given) tensors.push_back(each.toTensor());
    jit::Stack results;
    for (at::Tensor& each : network.run(tensors)) results.emplace_back(std::move(each));
    return results;
  };
  const auto unnamed = [](const torch::autograd::Variable&) { return std::string(); };
  return module_of(jit::tracer::trace(inputs, computed, unnamed).first->graph);
}

class TorchScriptKernel : public ComputeKernel {
 public:
  TorchScriptKernel(const jit::Module& module, std::size_t inputs)
      : module_(module), layouts_(inputs, ImageLayout::plain) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    DenseTensor* const outputs[] = {&output};
    run_all(inputs, outputs);
  }

  void run_all(std::span<const DenseTensor* const> inputs,
               std::span<DenseTensor* const> outputs) override {
    const c10::InferenceMode inference;
    std::vector<c10::IValue> stack;
    for (at::Tensor& each : torch_views(inputs, layouts_)) stack.emplace_back(std::move(each));
    const c10::IValue answer = module_.forward(std::move(stack));
    const auto copy = [&](std::size_t i, const at::Tensor& tensor) {
      torch_view(*outputs[i], ImageLayout::plain).copy_(tensor);
    };
    if (answer.isTensor()) {
      copy(0, answer.toTensor());
      return;
    }
    const auto& elements = answer.toTupleRef().elements();
    for (std::size_t i = 0; i < outputs.size(); ++i) copy(i, elements[i].toTensor());
  }

 private:
  jit::Module module_;
  std::vector<ImageLayout> layouts_;
};

}  // namespace

std::unique_ptr<ComputeKernel> torch_script(const KernelJob& job, TorchWay way) {
  const at::NoGradGuard no_gradients;
  jit::Module module = traced(job);
  module = way == TorchWay::mobile ? jit::optimizeForMobile(module)
                                   : jit::optimize_for_inference(module);
  return std::make_unique<TorchScriptKernel>(std::move(module), job.region.inputs.size());
}

std::vector<at::Tensor> torch_views(std::span<const DenseTensor* const> inputs,
                                    std::span<const ImageLayout> layouts) {
  std::vector<at::Tensor> views;
  views.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    views.push_back(torch_view(*inputs[i], layouts[i]));
  }
  return views;
}

}  // namespace braid
