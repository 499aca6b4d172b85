#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/schedule/order_timing.h"

#include "schedule/instances.h"

namespace braid {

/// What a random graph may have.
struct GraphForm {
  std::int64_t most_stages = 7;
  std::int64_t most_micro_batches = 8;
  bool sizes = false;           ///< Different micro-batch sizes.
  bool shared_devices = false;  ///< Several stages on a device.
};

/// A chain of as many stages as `devices` has entries, one after the other in that order.
StageGraph chain_graph(std::span<const std::int32_t> devices, std::int64_t batch,
                       std::int64_t micro_batch);

/// Stages in any order, joined by any acyclic edges (some twice, perhaps in several components).
StageGraph random_stage_graph(Random& random, const GraphForm& form);

/// Times that are multiples of 1/8, passes never zero; memory in whole bytes.
TimedGraph random_costs(Random& random, StageGraph graph);

/// A chain of equal stages without transfers: forward, input gradient, weight gradient.
TimedGraph even_stages(StageGraph graph, double forward_s, double input_s, double weight_s);

/// Everything that must hold of a run, sample by sample and from the events alone: passes of a
/// stage complete, in turn and one at a time on its device; no activation or gradient used before
/// it is made and has crossed (C4, C5 of Jeon 2024, §3.3); peaks of memory and of micro-batches in
/// flight. Empty when it does.
std::string broken_rule(const TimedGraph& timed, const OrderTiming& timing);

/// Time of an order by repeated raising of all start times until nothing changes: independent of
/// time_order. Negative when the order can never finish.
double relaxed_time_s(const TimedGraph& timed, const WorkOrder& order);

/// An order that some run of the graph could show: what is possible next at random.
WorkOrder random_order(Random& random, const StageGraph& graph, bool halves);

}  // namespace braid
