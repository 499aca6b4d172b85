#pragma once

#include <compare>
#include <cstdint>

#include "braid/plan/plan.h"

namespace braid {

/// Where the data-parallel axis lies relative to the pipeline.
enum class AxisOrder : std::uint8_t {
  pipeline_outermost,  ///< tp, cp, dp, pp: stages are blocks of neighbouring devices.
  data_outermost,      ///< tp, cp, pp, dp: replicas of the whole pipeline are blocks.
};

/// Who says how tensor-parallel ranks divide the layers, kind by kind.
enum class ShardingKind : std::uint8_t {
  manual,    ///< The model.
  fastest,   ///< The model or a search for shardings, whichever takes least time.
  smallest,  ///< Whichever leaves a rank fewest parameters, of these the fastest.
};

/// A point of braid's search space: Parallelism without heap memory, so that millions can be kept.
struct Configuration {
  std::int32_t tp = 1, cp = 1, ep = 1, pp = 1, dp = 1, vp = 1, micro_batch = 1;
  std::int64_t num_micro_batches = 1;
  bool sequence_parallel = false;
  bool whole_experts = false;                    ///< Execution::whole_experts.
  ShardingKind sharding = ShardingKind::manual;  ///< Another only without sequence parallelism.
  AxisOrder order = AxisOrder::pipeline_outermost;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  // What trades time for memory: no step up makes a pass, a synchronisation or an update shorter.
  Recompute recompute = Recompute::none;
  Zero zero = Zero::none;
  bool offload_optimizer = false, offload_weights = false, offload_activations = false;

  // NOLINTNEXTLINE(modernize-use-nullptr): misread by clang-tidy 14, there is no pointer here.
  friend auto operator<=>(const Configuration&, const Configuration&) = default;
};

/// Ranks of a stage that experts are spread and replicated over: a multiple of ep.
inline std::int64_t expert_axis(const Configuration& configuration) {
  return std::int64_t{configuration.dp} * configuration.cp *
         (configuration.whole_experts ? configuration.tp : 1);
}

/// Of these, those in front of the data-parallel axis: expert groups of no more lie the same way
/// wherever the pipeline does.
inline std::int64_t inner_expert_axis(const Configuration& configuration) {
  return std::int64_t{configuration.cp} * (configuration.whole_experts ? configuration.tp : 1);
}

Parallelism to_parallelism(const Configuration& configuration);
Execution to_execution(const Configuration& configuration);
/// Degrees and trades of a stage of this form.
Configuration stage_configuration(const Parallelism& form);
/// That of a stage, for layers that run so.
Configuration with_execution(Configuration stage, const Execution& how);

/// Micro-batches in flight at a stage of the configuration's 1F1B.
inline std::int64_t one_f_one_b_in_flight(const Configuration& configuration, std::int32_t stage) {
  return one_f_one_b_in_flight(configuration.pp - stage, configuration.num_micro_batches);
}

}  // namespace braid
