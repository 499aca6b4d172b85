#include "braid/backend/place/region_answers.h"

#include <algorithm>

#include "braid/backend/executor.h"
#include "braid/base/index.h"

namespace braid {

RegionAnswers::RegionAnswers(const FixedProgram& fixed, const std::vector<KernelCandidate>& regions)
    : fixed_(fixed) {
  const Program& program = fixed.program;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    tensors_.emplace(program.inputs[i].value, fixed.inputs[i]);
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    tensors_.emplace(program.outputs[i], fixed.expected[i]);
  }
  std::vector<bool> is_wanted(program.values.size(), false);
  bool any = false;
  for (const KernelCandidate& each : regions) {
    const RegionBorder border = region_border(program, each.nodes);
    for (const std::vector<ValueId>* values : {&border.reads, &border.writes}) {
      for (const ValueId value : *values) {
        if (tensors_.contains(value)) continue;
        is_wanted[at(value)] = any = true;
      }
    }
  }
  if (!any) return;
  run(program, fixed.inputs,
      [&](NodeId node, std::span<const DenseTensor* const>, std::span<const DenseTensor> results) {
        const std::vector<ValueId>& outputs = program.nodes[at(node)].outputs;
        for (std::size_t i = 0; i < std::min(outputs.size(), results.size()); ++i) {
          if (outputs[i] < 0 || !is_wanted[at(outputs[i])]) continue;
          tensors_.emplace(outputs[i], results[i]);
        }
      });
}

KnownAnswer RegionAnswers::of(const KernelCandidate& region) const {
  const RegionBorder border = region_border(fixed_.program, region.nodes);
  KnownAnswer answer;
  for (const ValueId value : border.reads) answer.inputs.push_back(tensors_.at(value));
  for (const ValueId value : border.writes) answer.outputs.push_back(tensors_.at(value));
  return answer;
}

}  // namespace braid
