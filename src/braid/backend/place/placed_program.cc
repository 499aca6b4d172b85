#include "braid/backend/place/placed_program.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/place/candidates.h"
#include "braid/backend/reference/reference_kernel.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/node_call.h"

namespace braid {

struct PlacedProgram::Step {
  NodeId node = -1;  ///< Run by its reference kernel where there is no other.
  std::unique_ptr<ComputeKernel> kernel;
  std::vector<ValueId> inputs;  ///< Values of the program; -1 for what is left out.
  ValueId output = -1;          ///< Of kernels.
};

namespace {

const KernelCandidate& candidate_of(const std::vector<KernelCandidate>& candidates,
                                    const PlacedGroup& group) {
  for (const KernelCandidate& each : candidates) {
    if (each.nodes != group.nodes) continue;
    if (each.backend == nullptr
            ? group.backend == "reference"
            : each.backend->name == group.backend && each.pattern->name == group.pattern) {
      return each;
    }
  }
  throw Error(fmt::format("no kernel of {} for {} computes the nodes [{}]", group.backend,
                          group.pattern, fmt::join(group.nodes, ", ")),
              "place the program again with the backends that are here");
}

}  // namespace

PlacedProgram::PlacedProgram(const FixedProgram& fixed, const ProgramPlacement& placement,
                             const std::vector<FoundBackend>& backends)
    : program_(fixed.program), tensors_(fixed.program.values.size()) {
  const ProgramOpGraph graph = op_graph_of(program_);
  const std::vector<KernelCandidate> candidates = kernel_candidates(fixed, graph, backends);
  for (std::size_t v = 0; v < tensors_.size(); ++v) {
    // Constants are never written, as no node has them as an output.
    tensors_[v] = std::const_pointer_cast<DenseTensor>(program_.values[v].constant);
  }
  for (const PlacedGroup& group : placement.groups) {
    const KernelCandidate& candidate = candidate_of(candidates, group);
    auto step = std::make_unique<Step>();
    step->node = group.nodes.back();
    if (candidate.backend == nullptr) {
      step->inputs = program_.nodes[at(step->node)].inputs;
    } else {
      const KernelJob job = kernel_job(program_, graph, candidate.match, fixed.forms);
      step->kernel = candidate.pattern->make(job);
      if (step->kernel == nullptr) {
        throw Error(fmt::format("{} makes no kernel for {}", group.backend, group.pattern));
      }
      // The region's inputs are its leaves that are no constants, each once.
      for (const std::int32_t leaf : candidate.match.leaves) {
        const ValueId value = graph.program_value[at(leaf)];
        const bool is_new =
            std::find(step->inputs.begin(), step->inputs.end(), value) == step->inputs.end();
        if (is_new && program_.values[at(value)].constant == nullptr) step->inputs.push_back(value);
      }
      step->output = graph.program_value[at(candidate.match.nodes.back())];
      const TensorForm& form = fixed.forms[at(step->output)];
      tensors_[at(step->output)] = std::make_shared<DenseTensor>(form.type, form.shape);
    }
    steps_.push_back(std::move(step));
  }
}

PlacedProgram::~PlacedProgram() = default;

std::vector<DenseTensor> PlacedProgram::run(std::span<const DenseTensor> inputs) {
  std::vector<const DenseTensor*> here(tensors_.size());
  for (std::size_t v = 0; v < here.size(); ++v) here[v] = tensors_[v].get();
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    here[at(program_.inputs[i].value)] = &inputs[i];
  }
  std::vector<const DenseTensor*> operands;
  for (const std::unique_ptr<Step>& step : steps_) {
    operands.clear();
    for (const ValueId input : step->inputs) {
      operands.push_back(input < 0 ? nullptr : here[at(input)]);
    }
    if (step->kernel != nullptr) {
      step->kernel->run(operands, *tensors_[at(step->output)]);
      continue;
    }
    const ProgramNode& node = program_.nodes[at(step->node)];
    std::vector<DenseTensor> results =
        reference_kernel(node.domain, node.operation)(NodeCall(program_, node, operands));
    for (std::size_t i = 0; i < std::min(results.size(), node.outputs.size()); ++i) {
      if (node.outputs[i] < 0) continue;
      tensors_[at(node.outputs[i])] = std::make_shared<DenseTensor>(std::move(results[i]));
      here[at(node.outputs[i])] = tensors_[at(node.outputs[i])].get();
    }
  }
  std::vector<DenseTensor> outputs;
  for (const ValueId id : program_.outputs) outputs.push_back(*here[at(id)]);
  return outputs;
}

}  // namespace braid
