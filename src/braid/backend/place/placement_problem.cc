#include "braid/backend/place/placement_problem.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

using Read = std::pair<ValueId, ImageLayout>;

void add_once(std::vector<Read>& reads, const Read& read) {
  if (std::find(reads.begin(), reads.end(), read) == reads.end()) reads.push_back(read);
}

}  // namespace

std::vector<Read> layouts_read(const FixedProgram& fixed, const ProgramOpGraph& graph,
                               const KernelCandidate& candidate) {
  const Program& program = fixed.program;
  std::vector<Read> reads;
  if (candidate.backend == nullptr) {
    for (const ValueId input : program.nodes[at(candidate.nodes.front())].inputs) {
      if (input < 0 || program.values[at(input)].constant) continue;
      add_once(reads, {input, ImageLayout::plain});
    }
    return reads;
  }
  if (candidate.is_region()) {
    for (const ValueId value : region_border(program, candidate.nodes).reads) {
      reads.emplace_back(value, ImageLayout::plain);
    }
    return reads;
  }
  const KernelLayouts& layouts = candidate.layouts;
  for (std::size_t i = 0; i < candidate.match.leaves.size(); ++i) {
    const ValueId value = graph.program_value[at(candidate.match.leaves[i])];
    if (program.values[at(value)].constant) continue;
    const ImageLayout wanted = i == 0 ? layouts.reads : layouts.writes;
    const bool lies = can_lie(fixed.forms[at(value)], wanted);
    add_once(reads, {value, lies ? wanted : ImageLayout::plain});
  }
  return reads;
}

std::vector<ValueId> values_written(const FixedProgram& fixed, const KernelCandidate& candidate) {
  if (candidate.is_region()) return region_border(fixed.program, candidate.nodes).writes;
  std::vector<ValueId> written;
  for (const ValueId output : fixed.program.nodes[at(candidate.nodes.back())].outputs) {
    if (output >= 0) written.push_back(output);
  }
  return written;
}

LaidValues laid_values(const FixedProgram& fixed, const ProgramOpGraph& graph,
                       const std::vector<KernelCandidate>& candidates) {
  LaidValues laid;
  laid.number_of.assign(fixed.program.values.size(), -1);
  const auto add = [&](ValueId value, ImageLayout layout) {
    if (layout == ImageLayout::plain || laid.number_of[at(value)] >= 0) return;
    laid.number_of[at(value)] = static_cast<std::int32_t>(laid.values.size());
    laid.values.push_back(value);
  };
  for (const KernelCandidate& each : candidates) {
    for (const auto& [value, layout] : layouts_read(fixed, graph, each)) add(value, layout);
    for (const ValueId value : values_written(fixed, each)) add(value, each.layouts.writes);
  }
  return laid;
}

PlacementProblem placement_problem(const FixedProgram& fixed, const ProgramOpGraph& graph,
                                   const std::vector<KernelCandidate>& candidates,
                                   const LaidValues& laid) {
  PlacementProblem problem;
  problem.node_count = static_cast<std::int32_t>(fixed.program.nodes.size());
  const auto format = [](ImageLayout layout) { return static_cast<std::int8_t>(layout); };
  for (const KernelCandidate& each : candidates) {
    PlacementCandidate candidate{.nodes = each.nodes};
    for (const auto& [value, layout] : layouts_read(fixed, graph, each)) {
      const std::int32_t number = laid.number_of[at(value)];
      if (number >= 0) candidate.reads.push_back({number, format(layout)});
    }
    for (const ValueId value : values_written(fixed, each)) {
      const std::int32_t number = laid.number_of[at(value)];
      if (number >= 0) candidate.writes.push_back({number, format(each.layouts.writes)});
    }
    problem.candidates.push_back(std::move(candidate));
  }
  problem.values.formats = static_cast<int>(all_layouts.size());
  problem.values.values.resize(laid.values.size());
  const auto placed = [&](ValueId value) -> PlacedValue* {
    const std::int32_t number = laid.number_of[at(value)];
    return number < 0 ? nullptr : &problem.values.values[at(number)];
  };
  for (std::int32_t n = 0; n < problem.node_count; ++n) {
    const ProgramNode& node = fixed.program.nodes[at(n)];
    for (const ValueId input : node.inputs) {
      if (input < 0) continue;
      if (PlacedValue* value = placed(input)) value->readers.push_back(n);
    }
    for (const ValueId output : node.outputs) {
      if (output < 0) continue;
      if (PlacedValue* value = placed(output)) value->producer = n;
    }
  }
  for (const ValueId output : fixed.program.outputs) {
    if (PlacedValue* value = placed(output)) value->is_output = true;
  }
  return problem;
}

}  // namespace braid
