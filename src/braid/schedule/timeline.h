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
  input_gradient,   ///< First half of a backward pass, …
  weight_gradient,  ///< … and its second.
  send,
  gradient_sync,
  shared_gradient_sync,  ///< Of parameters that several stages hold.
  parameter_sync,
  optimizer
};

/// Something that happens on one (representative) device of a stage. A forward pass that waits for
/// parameters in between lasts until its last part is done.
struct Event {
  double start_s = 0, end_s = 0;
  EventKind kind = EventKind::forward;
  std::int32_t stage = 0, chunk = 0;
  std::int32_t peer_stage = -1;  ///< For send.
  std::int64_t micro_batch = 0;  ///< For gradient_sync: the bucket.
  // For send: what it carries, and the pass on the other side that waits for it (the first, where
  // several passes need its samples).
  bool gradients = false;
  std::int32_t peer_chunk = -1;
  std::int64_t peer_micro_batch = 0;
  std::int64_t round = 0;  ///< Of several without a flush, over all of which micro-batches count.
  friend bool operator==(const Event&, const Event&) = default;
};

/// Device memory of a stage over time: the value holds from time_s to the next entry.
struct MemorySample {
  double time_s = 0;
  double bytes = 0;
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

struct Timeline {
  std::vector<Event> events;                      ///< By start, then stage, then end.
  std::vector<std::vector<MemorySample>> memory;  ///< [stage]
  double iteration_time_s = 0;
  std::int64_t rounds = 1;  ///< Iterations drawn, which follow each other without a flush.
  double end_s = 0;         ///< When everything is done; of one round the iteration time.
};

/// Discrete-event simulation of one iteration of `plan`, one representative device per stage (ranks
/// of a stage are alike). Rules (docs/timeline.md): a device runs its passes in the schedule's
/// order, each as soon as its inputs are there; transfers between stages take the edge's time on
/// the sender's and receiver's link, one at a time per link and direction, and do not hold up
/// compute (unless the trainer's sends block, TrainerBehaviour::blocking_sends); gradient buckets
/// follow the last backward pass, then those of shared parameters; the optimizer follows the
/// gradients; the parameter all-gather is hidden behind the first forward pass as far as it goes.
/// Ends when all is done. A stash counts from the start of its forward pass to the end of its
/// backward pass; everything else that memory_of_stages counts is there throughout. Deterministic;
/// linear in passes and transfers, but for sorting the events. Throws Error when the plan has no
/// valid schedule (see check_pipeline), naming the stage when its order contradicts the flow of
/// data, or has more than 2^20 forward passes in all.
Timeline simulate(const Plan& plan);

/// Same, without events and memory samples: only the iteration time. Up to 2^28 forward passes in a
/// chain of stages, 2^22 in others. Searches call pipeline_time_s (pipeline_time.h) instead.
double simulate_time_s(const Plan& plan);

/// Figures of merit of a plan, by simulation. The times are of the stage with most to do (the first
/// of equals), over the whole iteration: its passes by cause (without recomputation, which stands
/// for itself), what it waits for data parallelism (parameters and gradients not hidden by its own
/// passes), its optimizer; pp_comm_s is by how much the iteration would be shorter if transfers
/// between stages took no time; bubble_s is the rest. Model FLOP/s count what
/// LayerCost::model_flops says each device does, over all devices of the plan; mfu relates them to
/// the devices' matmul peak for the plan's precision, 0 when a chip does not list it. tokens_per_s
/// are samples/s when the model has no sequence length. Throws Error as simulate_time_s.
Metrics measure(const Plan& plan);

/// Trace (JSON text in the Trace Event Format) of a plan's timeline for Perfetto and
/// chrome://tracing: one process per stage, numbered from 1; tracks compute, collectives and one
/// for sending to each other stage; a counter of memory in GiB; an arrow from the last transfer
/// that a pass waits for to the pass. Times in microseconds, to the nanosecond. No two tracks share
/// a thread number, whatever their process, and that of compute is the process's: Perfetto takes it
/// for the main thread.
std::string to_trace(const Plan& plan, const Timeline& timeline);

/// Both in one, stage by stage: what was predicted and, under it, what was measured.
std::string to_trace(const Plan& plan, const Timeline& predicted, const Timeline& measured);

}  // namespace braid
