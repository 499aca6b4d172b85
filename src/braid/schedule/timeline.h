#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"
#include "braid/plan/plan.h"
#include "braid/schedule/schedule.h"

namespace braid {

enum class EventKind : std::uint8_t {
  forward,
  backward,
  send,
  gradient_sync,
  parameter_sync,
  optimizer
};

/// Something that happens on one (representative) device of a stage.
struct Event {
  double start_s = 0, end_s = 0;
  EventKind kind = EventKind::forward;
  std::int32_t stage = 0, chunk = 0;
  std::int32_t peer_stage = -1;  ///< For send.
  std::int64_t micro_batch = 0;
};

/// Device memory of a stage over time: the value holds from time_s to the next entry.
struct MemorySample {
  double time_s = 0;
  double bytes = 0;
};

struct Timeline {
  std::vector<Event> events;                      ///< By start, then stage.
  std::vector<std::vector<MemorySample>> memory;  ///< [stage]
  double iteration_time_s = 0;
};

/// Discrete-event simulation of one iteration of `plan`, one representative device per stage (ranks
/// of a stage are alike). Rules (docs/cost-model.md, "Timeline"): a device runs its passes in the
/// schedule's order, each as soon as its inputs are there; transfers between stages take the edge's
/// time on the sender's and receiver's link, one at a time per link and direction, and do not hold
/// up compute; gradient buckets follow the last micro-batch; the optimizer follows the gradients;
/// the parameter all-gather is hidden behind the first forward pass as far as it goes. Ends when
/// all is done. Deterministic; O(tasks·log tasks).
Timeline simulate(const Plan& plan);

/// Same, without events and memory samples: only the iteration time. O(tasks).
double simulate_time_s(const Plan& plan);

/// Figures of merit of a plan, by simulation.
Metrics measure(const Plan& plan);

/// Chrome/Perfetto trace (JSON text): one process per stage; tracks compute, send, collectives;
/// memory counter.
std::string to_trace(const Plan& plan, const Timeline& timeline);

}  // namespace braid
