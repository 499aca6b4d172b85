#include "braid/chip/cores/core_block.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace braid {
namespace {

/// No more than so many of these operators can run at once: they are covered by so many chains,
/// each put on the first that ends before it.
std::size_t most_at_once(const std::vector<BlockOperator>& operators, bool counts(CoreKind)) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (!counts(operators[i].work.kind)) continue;
    const auto chain = std::find_if(ends.begin(), ends.end(),
                                    [&](std::size_t end) { return operators[i].before.test(end); });
    if (chain == ends.end()) {
      ends.push_back(i);
    } else {
      *chain = i;
    }
  }
  return ends.size();
}

bool is_any(CoreKind) { return true; }
bool is_tensor(CoreKind kind) { return kind == CoreKind::tensor; }
bool is_vector(CoreKind kind) { return kind == CoreKind::vector; }

bool any_fused(const std::vector<BlockOperator>& operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [](const auto& op) { return op.work.kind == CoreKind::fused; });
}

/// With as many pairs as operators could run at once, one is always free as a whole. With as many
/// cores beside the pairs as operators of that kind alone could run at once, these never need a
/// paired one, and fused ones wait for the other kind only.
BlockCores cores_that_run_out(const CoreCounts& counts,
                              const std::vector<BlockOperator>& operators) {
  const auto tensor = static_cast<std::size_t>(counts.tensor);
  const auto vector = static_cast<std::size_t>(counts.vector);
  const std::size_t pairs = std::min(tensor, vector);
  if (pairs >= most_at_once(operators, is_any)) return {};
  const auto limited = [&](std::size_t cores, bool counted(CoreKind)) {
    return cores < most_at_once(operators, counted) ? cores : 0;
  };
  const bool fused = any_fused(operators);
  const bool lone_tensor =
      fused && vector <= tensor && tensor - pairs >= most_at_once(operators, is_tensor);
  const bool lone_vector =
      fused && tensor <= vector && vector - pairs >= most_at_once(operators, is_vector);
  if (fused && !lone_tensor && !lone_vector) return {tensor, vector, pairs};
  BlockCores cores;
  if (!lone_tensor || lone_vector) cores.tensor = limited(tensor, needs_tensor_core);
  if (!lone_vector) cores.vector = limited(vector, needs_vector_core);
  return cores;
}

/// As many as operators could use at once: those that are spread over all of a kind take them all.
BlockCores cores_in_use(const CoreCounts& counts, const std::vector<BlockOperator>& operators) {
  const auto least = [&](std::int64_t cores, bool counted(CoreKind)) {
    return std::min(static_cast<std::size_t>(cores), most_at_once(operators, counted));
  };
  if (!any_fused(operators)) {
    return {least(counts.tensor, is_tensor), least(counts.vector, is_vector), 0};
  }
  const std::size_t pairs = least(counts.pairs(), is_any);
  return {pairs + least(counts.tensor - counts.pairs(), is_tensor),
          pairs + least(counts.vector - counts.pairs(), is_vector), pairs};
}

/// Twins are alike in all that a schedule can see: whichever begins first is called the first.
void find_twins(std::vector<BlockOperator>& operators) {
  for (std::size_t i = 1; i < operators.size(); ++i) {
    for (std::size_t j = i; j-- > 0 && operators[i].twin < 0;) {
      if (operators[i].work == operators[j].work && operators[i].earlier == operators[j].earlier &&
          operators[i].later == operators[j].later) {
        operators[i].twin = static_cast<std::int32_t>(j);
      }
    }
  }
}

void find_alike(std::vector<BlockOperator>& operators) {
  using Form = std::tuple<CoreKind, double, double, std::vector<std::int32_t>>;
  std::map<Form, std::int32_t> numbers;
  for (std::size_t i = operators.size(); i-- > 0;) {
    BlockOperator& op = operators[i];
    std::vector<std::int32_t> later;
    for (const std::int32_t next : op.later) {
      const BlockOperator& other = operators[static_cast<std::size_t>(next)];
      later.push_back(other.earlier.size() == 1 ? other.alike : -1);
    }
    std::sort(later.begin(), later.end());
    if (!later.empty() && later.front() < 0) continue;
    Form form(op.work.kind, op.work.one_core_s, op.work.all_cores_s, std::move(later));
    op.alike = numbers.try_emplace(std::move(form), static_cast<std::int32_t>(numbers.size()))
                   .first->second;
  }
}

