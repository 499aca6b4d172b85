#include "braid/schedule/greedy_order.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/order_form.h"
#include "braid/schedule/sub_pipeline.h"

namespace braid {
namespace {

/// 1F1B that starts with `level` micro-batches in flight and has one fewer from each of `drops` on,
/// backward passes in rising order.
struct Levels {
  std::int64_t level = 1;
  std::vector<std::int64_t> drops;
};

class StageOrder {
 public:
  StageOrder(std::int32_t stage, std::int64_t micro_batches, std::int64_t most, SubPipeline& after,
             std::int64_t& work)
      : stage_(stage),
        m_(micro_batches),
        most_(std::min(most, micro_batches)),
        after_(after),
        work_(work) {}

  /// False when it would take too much work.
  bool find() {
    // With all inputs there at once, as many forward passes first as may be is the order that ends
    // earliest.
    best_s_ = end_s({most_, {}}) * kAboveRounding;
    if (work_ < 0) return false;
    if (!std::isfinite(best_s_)) {
      throw Error("stage " + std::to_string(stage_ + 1) + " may hold " + std::to_string(most_) +
                      " micro-batches, fewer than the stages after it wait for",
                  "let it have more in flight, or those after it fewer");
    }
    levels_.level = first_where_near(std::int64_t{1}, most_, [&](std::int64_t level) {
      return keeps({level, levels_.drops});
    });
    // No drop matters once all forward passes are done.
    for (std::int64_t level = levels_.level, first = 1; level > 1 && work_ >= 0; --level) {
      const std::int64_t last = m_ - level + 1;
      const std::int64_t drop = first_where_near(first, last, [&](std::int64_t k) {
        Levels lower = levels_;
        lower.drops.push_back(k);
        return keeps(lower);
      });
      if (drop >= last) break;
      levels_.drops.push_back(drop);
      first = drop + 1;
    }
    return work_ >= 0;
  }

  std::vector<Work> passes() const { return passes_of(levels_); }

 private:
  std::vector<Work> passes_of(const Levels& levels) const {
    std::vector<Work> passes;
    passes.reserve(at(2 * m_));
    std::int64_t forwards = 0;
    std::int64_t level = levels.level;
    auto drop = levels.drops.begin();
    for (std::int64_t k = 0; k < m_; ++k) {
      if (drop != levels.drops.end() && *drop == k) {
        --level;
        ++drop;
      }
      for (; forwards < std::min(m_, k + level); ++forwards) {
        passes.push_back({WorkKind::forward, stage_, forwards});
      }
      passes.push_back({WorkKind::backward, stage_, k});
    }
    return passes;
  }

  double end_s(const Levels& levels) {
    work_ -= after_.passes();
    return work_ < 0 ? 0 : after_.end_s(passes_of(levels));
  }

  bool keeps(const Levels& levels) { return end_s(levels) <= best_s_; }

  std::int32_t stage_;
  std::int64_t m_, most_;
  SubPipeline& after_;
  std::int64_t& work_;
  double best_s_ = 0;
  Levels levels_;
};

}  // namespace

std::optional<WorkOrder> greedy_order(const TimedGraph& timed, const GreedyLimits& limits) {
  const StageGraph& graph = timed.graph;
  require_own_devices(graph, "the greedy schedule");
  require_one_round(graph, "the greedy schedule");
  assert(limits.in_flight.empty() || limits.in_flight.size() == graph.stages.size());
  std::vector<std::size_t> stages = topological_stages(depths_of(graph));
  std::reverse(stages.begin(), stages.end());
  std::vector<std::vector<Work>> chosen(stages.size());
  WorkOrder order;
  order.devices.resize(device_count(graph));
  std::int64_t any = std::numeric_limits<std::int64_t>::max();
  std::int64_t& work = limits.work != nullptr ? *limits.work : any;
  for (const std::size_t s : stages) {
    const auto stage = static_cast<std::int32_t>(s);
    const std::int64_t m = graph.micro_batches(s);
    SubPipeline after(timed, s, chosen);
    StageOrder passes(stage, m, limits.in_flight.empty() ? m : limits.in_flight[s], after, work);
    if (!passes.find()) return std::nullopt;
    chosen[s] = passes.passes();
    std::vector<Work>& device = order.devices[at(graph.stages[s].device)];
    device = chosen[s];
    append_update(device, stage);
  }
  return order;
}

WorkOrder greedy_order(const TimedGraph& timed) {
  std::optional<WorkOrder> order = greedy_order(timed, GreedyLimits{});
  assert(order.has_value());
  return std::move(*order);
}

}  // namespace braid
