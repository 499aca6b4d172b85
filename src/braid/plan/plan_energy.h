#pragma once

#include <cstdint>
#include <memory>

#include "braid/chip/accelerator/energy.h"
#include "braid/chip/systolic/nest_memo.h"
#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

namespace braid {

//   NestMemo memo;
//   const Candidate& best = outcome.candidates.front();
//   plan_energy(best.plan, graph, best.metrics.iteration_time_s, memo).total_j();  // An iteration.

/// Whether plans on these systems have an energy: all devices are accelerators of one kind whose
/// layers are mapped onto their cores.
bool has_energy(const System& system);

/// What all devices of a plan do in an iteration, together; no seconds. `graph` is the one that was
/// planned, its layers those of the plan's profile, with the model's own shardings. Needs
/// has_energy(plan.system).
///
/// - Passes of every layer: layer_activity() for each micro-batch, recomputation included.
/// - Links: activations and gradients between stages; gradients' all-reduce, or what the ZeRO stage
///   has in its place (reduce-scatter, all-gather of parameters); copies of shared parameters.
/// - The optimizer's step moves its state twice, gradients and weights once, as in
///   optimizer_time_s().
///
/// Cost: layer_activity() of each kind of layer and option in the plan.
ChipActivity plan_activity(const Plan& plan, const Graph& graph, NestMemo& memo);

/// The energy of an iteration that takes `time_s`: plan_activity(), and the static power of every
/// device of the system meanwhile, used or not.
ChipEnergy plan_energy(const Plan& plan, const Graph& graph, double time_s, NestMemo& memo);

/// Activity that no plan stays below, all devices together: least_layer_activity() of all layers
/// over the batch. L2 of tensor cores is left to least_l2_bytes(). No seconds.
ChipActivity least_activity(const Graph& graph, std::int64_t global_batch, const Accelerator& chip);

}  // namespace braid
