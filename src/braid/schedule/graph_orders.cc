#include "braid/schedule/graph_orders.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/schedule/in_flight.h"
#include "braid/schedule/order_form.h"
#include "braid/schedule/schedule.h"

namespace braid {
namespace {

WorkOrder empty_order(const StageGraph& graph) {
  WorkOrder order;
  order.devices.resize(device_count(graph));
  return order;
}

/// The form that most schedules share: each stage's passes on the device of its own.
template <class Passes>
WorkOrder stage_by_stage(const StageGraph& graph, const Passes& passes) {
  WorkOrder order = empty_order(graph);
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    std::vector<Work>& device = order.devices[at(graph.stages[s].device)];
    device = passes(s);
    append_update(device, static_cast<std::int32_t>(s));
  }
  return order;
}

/// `forwards_first` forward passes, then input gradients with forward passes in turn, weight
/// gradients `lag` micro-batches behind until the input gradients are done.
std::vector<Work> halved_passes(std::int32_t stage, std::int64_t m, std::int64_t forwards_first,
                                std::int64_t lag) {
  std::vector<Work> passes;
  passes.reserve(3 * at(m));
  std::int64_t forwards = 0;
  std::int64_t weights = 0;
  for (std::int64_t k = 0; k < m; ++k) {
    for (; forwards < std::min(m, k + forwards_first); ++forwards) {
      passes.push_back({WorkKind::forward, stage, forwards});
    }
    passes.push_back({WorkKind::input_gradient, stage, k});
    for (; weights + lag <= k; ++weights) {
      passes.push_back({WorkKind::weight_gradient, stage, weights});
    }
  }
  for (; weights < m; ++weights) passes.push_back({WorkKind::weight_gradient, stage, weights});
  return passes;
}

/// ZB-H1 for reach 1, ZB-H2 for reach 2: how far both forward passes and weight gradients are moved
/// from where the dependencies put them, per step of depth.
WorkOrder zero_bubble_order(const StageGraph& graph, std::int64_t reach, const char* name) {
  require_own_devices(graph, name);
  require_one_size(graph, name);
  require_one_round(graph, name);
  const std::vector<int> depths = depths_of(graph);
  const int deepest = *std::max_element(depths.begin(), depths.end());
  return stage_by_stage(graph, [&](std::size_t s) {
    return halved_passes(static_cast<std::int32_t>(s), graph.micro_batches(s),
                         reach * (depths[s] - 1) + 1, reach * (deepest - depths[s]));
  });
}

}  // namespace

WorkOrder gpipe_order(const StageGraph& graph) {
  require_one_round(graph, "GPipe");
  WorkOrder order = empty_order(graph);
  std::vector<std::size_t> stages = topological_stages(depths_of(graph));
  const auto append = [&](std::size_t s, WorkKind kind) {
    std::vector<Work>& device = order.devices[at(graph.stages[s].device)];
    const auto stage = static_cast<std::int32_t>(s);
    const std::int64_t m = graph.micro_batches(s);
    for (std::int64_t k = 0; k < m; ++k) device.push_back({kind, stage, k});
    if (kind == WorkKind::backward) append_update(device, stage);
  };
  for (const std::size_t s : stages) append(s, WorkKind::forward);
  std::reverse(stages.begin(), stages.end());
  for (const std::size_t s : stages) append(s, WorkKind::backward);
  return order;
}

std::vector<Work> k_f_k_b_passes(std::int32_t stage, std::int64_t micro_batches, std::int64_t k,
                                 std::int64_t warm_up) {
  assert(k >= 1 && warm_up >= std::min(k, micro_batches));
  std::vector<Work> passes;
  passes.reserve(2 * at(micro_batches));
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  while (backwards < micro_batches) {
    const std::int64_t forwards_end =
        std::min(micro_batches, forwards + (forwards == 0 ? warm_up : k));
    for (; forwards < forwards_end; ++forwards) {
      passes.push_back({WorkKind::forward, stage, forwards});
    }
    const std::int64_t backwards_end =
        forwards == micro_batches ? micro_batches : backwards + std::min(k, micro_batches);
    for (; backwards < backwards_end; ++backwards) {
      passes.push_back({WorkKind::backward, stage, backwards});
    }
  }
  return passes;
}

