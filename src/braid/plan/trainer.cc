#include "braid/plan/trainer.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "braid/plan/names.h"

namespace braid {
namespace {

template <typename T>
bool is_among(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool has_data_outermost(const Parallelism& parallel) {
  const auto place = [&](Axis axis) {
    return std::find(parallel.order.begin(), parallel.order.end(), axis);
  };
  return parallel.pp > 1 && parallel.dp > 1 && place(Axis::dp) > place(Axis::pp);
}

}  // namespace

std::int64_t separately_accumulated(const TrainerBehaviour& does, Zero zero, std::int64_t ranks,
                                    std::int64_t micro_batches) {
  const bool sharded = zero >= Zero::gradients && ranks > 1;
  return does.fused_accumulation || sharded || micro_batches <= 1 ? 0 : micro_batches;
}

bool TrainerLimits::allows(ScheduleKind schedule) const { return is_among(schedules, schedule); }
bool TrainerLimits::allows(Recompute kind) const { return is_among(recompute, kind); }
bool TrainerLimits::allows(Zero stage, int pp) const {
  return is_among(zero, stage) && (pp == 1 || is_among(pipelined_zero, stage));
}
bool TrainerLimits::allows_sequence_parallel(bool on, int tp) const {
  return tp == 1 || is_among(sequence_parallel, on);
}
bool TrainerLimits::divides(std::int64_t tp, std::int64_t cp) const {
  const bool heads =
      divided_heads == 0 || divided_heads % tp == 0 || (shared_heads && tp % divided_heads == 0);
  return heads && divided_tokens % (2 * tp * cp) == 0;
}
bool TrainerLimits::fills_nodes(std::int64_t replica, std::int64_t dp, std::int64_t ep) const {
  if (alike_nodes == 0) return true;
  const std::int64_t devices = replica * dp;
  if (devices <= alike_nodes) return dp % ep == 0;
  const std::int64_t nodes = devices / alike_nodes;
  return devices % alike_nodes == 0 && dp % (nodes * ep) == 0;
}
const ExcludedForms* TrainerLimits::excluding(FormTraits form, FormTraits known) const {
  const auto found = std::find_if(never.begin(), never.end(),
                                  [&](const ExcludedForms& each) { return each.has(form, known); });
  return found == never.end() ? nullptr : &*found;
}

namespace {

std::string refusal_of_ranks(const TrainerLimits& limits, const Parallelism& p) {
  if (limits.divides(p.tp, p.cp)) return "";
  const std::int64_t pieces = std::int64_t{2} * p.tp * p.cp;
  if (limits.divided_tokens % pieces != 0) {
    return fmt::format(
        "wants sequences of a multiple of {} tokens, twice the tensor- and "
        "context-parallel ranks",
        pieces);
  }
  return fmt::format(
      "divides whole heads, and {} of keys and values do not go over {} "
      "tensor-parallel ranks",
      limits.divided_heads, p.tp);
}

}  // namespace

std::string refusal(const TrainerLimits& limits, const Chip& chip) {
  if (!is_among(limits.chips, chip.kind)) return "does not run on " + chip.name;
  const std::optional<double> has = compute_capability(chip);
  if (!has || *has >= limits.compute_capability) return "";
  return fmt::format("does not run on {}, of compute capability {:.1f}: it needs {:.1f}", chip.name,
                     *has, limits.compute_capability);
}

std::string refusal(const TrainerLimits& limits, const Parallelism& p) {
  if (p.pp > limits.most_stages) {
    return limits.most_stages == 1 ? "has no pipelines"
                                   : fmt::format("has at most {} stages", limits.most_stages);
  }
  // One stage runs its passes in order by any schedule.
  if (p.pp > 1 && !limits.allows(p.schedule)) {
    return fmt::format("has no schedule {}", name_of(p.schedule));
  }
  if (!limits.allows(p.recompute)) {
    return fmt::format("has no {} recomputation", name_of(p.recompute));
  }
  if (!limits.allows(p.zero, p.pp)) {
    return fmt::format("has no ZeRO-{}{}", name_of(p.zero),
                       limits.allows(p.zero, 1) ? " with several stages" : "");
  }
  if (!limits.allows_sequence_parallel(p.sequence_parallel, p.tp)) {
    return fmt::format("divides layers over tensor-parallel ranks only {} sequence parallelism",
                       p.sequence_parallel ? "without" : "with");
  }
  if (p.tp > limits.most_tensor_parallel) {
    return limits.most_tensor_parallel == 1
               ? "has no tensor parallelism"
               : fmt::format("divides layers over at most {} ranks", limits.most_tensor_parallel);
  }
  if (p.cp > 1 && !limits.ring_context_parallel) {
    return "has no context parallelism that passes keys and values on in a ring";
  }
  if (p.ep > 1 && !limits.expert_parallel) return "has no expert parallelism";
  for (const auto& [wanted, can, what] :
       {std::tuple{p.offload_optimizer, limits.offload_optimizer, "optimizer state"},
        std::tuple{p.offload_weights, limits.offload_weights, "weights"},
        std::tuple{p.offload_activations, limits.offload_activations, "activations"}}) {
    if (wanted && !can) return fmt::format("moves no {} to host memory", what);
  }
  if (has_data_outermost(p) ? !limits.data_outermost
                            : !limits.pipeline_outermost && p.pp > 1 && p.dp > 1) {
    return "has no such order of ranks";
  }
  if (const ExcludedForms* excluded = limits.excluding(traits_of(p, has_data_outermost(p)))) {
    return refusal_text(*excluded);
  }
  if (!limits.fills_nodes(std::int64_t{p.tp} * p.cp * p.pp, p.dp, p.ep)) {
    return fmt::format(
        "wants whole nodes of {} with as many data-parallel ranks on each, in whole groups of "
        "expert-parallel ones",
        limits.alike_nodes);
  }
  return refusal_of_ranks(limits, p);
}

}  // namespace braid
