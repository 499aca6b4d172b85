#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/excluded_forms.h"
#include "braid/plan/parallelism.h"
#include "braid/profile/trainer_behaviour.h"
#include "braid/system/chip.h"

namespace braid {

/// The program that runs a plan.
struct Trainer {
  std::string name;  ///< Empty: none in particular.
  TrainerBehaviour does;
  friend bool operator==(const Trainer&, const Trainer&) = default;
};

/// Micro-batches whose gradients kernels of their own add up, of `micro_batches`; 0 where that
/// takes no time: it is fused, or gradients are sharded over `ranks` as they come (ZeRO-2 and 3)
/// and small beside that.
std::int64_t separately_accumulated(const TrainerBehaviour& does, Zero zero, std::int64_t ranks,
                                    std::int64_t micro_batches);

/// What a trainer can be told. The defaults are all that braid can say.
struct TrainerLimits {
  bool language_models_only = false;
  std::vector<ChipKind> chips = {ChipKind::gpu, ChipKind::tpu, ChipKind::other};
  double compute_capability = 0;  ///< The least that chips must have which have one.
  std::vector<ScheduleKind> schedules = {ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                                         ScheduleKind::interleaved};
  std::vector<Recompute> recompute = {Recompute::none, Recompute::selective, Recompute::full};
  std::vector<Zero> zero = {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters};
  std::vector<Zero> pipelined_zero = zero;              ///< Of these, with several stages.
  std::vector<bool> sequence_parallel = {false, true};  ///< With tensor parallelism.
  bool ring_context_parallel = true;                    ///< Keys and values go round in a ring.
  bool expert_parallel = true;
  bool offload_optimizer = true, offload_weights = true, offload_activations = true;
  bool pipeline_outermost = true, data_outermost = true;  ///< Orders of the axes.
  bool uneven_stages = true;         ///< Stages may have different numbers of layers.
  bool heterogeneous_stages = true;  ///< Stages may have forms of their own, and form a graph.
  bool auto_sharding = true;         ///< Layers may have automatic shardings.
  int most_stages = 1 << 24, most_tensor_parallel = 1 << 24;
  // Of one model, or one cluster:
  std::vector<ExcludedForms> never;  ///< These combinations are refused.
  std::int64_t divided_heads = 0;    ///< Of keys and values: tp divides them; 0: any number may be.
  bool shared_heads = false;         ///< Or is a multiple of them.
  /// Devices of a node: several are whole ones, with as many data-parallel ranks on each, whose
  /// groups of expert-parallel ranks lie on one; 0: no such rule.
  std::int64_t alike_nodes = 0;
  std::int64_t divided_tokens = 0;  ///< Of a sequence: 2·tp·cp divides them; 0: any number may be.

  friend bool operator==(const TrainerLimits&, const TrainerLimits&) = default;
  bool allows(ScheduleKind schedule) const;
  bool allows(Recompute kind) const;
  bool allows(Zero stage, int pp) const;
  /// Whether tp ranks may divide layers so; always for tp 1.
  bool allows_sequence_parallel(bool on, int tp) const;
  /// Whether heads and sequences of the model go over so many ranks.
  bool divides(std::int64_t tp, std::int64_t cp) const;
  /// Whether nodes are alike as alike_nodes says, a replica being of so many ranks.
  bool fills_nodes(std::int64_t replica, std::int64_t dp, std::int64_t ep) const;
  /// The first of `never` that has the form: null where none does (ExcludedForms::has).
  const ExcludedForms* excluding(FormTraits form, FormTraits known = kAllFormTraits) const;
};

/// Why a trainer with these limits does not run on the chip, such as "does not run on tpu-v4";
/// empty when it does.
std::string refusal(const TrainerLimits& limits, const Chip& chip);

/// Why a trainer with these limits cannot be told this form, such as "has no schedule gpipe"; empty
/// when it can.
std::string refusal(const TrainerLimits& limits, const Parallelism& parallel);

}  // namespace braid
