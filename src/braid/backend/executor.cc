#include "braid/backend/executor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/reference/reference_kernel.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/program/node_call.h"
#include "braid/program/random_tensor.h"

namespace braid {
namespace {

/// The node that reads each value last; the number of nodes for what the program returns.
std::vector<NodeId> last_readers(const Program& program) {
  std::vector<NodeId> last(program.values.size(), -1);
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    for (const ValueId id : program.nodes[i].inputs) {
      if (id >= 0) last[at(id)] = static_cast<NodeId>(i);
    }
  }
  for (const ValueId id : program.outputs) last[at(id)] = static_cast<NodeId>(program.nodes.size());
  return last;
}

class Run {
 public:
  Run(const Program& program, std::span<const DenseTensor> inputs)
      : program_(program), last_(last_readers(program)), tensors_(program.values.size()) {
    for (const MissingWeight& weight : program.missing) {
      fail("initializer " + value_name(weight.value), "its numbers are not in the file",
           "give the model random weights, or export it with its own");
    }
    for (std::size_t v = 0; v < tensors_.size(); ++v) {
      tensors_[v] = program.values[v].constant;
    }
    feed(inputs);
  }

  std::vector<DenseTensor> compute(const NodeObserver& observer) {
    for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
      compute_node(static_cast<NodeId>(i), observer);
    }
    std::vector<DenseTensor> outputs;
    for (const ValueId id : program_.outputs) outputs.push_back(*tensors_[at(id)]);
    return outputs;
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         const std::string& remedy = {}) const {
    throw Error(Where{program_.name, 0, key}, message, remedy);
  }

  std::string value_name(ValueId id) const { return in_quotes(program_.values[at(id)].name); }

  void feed(std::span<const DenseTensor> inputs) {
    if (inputs.size() != program_.inputs.size()) {
      fail("",
           fmt::format("takes {} inputs and was given {}", program_.inputs.size(), inputs.size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ProgramInput& declared = program_.inputs[i];
      if (inputs[i].type != declared.type ||
          (declared.shape && inputs[i].shape != *declared.shape)) {
        fail("input " + value_name(declared.value),
             fmt::format("is {}{} and was given {}", name_of(declared.type),
                         declared.shape ? shape_text(*declared.shape) : std::string(),
                         form_text(inputs[i])));
      }
      // Not owned: the caller keeps them until the run has ended.
      tensors_[at(declared.value)] =
          std::shared_ptr<const DenseTensor>(std::shared_ptr<void>(), &inputs[i]);
    }
  }

  ReferenceKernel kernel_of(const ProgramNode& node) const {
    const ReferenceKernel kernel = reference_kernel(node.domain, node.operation);
    if (kernel != nullptr) return kernel;
    fail("node " + in_quotes(node.name),
         "the operation " + in_quotes(node.operation) +
             (node.domain.empty() ? "" : " of the domain " + in_quotes(node.domain)) +
             " has no kernel",
         did_you_mean(node.operation, reference_operations()));
  }

  void compute_node(NodeId id, const NodeObserver& observer) {
    const ProgramNode& node = program_.nodes[at(id)];
    std::vector<const DenseTensor*> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input < 0 ? nullptr : tensors_[at(input)].get());
      if (input >= 0 && inputs.back() == nullptr) {
        fail("node " + in_quotes(node.name),
             "reads " + value_name(input) + ", which no kernel has computed");
      }
    }
    std::vector<DenseTensor> outputs = kernel_of(node)(NodeCall(program_, node, inputs));
    if (observer) observer(id, inputs, outputs);
    for (std::size_t i = 0; i < std::min(outputs.size(), node.outputs.size()); ++i) {
      const ValueId output = node.outputs[i];
      if (output < 0 || last_[at(output)] < 0) continue;
      tensors_[at(output)] = std::make_shared<const DenseTensor>(std::move(outputs[i]));
    }
    for (const ValueId input : node.inputs) {
      if (input >= 0 && last_[at(input)] == id) tensors_[at(input)].reset();
    }
  }

  const Program& program_;
  std::vector<NodeId> last_;                                 ///< By value.
  std::vector<std::shared_ptr<const DenseTensor>> tensors_;  ///< By value, while somebody reads it.
};

}  // namespace

std::vector<DenseTensor> run(const Program& program, std::span<const DenseTensor> inputs,
                             const NodeObserver& observer) {
  return Run(program, inputs).compute(observer);
}

std::vector<TensorForm> forms_of(const Program& program, std::span<const DenseTensor> inputs) {
  std::vector<TensorForm> forms(program.values.size());
  for (std::size_t v = 0; v < forms.size(); ++v) {
    if (program.values[v].constant) forms[v] = form_of(*program.values[v].constant);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    forms[at(program.inputs[i].value)] = form_of(inputs[i]);
  }
  run(program, inputs,
      [&](NodeId node, std::span<const DenseTensor* const>, std::span<const DenseTensor> results) {
        const std::vector<ValueId>& outputs = program.nodes[at(node)].outputs;
        for (std::size_t i = 0; i < std::min(outputs.size(), results.size()); ++i) {
          if (outputs[i] >= 0) forms[at(outputs[i])] = form_of(results[i]);
        }
      });
  return forms;
}

std::vector<DenseTensor> random_inputs(const Program& program, std::uint64_t seed) {
  std::vector<DenseTensor> inputs;
  for (const ProgramInput& each : program.inputs) {
    if (!each.shape) {
      throw Error(Where{program.name, 0, "input " + in_quotes(program.values[at(each.value)].name)},
                  "its shape is not known", "give sizes to its dimensions: --dim NAME=…");
    }
    inputs.push_back(random_tensor(each.type, *each.shape, seed + inputs.size()));
  }
  return inputs;
}

}  // namespace braid
