#pragma once

#include <cstdint>
#include <vector>

#include "braid/profile/layer_cost.h"

namespace braid {

enum class ScheduleKind : std::uint8_t {
  gpipe,        ///< All forward passes, then all backward passes (Huang et al. 2019).
  one_f_one_b,  ///< One forward, one backward, flushed (Narayanan et al. 2021, PipeDream-Flush).
  interleaved,  ///< 1F1B over several model chunks per device (Narayanan et al. 2021, §2.2).
};

/// What each data-parallel rank keeps of the training state (Rajbhandari et al. 2020).
enum class Zero : std::uint8_t {
  none,        ///< Everything replicated.
  optimizer,   ///< ZeRO-1: optimizer state sharded.
  gradients,   ///< ZeRO-2: and gradients.
  parameters,  ///< ZeRO-3 / FSDP: and parameters.
};

enum class Axis : std::uint8_t { tp, cp, dp, pp };

/// The job's parallel form when all stages share it, as users and trainers speak of it.
struct Parallelism {
  int tp = 1, pp = 1, dp = 1, cp = 1, ep = 1;
  int vp = 1;           ///< Model chunks per stage (interleaving).
  int replicate = 1;    ///< Of dp: copies of fully sharded state (hybrid sharding), outermost.
  int micro_batch = 1;  ///< Samples per micro-batch.
  std::int64_t num_micro_batches = 1;  ///< Per data-parallel rank and iteration.
  bool sequence_parallel = false;
  bool whole_experts = false;  ///< Execution::whole_experts.
  Recompute recompute = Recompute::none;
  Zero zero = Zero::none;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  bool offload_optimizer = false;
  bool offload_weights = false;
  bool offload_activations = false;
  /// Axes from the innermost (neighbouring devices) outwards. Expert groups take consecutive
  /// devices of the cp and dp axes, and of the tp axis before these where experts are whole.
  std::vector<Axis> order = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};

  /// Whether state can be sharded over fewer ranks than there are, with copies (replicate) between.
  bool may_have_copies() const { return zero >= Zero::gradients; }
  std::int64_t devices() const { return std::int64_t{1} * tp * pp * dp * cp; }
  /// Ranks of a stage that experts are spread and replicated over: a multiple of ep.
  std::int64_t expert_axis() const { return std::int64_t{1} * dp * cp * (whole_experts ? tp : 1); }
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

}  // namespace braid
