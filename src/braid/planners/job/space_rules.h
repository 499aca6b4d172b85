#pragma once

#include <cstdint>

#include "braid/planners/job/space.h"

namespace braid {

// Rules that every configuration of the space keeps. space.cc lists what keeps them all,
// contradiction.cc finds out which of them leave nothing.

/// What is decided of a form by steps: its degrees, how tensor-parallel ranks share the work, what
/// is sharded.
inline constexpr FormTraits kDegreeTraits =
    traits(FormTrait::tensor_parallel, FormTrait::context_parallel, FormTrait::expert_parallel,
           FormTrait::whole_experts, FormTrait::different_expert_groups, FormTrait::data_parallel,
           FormTrait::pipelines);
/// What a family decides of that.
inline constexpr FormTraits kFamilyTraits =
    kDegreeTraits & ~traits(FormTrait::data_parallel, FormTrait::pipelines);
inline constexpr FormTraits kTensorFormTraits =
    kDegreeTraits | bit_of(FormTrait::sequence_parallel);
inline constexpr FormTraits kStateTraits =
    kTensorFormTraits |
    traits(FormTrait::zero_0, FormTrait::zero_1, FormTrait::zero_2, FormTrait::zero_3);

/// Whether the trainer refuses the configuration for what is decided of it, whatever the rest is.
inline bool is_excluded(const TrainerLimits& can, const Configuration& configuration,
                        FormTraits known = kAllFormTraits) {
  if (can.never.empty()) return false;
  const bool data_outermost = configuration.order == AxisOrder::data_outermost;
  return can.excluding(traits_of(configuration, data_outermost), known) != nullptr;
}

/// The trainer divides layers over so many ranks of each kind.
inline bool can_divide(const TrainerLimits& can, const Execution& how) {
  return how.tp <= can.most_tensor_parallel && (how.cp == 1 || can.ring_context_parallel) &&
         (how.ep == 1 || can.expert_parallel) && can.divides(how.tp, how.cp);
}

/// Expert groups are whole groups of each axis that they are spread over, from the innermost, or
/// parts of one: of the context axis, and of the tensor-parallel one before it where tp leaves
/// experts whole.
inline bool experts_nest(const Execution& how) {
  int ep = how.ep;
  if (how.whole_experts) {
    if (how.tp % ep == 0) return true;
    if (ep % how.tp != 0) return false;
    ep /= how.tp;
  }
  return ep % how.cp == 0 || how.cp % ep == 0;
}

/// Beside tensor parallelism experts that are spread are sharded by it, or whole, as is asked for.
inline bool allows_experts(const SpaceOptions& options, const Execution& how) {
  if (how.tp == 1 || how.ep == 1) return !how.whole_experts;
  return options.whole_experts.value_or(how.whole_experts) == how.whole_experts;
}

/// The schedule is asked for, or none is, and the trainer has it where there are several stages.
inline bool allows_schedule(const SpaceOptions& options, ScheduleKind kind, int pp) {
  return (!options.schedule || *options.schedule == kind) && (pp == 1 || options.can.allows(kind));
}

/// Chunks of several stages may be interleaved: micro-batches come in groups of pp.
inline bool can_interleave(int pp, std::int64_t num_micro_batches) {
  return pp > 1 && num_micro_batches % pp == 0;
}

/// An iteration has few enough passes for so many chunks.
inline bool has_few_passes(std::int64_t chunks, std::int64_t num_micro_batches) {
  return num_micro_batches <= kMostPlannedPasses / chunks;
}

/// The ranks have a device each, and take as many as they have to; where all devices are to be
/// used, none is left.
inline bool takes_devices(std::int64_t ranks, const SpaceLimits& limits,
                          const SpaceOptions& options) {
  if (ranks < limits.least_devices) return false;
  return options.all_devices ? ranks == limits.devices : ranks <= limits.devices;
}

}  // namespace braid
