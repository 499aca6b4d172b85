#include "braid/graph/topological_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

bool is_ordered(const Graph& graph) {
  for (std::size_t op = 0; op < graph.operators.size(); ++op) {
    for (const TensorId tensor : graph.operators[op].inputs) {
      if (graph.tensors[at(tensor)].producer >= static_cast<OperatorId>(op)) return false;
    }
  }
  return true;
}

/// One cycle among the operators that still wait for an input: each of them has such a predecessor.
std::vector<OperatorId> find_cycle(const Graph& graph, const std::vector<std::int32_t>& waiting) {
  const auto start = std::find_if(waiting.begin(), waiting.end(), [](auto n) { return n > 0; });
  auto op = static_cast<OperatorId>(start - waiting.begin());
  std::vector<std::int32_t> step_of(waiting.size(), -1);
  std::vector<OperatorId> path;
  while (step_of[at(op)] < 0) {
    step_of[at(op)] = static_cast<std::int32_t>(path.size());
    path.push_back(op);
    for (const TensorId tensor : graph.operators[at(op)].inputs) {
      const OperatorId producer = graph.tensors[at(tensor)].producer;
      if (producer >= 0 && waiting[at(producer)] > 0) {
        op = producer;
        break;
      }
    }
  }
  path.erase(path.begin(), path.begin() + step_of[at(op)]);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

Consumers::Consumers(const Graph& graph) : offsets_(graph.tensors.size() + 1, 0) {
  std::vector<OperatorId> last_reader(graph.tensors.size(), -1);
  const auto for_each_read = [&](auto&& visit) {
    std::fill(last_reader.begin(), last_reader.end(), -1);
    for (std::size_t op = 0; op < graph.operators.size(); ++op) {
      for (const TensorId tensor : graph.operators[op].inputs) {
        const auto reader = static_cast<OperatorId>(op);
        if (std::exchange(last_reader[at(tensor)], reader) != reader) visit(tensor, reader);
      }
    }
  };
  for_each_read([&](TensorId tensor, OperatorId) { ++offsets_[at(tensor) + 1]; });
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  operators_.resize(offsets_.back());
  std::vector<std::size_t> next(offsets_.begin(), offsets_.end() - 1);
  for_each_read([&](TensorId tensor, OperatorId op) { operators_[next[at(tensor)]++] = op; });
}

TopologicalOrder topological_order(const Graph& graph) {
  TopologicalOrder result;
  result.order.resize(graph.operators.size());
  if (is_ordered(graph)) {
    std::iota(result.order.begin(), result.order.end(), 0);
    return result;
  }
  result.order.clear();

  const Consumers consumers(graph);
  std::vector<std::int32_t> waiting(graph.operators.size(), 0);
  for (std::size_t tensor = 0; tensor < graph.tensors.size(); ++tensor) {
    if (graph.tensors[tensor].producer < 0) continue;
    for (const OperatorId op : consumers.of(static_cast<TensorId>(tensor))) ++waiting[at(op)];
  }
  std::priority_queue<OperatorId, std::vector<OperatorId>, std::greater<>> ready;
  for (std::size_t op = 0; op < waiting.size(); ++op) {
    if (waiting[op] == 0) ready.push(static_cast<OperatorId>(op));
  }
  while (!ready.empty()) {
    const OperatorId op = ready.top();
    ready.pop();
    result.order.push_back(op);
    for (const TensorId tensor : graph.operators[at(op)].outputs) {
      for (const OperatorId reader : consumers.of(tensor)) {
        if (--waiting[at(reader)] == 0) ready.push(reader);
      }
    }
  }
  if (result.order.size() < graph.operators.size()) result.cycle = find_cycle(graph, waiting);
  return result;
}

void reorder_operators(Graph& graph, const std::vector<OperatorId>& order) {
  if (std::is_sorted(order.begin(), order.end())) return;
  std::vector<OperatorId> place(order.size());
  std::vector<Operator> operators;
  operators.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[at(order[i])] = static_cast<OperatorId>(i);
    operators.push_back(std::move(graph.operators[at(order[i])]));
  }
  graph.operators = std::move(operators);
  for (Tensor& tensor : graph.tensors) {
    if (tensor.producer >= 0) tensor.producer = place[at(tensor.producer)];
  }
}

}  // namespace braid
