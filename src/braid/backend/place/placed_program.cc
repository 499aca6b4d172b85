#include "braid/backend/place/placed_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/place/candidates.h"
#include "braid/backend/place/layout_backend.h"
#include "braid/backend/place/placement_problem.h"
#include "braid/backend/reference/reference_kernel.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/node_call.h"

namespace braid {

struct PlacedProgram::Step {
  NodeId node = -1;  ///< Run by its reference kernel where there is no other.
  std::unique_ptr<ComputeKernel> kernel;
  /// Values of the program and how they lie; -1 for what is left out.
  std::vector<std::pair<ValueId, ImageLayout>> inputs;
  std::vector<ValueId> outputs;  ///< Of kernels.
  ImageLayout writes = ImageLayout::plain;
};

namespace {

/// The group as a region of a backend that takes it.
std::optional<KernelCandidate> region_of(const FixedProgram& fixed,
                                         const std::vector<FoundBackend>& backends,
                                         const PlacedGroup& group) {
  const auto count = static_cast<NodeId>(group.nodes.size());
  const bool follow = group.nodes.back() - group.nodes.front() + 1 == count;
  if (!follow || group.layouts != KernelLayouts{}) return std::nullopt;
  for (const FoundBackend& found : backends) {
    if (!found.backend || found.name != group.backend) continue;
    for (const BackendPattern& each : found.backend->regions) {
      if (each.name != group.pattern) continue;
      if (!each.accepts(region_job(fixed.program, group.nodes, fixed.forms))) continue;
      return KernelCandidate{&*found.backend, &each, {}, group.nodes, {}};
    }
  }
  return std::nullopt;
}

KernelCandidate candidate_of(const std::vector<KernelCandidate>& candidates,
                             const PlacedGroup& group) {
  for (const KernelCandidate& each : candidates) {
    if (each.nodes != group.nodes || each.layouts != group.layouts) continue;
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

/// Writes the steps of a placement, with turns where they are first needed.
class PlacedProgram::Builder {
 public:
  Builder(PlacedProgram& placed, const FixedProgram& fixed, const ProgramPlacement& placement)
      : placed_(placed),
        fixed_(fixed),
        placement_(placement),
        graph_(op_graph_of(placed.program_)),
        lies_(fixed.program.values.size()) {
    for (const ProgramInput& each : fixed.program.inputs) set_lies(each.value, ImageLayout::plain);
    for (std::size_t v = 0; v < lies_.size(); ++v) {
      if (fixed.program.values[v].constant) lies_[v] = {true, false, false};
    }
  }

  const ProgramOpGraph& graph() const { return graph_; }

  void add(const PlacedGroup& group, const KernelCandidate& candidate) {
    for (const auto& [value, layout] : layouts_read(fixed_, graph_, candidate)) {
      need(value, layout);
    }
    auto step = std::make_unique<Step>();
    step->node = group.nodes.back();
    step->writes = group.layouts.writes;
    if (candidate.backend == nullptr) {
      for (const ValueId each : fixed_.program.nodes[at(step->node)].inputs) {
        step->inputs.emplace_back(each, ImageLayout::plain);
      }
    } else {
      make_kernel(group, candidate, *step);
    }
    for (const ValueId value : values_written(fixed_, candidate)) set_lies(value, step->writes);
    placed_.steps_.push_back(std::move(step));
  }

  /// Turns a value to a layout unless it lies so, by way of others if the placement says so.
  void need(ValueId value, ImageLayout layout) {
    if (lies_[at(value)][at(static_cast<int>(layout))]) return;
    for (const PlacedTurn& turn : placement_.turns) {
      if (turn.value != value || turn.to != layout) continue;
      need(value, turn.from);
      auto step = std::make_unique<Step>();
      step->kernel = turning_pattern(turn.from, turn.to).make({});
      step->inputs.emplace_back(value, turn.from);
      step->outputs = {value};
      step->writes = layout;
      keep(value, layout);
      placed_.steps_.push_back(std::move(step));
      set_lies(value, layout);
      return;
    }
    throw Error(fmt::format("nothing turns {} to the layout {}",
                            fixed_.program.values[at(value)].name, name_of(layout)),
                "place the program again");
  }

 private:
  void set_lies(ValueId value, ImageLayout layout) {
    lies_[at(value)][at(static_cast<int>(layout))] = true;
  }

  void keep(ValueId value, ImageLayout layout) {
    const TensorForm& form = fixed_.forms[at(value)];
    placed_.tensors_[at(static_cast<int>(layout))][at(value)] =
        std::make_shared<DenseTensor>(form.type, form.shape);
  }

  void make_kernel(const PlacedGroup& group, const KernelCandidate& candidate, Step& step) {
    const KernelJob job = candidate_job(fixed_, graph_, candidate);
    step.kernel = candidate.pattern->make(job);
    if (step.kernel == nullptr) {
      throw Error(fmt::format("{} makes no kernel for {}", group.backend, group.pattern));
    }
    // The region's inputs are what it reads that is no constant, each once.
    for (const auto& read : layouts_read(fixed_, graph_, candidate)) step.inputs.push_back(read);
    step.outputs = candidate.is_region()
                       ? values_written(fixed_, candidate)
                       : std::vector{graph_.program_value[at(candidate.match.nodes.back())]};
    for (const ValueId output : step.outputs) keep(output, step.writes);
  }

  PlacedProgram& placed_;
  const FixedProgram& fixed_;
  const ProgramPlacement& placement_;
  ProgramOpGraph graph_;
  std::vector<std::array<bool, all_layouts.size()>> lies_;  ///< By value and layout.
};

PlacedProgram::PlacedProgram(const FixedProgram& fixed, const ProgramPlacement& placement,
                             const std::vector<FoundBackend>& backends)
    : program_(fixed.program), fed_(fixed.program.values.size(), nullptr) {
  for (Tensors& each : tensors_) each.resize(fixed.program.values.size());
  for (std::size_t v = 0; v < program_.values.size(); ++v) {
    // Constants are never written, as no node has them as an output.
    tensors_[0][v] = std::const_pointer_cast<DenseTensor>(program_.values[v].constant);
  }
  Builder builder(*this, fixed, placement);
  const std::vector<KernelCandidate> candidates =
      kernel_candidates(fixed, builder.graph(), backends);
  for (const PlacedGroup& group : placement.groups) {
    const std::optional<KernelCandidate> region = region_of(fixed, backends, group);
    builder.add(group, region ? *region : candidate_of(candidates, group));
  }
  for (const ValueId output : program_.outputs) builder.need(output, ImageLayout::plain);
}

PlacedProgram::~PlacedProgram() = default;

void PlacedProgram::run_reference(const Step& step, std::span<const DenseTensor* const> operands) {
  const ProgramNode& node = program_.nodes[at(step.node)];
  std::vector<DenseTensor> results =
      reference_kernel(node.domain, node.operation)(NodeCall(program_, node, operands));
  for (std::size_t i = 0; i < std::min(results.size(), node.outputs.size()); ++i) {
    if (node.outputs[i] < 0) continue;
    tensors_[0][at(node.outputs[i])] = std::make_shared<DenseTensor>(std::move(results[i]));
  }
}

std::vector<DenseTensor> PlacedProgram::run(std::span<const DenseTensor> inputs) {
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    fed_[at(program_.inputs[i].value)] = &inputs[i];
  }
  const auto tensor = [&](ValueId value, ImageLayout layout) -> const DenseTensor* {
    if (value < 0) return nullptr;
    const bool is_fed = layout == ImageLayout::plain && fed_[at(value)] != nullptr;
    return is_fed ? fed_[at(value)] : tensors_[at(static_cast<int>(layout))][at(value)].get();
  };
  std::vector<const DenseTensor*> operands;
  std::vector<DenseTensor*> written;
  for (const std::unique_ptr<Step>& step : steps_) {
    operands.clear();
    for (const auto& [value, layout] : step->inputs) operands.push_back(tensor(value, layout));
    if (step->kernel == nullptr) {
      run_reference(*step, operands);
    } else {
      written.clear();
      for (const ValueId output : step->outputs) {
        written.push_back(tensors_[at(static_cast<int>(step->writes))][at(output)].get());
      }
      step->kernel->run_all(operands, written);
    }
  }
  std::vector<DenseTensor> outputs;
  for (const ValueId id : program_.outputs) outputs.push_back(*tensor(id, ImageLayout::plain));
  return outputs;
}

}  // namespace braid
