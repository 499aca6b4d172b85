#include "braid/chip/cores/schedule_cores.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "braid/base/rounding.h"
#include "braid/chip/cores/block_search.h"
#include "braid/chip/cores/core_assignment.h"
#include "braid/chip/cores/core_block.h"
#include "braid/chip/cores/operator_order.h"

namespace braid {
namespace {

/// Operators that take no core are when all before them have ended.
void place_views(const CoreProblem& problem, CoreSchedule& schedule) {
  std::vector<std::vector<std::int32_t>> earlier(problem.operators.size());
  for (const auto& [from, to] : problem.edges) {
    earlier[static_cast<std::size_t>(to)].push_back(from);
  }
  for (const std::int32_t op : topological_operators(problem)) {
    const auto at = static_cast<std::size_t>(op);
    if (problem.operators[at].kind != CoreKind::none) continue;
    PlacedOperator& placed = schedule.operators[at];
    for (const std::int32_t from : earlier[at]) {
      placed.start_s =
          std::max(placed.start_s, schedule.operators[static_cast<std::size_t>(from)].end_s);
    }
    placed.end_s = placed.start_s;
  }
}

}  // namespace

CoreOutcome schedule_cores(const CoreProblem& problem, std::int64_t most_work) {
  assert(is_valid(problem));
  OperatorOrder order = operator_order(problem);
  const std::vector<std::size_t> cuts = cut_in_series(order);
  std::vector<CoreBlock> blocks;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    blocks.push_back(make_block(problem, order, cuts[i], cuts[i + 1]));
  }
  std::vector<std::size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return blocks[a].operators.size() < blocks[b].operators.size();
  });
  CoreOutcome outcome;
  std::vector<BlockSolution> solutions(blocks.size());
  // What blocks do not need is for those after them, the large ones last.
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto left = static_cast<std::int64_t>(blocks.size() - i);
    const std::size_t at = by_size[i];
    solutions[at] = search_block(blocks[at], (most_work - outcome.work) / left);
    outcome.work += solutions[at].work;
  }
  CoreSchedule& schedule = outcome.schedule;
  schedule.operators.resize(problem.operators.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::vector<PlacedOperator> placed =
        assigned_cores(blocks[i], problem.cores, solutions[i].moves, schedule.makespan_s);
    for (std::size_t j = 0; j < placed.size(); ++j) {
      const std::int32_t op = order.operators[static_cast<std::size_t>(blocks[i].places[j])];
      schedule.operators[static_cast<std::size_t>(op)] = placed[j];
    }
    schedule.makespan_s += solutions[i].makespan_s;
    outcome.bound_s += solutions[i].bound_s;
  }
  place_views(problem, schedule);
  if (!is_proven(outcome.bound_s, schedule.makespan_s)) {
    outcome.status = CoreStatus::budget_exhausted;
  }
  return outcome;
}

}  // namespace braid
