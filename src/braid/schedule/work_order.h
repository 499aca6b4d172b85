#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/stage_graph.h"

namespace braid {

enum class WorkKind : std::uint8_t {
  forward,
  backward,          ///< Gradients of inputs and of weights in one go.
  input_gradient,    ///< A backward pass up to what the stages before wait for …
  weight_gradient,   ///< … and the rest of it (Qi et al. 2024, zero bubble).
  reduce_gradients,  ///< Start the data-parallel reduction of a round's gradients.
  optimizer          ///< Update the weights with a round's gradients.
};
inline constexpr std::size_t kWorkKinds = 6;

/// Something that a device does for one of its stages.
struct Work {
  WorkKind kind = WorkKind::forward;
  std::int32_t stage = 0;
  std::int64_t index = 0;  ///< Micro-batch, counted over all rounds; for the last two the round.
  friend bool operator==(const Work&, const Work&) = default;
};

/// A schedule: what each device does, in this order. It is one of a StageGraph when
/// * every stage has each of its forward passes once, and for each a backward pass or its two
///   halves (a stage keeps to one of the two forms), all on the stage's device;
/// * passes of a kind run in the order of the micro-batches, and each micro-batch's forward pass
///   before its backward pass, weight gradients after input gradients (C4 of Jeon 2024, §3.3);
/// * reductions and optimizer steps, where there are any, run in the order of rounds, each once
///   its round's gradients are complete, the reduction first;
/// * a run that starts each thing when the parts it needs have arrived comes to its end (C5).
/// Handing over needs no entries: a pass starts its transfers when it ends.
struct WorkOrder {
  std::vector<std::vector<Work>> devices;  ///< [device][position]
  friend bool operator==(const WorkOrder&, const WorkOrder&) = default;
};

/// "the forward pass of micro-batch 3"
std::string describe(const Work& work);

/// Throws Error naming the stage and the pass when `order` breaks any of these rules but the last
/// for `graph`, which check_stage_graph has accepted: out of turn, on the wrong device or missing.
/// Cost: linear in passes.
void check_turns(const StageGraph& graph, const WorkOrder& order);

/// The same for all the rules: also throws when something waits for ever. Cost: linear in passes
/// and parts.
void check_work_order(const StageGraph& graph, const WorkOrder& order);

}  // namespace braid
