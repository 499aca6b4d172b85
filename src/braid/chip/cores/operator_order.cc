#include "braid/chip/cores/operator_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>

namespace braid {

std::vector<std::int32_t> topological_operators(const CoreProblem& problem) {
  const std::size_t count = problem.operators.size();
  std::vector<std::vector<std::int32_t>> later(count);
  std::vector<std::size_t> waits_for(count, 0);
  for (const auto& [from, to] : problem.edges) {
    later[static_cast<std::size_t>(from)].push_back(to);
    ++waits_for[static_cast<std::size_t>(to)];
  }
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free;
  for (std::size_t i = 0; i < count; ++i) {
    if (waits_for[i] == 0) free.push(static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> order;
  order.reserve(count);
  while (!free.empty()) {
    order.push_back(free.top());
    free.pop();
    for (const std::int32_t to : later[static_cast<std::size_t>(order.back())]) {
      if (--waits_for[static_cast<std::size_t>(to)] == 0) free.push(to);
    }
  }
  return order;
}

OperatorOrder operator_order(const CoreProblem& problem) {
  const std::size_t count = problem.operators.size();
  const std::vector<std::int32_t> all = topological_operators(problem);
  OperatorOrder order;
  std::vector<std::size_t> place(count, count);
  for (const std::int32_t op : all) {
    if (problem.operators[static_cast<std::size_t>(op)].kind == CoreKind::none) continue;
    place[static_cast<std::size_t>(op)] = order.operators.size();
    order.operators.push_back(op);
  }
  std::vector<std::vector<std::int32_t>> earlier(count);
  for (const auto& [from, to] : problem.edges) {
    earlier[static_cast<std::size_t>(to)].push_back(from);
  }
  std::vector<Bitset> before(count, Bitset(order.operators.size()));
  order.before.reserve(order.operators.size());
  for (const std::int32_t op : all) {
    const auto at = static_cast<std::size_t>(op);
    for (const std::int32_t from : earlier[at]) {
      const auto source = static_cast<std::size_t>(from);
      before[at] |= before[source];
      if (place[source] < count) before[at].set(place[source]);
    }
    if (place[at] < count) order.before.push_back(before[at]);
  }
  return order;
}

std::vector<std::size_t> cut_in_series(OperatorOrder& order) {
  const std::size_t count = order.operators.size();
  std::vector<std::size_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) sizes[i] = order.before[i].count();
  // By how many come before: what comes before an operator has fewer before itself, and of a run
  // all have fewer than any of the next.
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
  std::vector<std::size_t> new_place(count);
  for (std::size_t i = 0; i < count; ++i) new_place[places[i]] = i;
  OperatorOrder sorted;
  sorted.before.assign(count, Bitset(count));
  for (std::size_t i = 0; i < count; ++i) {
    sorted.operators.push_back(order.operators[places[i]]);
    order.before[places[i]].for_each([&](std::size_t j) { sorted.before[i].set(new_place[j]); });
  }
  order = std::move(sorted);

  std::vector<std::size_t> cuts = {count};
  if (count == 0) return {0};
  Bitset common = order.before[count - 1];  // Before all from i on; never one of these.
  for (std::size_t i = count - 1; i > 0; --i) {
    common &= order.before[i];
    if (common.count() == i) cuts.push_back(i);
  }
  cuts.push_back(0);
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

}  // namespace braid
