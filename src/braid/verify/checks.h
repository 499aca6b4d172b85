#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

// Each check on its own; empty when it holds, else one line that says what is wrong and where. All
// but coverage may assume that it holds.
std::string coverage_fault(const Plan& plan);
std::string options_fault(const Plan& plan);
std::string edges_fault(const Plan& plan);
std::string devices_fault(const Plan& plan);
std::string batch_fault(const Plan& plan);

/// The option that a plan's chunk runs its i-th layer with.
const Option& option_at(const Plan& plan, const Chunk& chunk, std::size_t i);

/// What a replay of the schedule over one micro-batch after another says.
struct Replay {
  std::string fault;           ///< Empty: every pass once, nothing out of order, no deadlock.
  double time_s = 0;           ///< Of the iteration: passes, transfers, gradients and optimizer.
  double busiest_stage_s = 0;  ///< Most work of any stage.
  double serial_s = 0;         ///< All work and transfers one after another.
  std::vector<double> peak_stash_bytes;      ///< [stage], on the device.
  std::vector<double> peak_offloaded_bytes;  ///< [stage], of the stash, on the host.
  std::int64_t passes = 0;
};
Replay replay(const Plan& plan);

}  // namespace braid