void link_operators(std::vector<BlockOperator>& operators) {
  for (std::size_t i = 0; i < operators.size(); ++i) {
    Bitset through(operators.size());
    operators[i].before.for_each([&](std::size_t j) { through |= operators[j].before; });
    (operators[i].before - through).for_each([&](std::size_t j) {
      operators[i].earlier.push_back(static_cast<std::int32_t>(j));
      operators[j].later.push_back(static_cast<std::int32_t>(i));
    });
  }
}

constexpr std::size_t kParts = 8, kLeastOperators = 16;

/// Fills in after_s and the block's bound_s: what comes after an operator takes as long as its
/// longest chain, and as each of the bounds says of all of it.
void find_tails(CoreBlock& block) {
  const std::size_t count = block.operators.size();
  std::vector<std::vector<double>> sums(block.bounds.size(), std::vector<double>(count, 0));
  for (std::size_t i = 0; i < count; ++i) {
    block.operators[i].before.for_each([&](std::size_t j) {
      for (std::size_t b = 0; b < sums.size(); ++b) sums[b][j] += block.bounds[b].cost_s[i];
    });
  }
  for (std::size_t i = count; i-- > 0;) {
    BlockOperator& op = block.operators[i];
    for (const std::vector<double>& sum : sums) op.after_s = std::max(op.after_s, sum[i]);
    for (const std::int32_t later : op.later) {
      const BlockOperator& next = block.operators[static_cast<std::size_t>(later)];
      op.after_s = std::max(op.after_s, next.shortest_s + next.after_s);
    }
  }
  for (const BlockOperator& op : block.operators) {
    if (op.earlier.empty()) block.bound_s = std::max(block.bound_s, op.shortest_s + op.after_s);
  }
  for (const MeanBound& bound : block.bounds) {
    block.bound_s =
        std::max(block.bound_s, std::accumulate(bound.cost_s.begin(), bound.cost_s.end(), 0.0));
  }
}

}  // namespace

CoreBlock make_block(const CoreProblem& problem, const OperatorOrder& order, std::size_t first,
                     std::size_t last) {
  CoreBlock block;
  block.rule = problem.rule;
  block.operators.resize(last - first);
  for (std::size_t i = first; i < last; ++i) {
    block.places.push_back(static_cast<std::int32_t>(i));
    BlockOperator& op = block.operators[i - first];
    op.work = problem.operators[static_cast<std::size_t>(order.operators[i])];
    op.may_spread = op.work.all_cores_s < op.work.one_core_s;
    op.shortest_s = std::min(op.work.one_core_s, op.work.all_cores_s);
    op.before = Bitset(last - first);
    order.before[i].for_each([&](std::size_t j) {
      if (j >= first) op.before.set(j - first);
    });
  }
  link_operators(block.operators);
  find_twins(block.operators);
  find_alike(block.operators);
  block.cores = block.rule == AllCoresRule::alone
                    ? cores_that_run_out(problem.cores, block.operators)
                    : cores_in_use(problem.cores, block.operators);
  if (block.cores.pairs > 0) {
    block.fused = static_cast<std::size_t>(
        std::count_if(block.operators.begin(), block.operators.end(),
                      [](const auto& op) { return op.work.kind == CoreKind::fused; }));
  }
  if (block.operators.size() == 1) {  // Its shortest time is its bound.
    find_tails(block);
    return block;
  }
  if (block.cores.tensor > 0) block.bounds.push_back(core_bound(block, CoreKind::tensor));
  if (block.cores.vector > 0) block.bounds.push_back(core_bound(block, CoreKind::vector));
  Bitset all(block.operators.size());
  for (std::size_t i = 0; i < block.operators.size(); ++i) all.set(i);
  block.bounds.push_back(mean_bound(block, all));
  find_tails(block);
  return block;
}

void add_bounds_along(const std::vector<std::int32_t>& order, CoreBlock& block) {
  if (order.size() < kLeastOperators) return;
  Bitset left(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) left.set(i);
  std::size_t begun = 0;
  for (std::size_t part = 1; part < kParts; ++part) {
    for (; begun < part * order.size() / kParts; ++begun) {
      left.reset(static_cast<std::size_t>(order[begun]));
    }
    block.bounds.push_back(mean_bound(block, left));
  }
  find_tails(block);
}

}  // namespace braid
