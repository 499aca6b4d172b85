#include "braid/planners/phaze/stage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/infinity.h"

namespace braid {

double PhazeStageCost::peak_bytes(std::int64_t from_end) const {
  double most = 0;
  for (const auto& [held, stash] : memory_bytes) {
    most = std::max(most, held + static_cast<double>(from_end - 1) * stash);
  }
  return most;
}

std::int64_t PhazeStageCost::most_from_end(double available_bytes) const {
  if (!(peak_bytes(1) <= available_bytes)) return 0;
  double most = std::numeric_limits<std::int32_t>::max();
  for (const auto& [held, stash] : memory_bytes) {
    if (stash > 0) most = std::min(most, std::floor((available_bytes - held) / stash) + 1);
  }
  auto from_end = static_cast<std::int64_t>(most);
  // The quotient is rounded.
  if (peak_bytes(from_end + 1) <= available_bytes) ++from_end;
  while (from_end > 1 && !(peak_bytes(from_end) <= available_bytes)) --from_end;
  return std::min<std::int64_t>(from_end, std::numeric_limits<std::int32_t>::max());
}

PhazeStageCoster::PhazeStageCoster(const PhazeProblem& problem)
    : problem_(problem),
      in_(problem.names.size()),
      out_(problem.names.size()),
      group_(problem.names.size()),
      done_s_(problem.names.size()),
      depth_(problem.names.size()),
      at_depth_(problem.names.size()) {
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    out_[static_cast<std::size_t>(problem.edges[e].first)].push_back(e);
    in_[static_cast<std::size_t>(problem.edges[e].second)].push_back(e);
  }
}

PhazeStageCost PhazeStageCoster::cost(const PhazeWidth& width, const Bitset& layers,
                                      std::int32_t branches) {
  free_s_.resize(static_cast<std::size_t>(branches));
  order_.clear();
  layers.for_each([&](std::size_t layer) { order_.push_back(layer); });
  PhazeStageCost cost;
  cost.forward_s = forward_s(width, layers);
  cost.last_backward_s = backward_s(width, layers, false);
  cost.backward_s = problem_.recompute ? backward_s(width, layers, true) : cost.last_backward_s;
  add_memory(width, layers, cost);
  const bool split = std::any_of(order_.begin(), order_.end(), [&](std::size_t layer) {
    return width.layers[layer].tensor_parallel;
  });
  cost.devices = static_cast<std::int64_t>(branches) * (split ? width.tp : 1);
  return cost;
}

/// When the inputs of `layer` are on `group`; stored ones are there from the start.
double PhazeStageCoster::inputs_s(const PhazeWidth& width, const Bitset& layers, std::size_t layer,
                                  std::size_t group, bool from_outside) const {
  double ready_s = 0;
  for (const std::size_t e : in_[layer]) {
    const auto source = static_cast<std::size_t>(problem_.edges[e].first);
    if (layers.test(source)) {
      const double moving_s = group_[source] == group ? 0 : transfer_s(width, e);
      ready_s = std::max(ready_s, done_s_[source] + moving_s);
    } else if (from_outside) {
      ready_s = std::max(ready_s, transfer_s(width, e));
    }
  }
  return ready_s;
}

/// Chooses groups; returns when all layers are done.
double PhazeStageCoster::forward_s(const PhazeWidth& width, const Bitset& layers) {
  std::fill(free_s_.begin(), free_s_.end(), 0);
  for (const std::size_t layer : order_) {
    double start_s = kInfinity;
    std::size_t chosen = 0;
    for (std::size_t group = 0; group < free_s_.size(); ++group) {
      const double at_s = std::max(free_s_[group], inputs_s(width, layers, layer, group, true));
      if (!(at_s < start_s)) continue;
      start_s = at_s;
      chosen = group;
    }
    group_[layer] = chosen;
    done_s_[layer] = start_s + width.layers[layer].forward_s;
    free_s_[chosen] = done_s_[layer];
  }
  return *std::max_element(free_s_.begin(), free_s_.end());
}

/// Repeats the forward pass if asked to, then goes back.
double PhazeStageCoster::backward_s(const PhazeWidth& width, const Bitset& layers, bool repeat) {
  std::fill(free_s_.begin(), free_s_.end(), 0);
  for (const std::size_t layer : order_) {
    if (!repeat) break;
    const std::size_t group = group_[layer];
    const double start_s = std::max(free_s_[group], inputs_s(width, layers, layer, group, false));
    done_s_[layer] = start_s + width.layers[layer].forward_s;
    free_s_[group] = done_s_[layer];
  }
  for (auto layer = order_.rbegin(); layer != order_.rend(); ++layer) {
    const std::size_t group = group_[*layer];
    double start_s = free_s_[group];
    for (const std::size_t e : out_[*layer]) {
      const auto target = static_cast<std::size_t>(problem_.edges[e].second);
      const bool inside = layers.test(target);
      const double moving_s = inside && group_[target] == group ? 0 : transfer_s(width, e);
      start_s = std::max(start_s, (inside ? done_s_[target] : 0) + moving_s);
    }
    done_s_[*layer] = start_s + width.layers[*layer].backward_s;
    free_s_[group] = done_s_[*layer];
  }
  return *std::max_element(free_s_.begin(), free_s_.end());
}

void PhazeStageCoster::add_memory(const PhazeWidth& width, const Bitset& layers,
                                  PhazeStageCost& cost) {
  cost.memory_bytes.assign(free_s_.size(), {0, 0});
  std::vector<double> weight_bytes(free_s_.size(), 0);
  for (const std::size_t layer : order_) {
    const PhazeLayer& values = width.layers[layer];
    auto& [held, stash] = cost.memory_bytes[group_[layer]];
    weight_bytes[group_[layer]] += values.weight_bytes;
    held += problem_.held_bytes(values) + values.activation_bytes;
    if (!problem_.recompute) {
      stash += values.activation_bytes;
      continue;
    }
    for (const std::size_t e : in_[layer]) {
      const auto source = static_cast<std::size_t>(problem_.edges[e].first);
      if (!layers.test(source)) stash += width.edge_bytes[e];
    }
  }
  cost.weight_bytes = *std::max_element(weight_bytes.begin(), weight_bytes.end());
}

std::int32_t PhazeStageCoster::useful_branches(const Bitset& layers) {
  std::fill(depth_.begin(), depth_.end(), 0);
  std::fill(at_depth_.begin(), at_depth_.end(), 0);
  std::int32_t most = 1;
  layers.for_each([&](std::size_t layer) {
    for (const std::size_t e : in_[layer]) {
      const auto source = static_cast<std::size_t>(problem_.edges[e].first);
      if (layers.test(source)) depth_[layer] = std::max(depth_[layer], depth_[source] + 1);
    }
    most = std::max(most, ++at_depth_[static_cast<std::size_t>(depth_[layer])]);
  });
  return most;
}

}  // namespace braid