WorkOrder k_f_k_b_order(const StageGraph& graph, std::span<const std::int64_t> k,
                        std::span<const std::int64_t> warm_up) {
  require_own_devices(graph, "kFkB");
  require_one_round(graph, "kFkB");
  assert(k.size() == graph.stages.size() && warm_up.size() == k.size());
  for (std::size_t s = 0; s < k.size(); ++s) {
    if (k[s] < 1 || warm_up[s] < std::min(k[s], graph.micro_batches(s))) {
      throw Error("stage " + std::to_string(s + 1) + " has k = " + std::to_string(k[s]) + " with " +
                      std::to_string(warm_up[s]) + " warm-up passes",
                  "kFkB needs k of at least 1 and as many warm-up passes");
    }
  }
  WorkOrder order = stage_by_stage(graph, [&](std::size_t s) {
    return k_f_k_b_passes(static_cast<std::int32_t>(s), graph.micro_batches(s), k[s], warm_up[s]);
  });
  check_work_order(graph, order);
  return order;
}

WorkOrder one_f_one_b_order(const StageGraph& graph) {
  const std::vector<std::int64_t> k(graph.stages.size(), 1);
  return k_f_k_b_order(graph, k, warm_ups_of(graph, k, table_in_flight(graph, k)));
}

WorkOrder interleaved_order(const StageGraph& graph) {
  const char* name = "interleaving";
  require_one_round(graph, name);
  const std::size_t devices = device_count(graph);
  require_chain(graph, name, [&](std::size_t q) { return q % devices; });
  require_one_size(graph, name);
  const std::int64_t m = graph.micro_batches(0);
  const auto last = static_cast<std::int32_t>(graph.stages.size()) - 1;
  if (graph.stages.size() % devices != 0) {
    throw Error("stage " + std::to_string(last + 1) + " ends the chain on device " +
                    std::to_string(graph.stages.back().device) + " of " + std::to_string(devices),
                "interleaving needs as many stages on every device");
  }
  const int chunks = static_cast<int>(graph.stages.size() / devices);
  if (chunks > 1 && m % static_cast<std::int64_t>(devices) != 0) {
    throw Error("stage 1 has " + std::to_string(m) + " micro-batches, which " +
                    std::to_string(devices) + " devices do not divide",
                "interleaving deals micro-batches out in groups of as many as devices");
  }
  WorkOrder order = make_schedule(ScheduleKind::interleaved, static_cast<int>(devices), chunks, m);
  for (std::size_t d = 0; d < devices; ++d) {
    std::vector<Work> works;
    works.reserve(order.devices[d].size() + 2 * at(chunks));
    for (Work work : order.devices[d]) {
      work.stage = static_cast<std::int32_t>(d + at(work.stage % chunks) * devices);
      works.push_back(work);
      if (work.kind == WorkKind::backward && work.index == m - 1) append_update(works, work.stage);
    }
    order.devices[d] = std::move(works);
  }
  return order;
}

WorkOrder zero_bubble_h1_order(const StageGraph& graph) {
  return zero_bubble_order(graph, 1, "ZB-H1");
}

WorkOrder zero_bubble_h2_order(const StageGraph& graph) {
  return zero_bubble_order(graph, 2, "ZB-H2");
}

WorkOrder two_buffered_order(const StageGraph& graph) {
  const char* name = "PipeDream-2BW";
  require_own_devices(graph, name);
  require_one_size(graph, name);
  const std::vector<int> depths = depths_of(graph);
  const std::int64_t m = graph.round_micro_batches(0);
  for (std::size_t s = 0; s < depths.size(); ++s) {
    if (depths[s] > m) {
      throw Error("stage " + std::to_string(s + 1) + " is " + std::to_string(depths[s]) +
                      " stages from the end, more than the " + std::to_string(m) +
                      " micro-batches of a round",
                  "PipeDream-2BW needs at least as many micro-batches as stages in a row");
    }
  }
  WorkOrder order = empty_order(graph);
  for (std::size_t s = 0; s < depths.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    std::vector<Work>& device = order.devices[at(graph.stages[s].device)];
    for (const Work& work : k_f_k_b_passes(stage, graph.micro_batches(s), 1, depths[s])) {
      device.push_back(work);
      if (work.kind == WorkKind::backward && (work.index + 1) % m == 0) {
        append_update(device, stage, work.index / m);
      }
    }
  }
  return order;
}

}  // namespace braid
