#include "braid/backend/place/fixed_program.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "braid/backend/executor.h"
#include "braid/backend/place/compose_operations.h"
#include "braid/backend/place/fold_normalization.h"
#include "braid/backend/reference/reference_kernel.h"
#include "braid/base/index.h"
#include "braid/program/node_call.h"

namespace braid {
namespace {

/// How long the reference kernel of a node takes: the least of a few runs where they are short, as
/// the first meets cold caches.
double reference_s(const Program& program, const ProgramNode& node,
                   std::span<const DenseTensor* const> operands, double first_s) {
  constexpr double short_s = 0.02;
  double least_s = first_s;
  for (int again = 0; again < 3 && first_s < short_s; ++again) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(
        reference_kernel(node.domain, node.operation)(NodeCall(program, node, operands)));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    least_s = std::min(least_s, passed.count());
  }
  return least_s;
}

/// Operations that read no more of their operand than its shape.
bool reads_shape_alone(const ProgramNode& node) {
  return node.domain.empty() && (node.operation == "Shape" || node.operation == "Size");
}

}  // namespace

FixedProgram fixed_program(const Program& program, std::span<const DenseTensor> inputs) {
  FixedProgram fixed{program,
                     std::vector<TensorForm>(program.values.size()),
                     {},
                     {inputs.begin(), inputs.end()},
                     {}};
  fixed.program.nodes.clear();
  for (std::size_t v = 0; v < fixed.forms.size(); ++v) {
    if (program.values[v].constant) fixed.forms[v] = form_of(*program.values[v].constant);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    fixed.forms[at(program.inputs[i].value)] = form_of(inputs[i]);
    fixed.program.inputs[i].shape = inputs[i].shape;
  }
  auto before = std::chrono::steady_clock::now();
  fixed.expected = run(
      program, inputs,
      [&](NodeId number, std::span<const DenseTensor* const> operands,
          std::span<const DenseTensor> results) {
        const auto now = std::chrono::steady_clock::now();
        const ProgramNode& node = program.nodes[at(number)];
        std::vector<ProgramValue>& values = fixed.program.values;
        const bool is_constant =
            reads_shape_alone(node) ||
            std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
              return input < 0 || values[at(input)].constant != nullptr;
            });
        for (std::size_t i = 0; i < std::min(node.outputs.size(), results.size()); ++i) {
          if (node.outputs[i] < 0) continue;
          fixed.forms[at(node.outputs[i])] = form_of(results[i]);
          if (!is_constant) continue;
          values[at(node.outputs[i])].constant = std::make_shared<const DenseTensor>(results[i]);
        }
        if (!is_constant) {
          fixed.program.nodes.push_back(node);
          const std::chrono::duration<double> first = now - before;
          fixed.reference_s.push_back(reference_s(program, node, operands, first.count()));
        }
        before = std::chrono::steady_clock::now();
      });
  fold_batch_normalizations(fixed);
  compose_operations(fixed);
  return fixed;
}

}  // namespace braid
