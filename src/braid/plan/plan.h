#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/plan/model_shape.h"
#include "braid/plan/parallelism.h"
#include "braid/plan/pass_runs.h"
#include "braid/plan/trainer.h"
#include "braid/profile/estimator.h"
#include "braid/profile/profile.h"
#include "braid/system/system.h"

namespace braid {

//   const Plan plan = read_plan("plan.json");                  // plan_json.h
//   for (const Stage& stage : plan.stages) stage.devices.size();
//   measure(plan).iteration_time_s;                            // schedule/timeline.h

/// A part of a stage that runs without handing over in between: one for most schedules, vp for
/// interleaving.
struct Chunk {
  std::vector<std::int32_t> layers;   ///< Ascending.
  std::vector<std::int32_t> options;  ///< For each layer: index in options_of(profile, layer).
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// What a stage that does not share the plan's parallel form does in its own way, beside its
/// degrees dp, tp and cp. Recomputation and offloaded activations are those of its layers' options.
struct StageConfig {
  int micro_batch = 1;  ///< Samples per micro-batch.
  int ep = 1;
  bool sequence_parallel = false;
  Zero zero = Zero::none;
  bool offload_optimizer = false;
  bool offload_weights = false;
  /// Forward passes before its first backward pass under 1F1B, and so the micro-batches that it
  /// holds at most; nullopt: as the schedule has it (forwards_first in stage_rounds.h).
  std::optional<std::int64_t> warm_up;
  /// All of its passes in order, in place of 1F1B's; empty: as the schedule and warm_up have them.
  std::vector<PassRun> passes = {};
  friend bool operator==(const StageConfig&, const StageConfig&) = default;
};

/// Its ranks take its devices in rising order along the plan's order of axes without pp.
struct Stage {
  std::vector<Chunk> chunks;
  int dp = 1, tp = 1, cp = 1;
  std::vector<std::int64_t> devices;  ///< All of them, ascending. dp·tp·cp many.
  std::optional<StageConfig> own;     ///< Nullopt: as Plan::parallel says, dp, tp and cp too.
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// What whoever made a plan says of it, for verify() to check.
struct Claims {
  double iteration_time_s = 0;
  double peak_memory_bytes = 0;  ///< Of the fullest device.
  /// What no plan at all for the job can beat (LowerBound), by what sets it; 0: not known.
  double arithmetic_bound_s = 0, memory_bound_s = 0, network_bound_s = 0;
  friend bool operator==(const Claims&, const Claims&) = default;
};

/// How a job runs: which layers on which devices, with which options, in which order. Complete in
/// itself: carries the layer graph with the chosen options and the system.
struct Plan {
  std::string planner;
  std::string model;         ///< Name for people.
  std::string model_source;  ///< What was given on the command line.
  double model_parameters = 0;
  std::optional<ModelShape> shape;  ///< For exporters; nullopt when it is not known.
  std::int64_t seq_len = 0;
  std::int64_t global_batch = 1;  ///< Samples per iteration.
  Precision precision;
  Trainer trainer;  ///< Its layers' costs are those under it.
  /// Of all stages when the plan is uniform. Else pp, vp (1), the schedule and the order of axes
  /// hold, and the rest is for those stages that have no form of their own.
  Parallelism parallel;
  Profile profile;  ///< Restricted to what the plan uses.
  System system;
  std::vector<Stage> stages;  ///< In topological order of the stage graph.
  std::optional<Claims> claims;

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Whether all stages share the plan's parallel form, as most trainers want it, and lie where its
/// order of axes puts them.
bool is_uniform(const Plan& plan);

/// Parallel form of a stage: the plan's, with what the stage has of its own in place of it. Samples
/// that the global batch is short of a whole number of micro-batches are left out of
/// num_micro_batches (verify() refuses such plans).
Parallelism form_of(const Plan& plan, std::size_t stage);

/// Devices of all stages together.
std::int64_t devices_used(const Plan& plan);

/// Edges between stages, from the layer graph; self-edges left out. With interleaving, edges join
/// chunks: see ChunkEdge.
struct ChunkEdge {
  std::int32_t source_stage = 0, source_chunk = 0;
  std::int32_t target_stage = 0, target_chunk = 0;
  double bytes = 0;  ///< Forward, of each flow (see handover_bytes) and micro-batch of the source.
  /// Backward, of each flow and micro-batch of the target; negative: as many.
  double backward_bytes = -1;
  friend bool operator==(const ChunkEdge&, const ChunkEdge&) = default;
};
std::vector<ChunkEdge> chunk_edges(const Plan& plan);

/// What one device sends along a layer edge for one micro-batch between stages of one form: split
/// over context parallel ranks, and over tensor parallel ranks under sequence parallelism.
double boundary_bytes(const ProfileEdge& edge, const Parallelism& parallel);

/// The same between stages of any forms, for one micro-batch of `from` on each of its replicas:
/// the bytes of each of max(devices of from, devices of to) flows (docs/cost-model.md, "Handing
/// over between stages"). Samples are dealt to replicas in turn. A receiving device needs its
/// samples' tensor, split as its own form says; a sending device sends its share of the copies that
/// the receivers need. The larger side's figure counts, so that a flow stands for one of its
/// devices. Works either way: gradients go from the target's form to the source's.
double handover_bytes(const ProfileEdge& edge, const Parallelism& from, const Parallelism& to);

/// Micro-batches in flight under 1F1B at a stage of `depth` stages from the end, itself included.
inline std::int64_t one_f_one_b_in_flight(std::int64_t depth, std::int64_t num_micro_batches) {
  return std::min(num_micro_batches, depth);
}

/// Most micro-batches whose activations a stage holds at once under the schedule, in a chain of
/// stages of one form (stage_rounds.h has other graphs); for interleaving,
/// counted in chunk activations (a stage holds `in_flight_chunks` chunk stashes).
/// GPipe: m; 1F1B: one_f_one_b_in_flight; interleaved: min(m·vp, (pp - stage - 1)·2 + (vp - 1)·pp +
/// 1).
std::int64_t in_flight_chunks(ScheduleKind schedule, int pp, int stage, int vp,
                              std::int64_t num_micro_batches);

/// Bytes on one device of a stage at its fullest moment, by kind.
struct MemoryBreakdown {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;  ///< Stash of all micro-batches in flight.
  double working = 0;      ///< Transients of the layer that needs most, gathered parameters.
  double host = 0;         ///< Not on the device: offloaded to host memory.

  double device_total() const { return weights + gradients + optimizer + activations + working; }
  friend bool operator==(const MemoryBreakdown&, const MemoryBreakdown&) = default;
};

/// Memory of all stages of a plan, in order (docs/cost-model.md, "Memory"). Throws Error when the
/// stages form a circle, and as forwards_first (stage_rounds.h).
std::vector<MemoryBreakdown> memory_of_stages(const Plan& plan);

}  // namespace braid
