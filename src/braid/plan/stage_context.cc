#include "braid/plan/stage_context.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// Devices that hold the same parameters: for each tensor-parallel rank the replicas, cp inside dp,
/// and of these, for experts, those ep apart; where experts are whole, of all ranks, tp innermost.
NamedReplicas named_replicas(std::span<const std::int64_t> devices, Parallelism form) {
  form.pp = 1;
  const std::int64_t tp_stride = stride_of(form, Axis::tp);
  const std::int64_t cp_stride = stride_of(form, Axis::cp);
  const std::int64_t dp_stride = stride_of(form, Axis::dp);
  NamedReplicas named;
  const auto add_experts = [&](const std::vector<std::int64_t>& ranks) {
    for (int e = 0; e < form.ep; ++e) {
      std::vector<std::int64_t> experts;
      for (auto r = static_cast<std::size_t>(e); r < ranks.size();
           r += static_cast<std::size_t>(form.ep)) {
        experts.push_back(ranks[r]);
      }
      std::sort(experts.begin(), experts.end());
      named.expert.push_back(std::move(experts));
    }
  };
  std::vector<std::int64_t> replicas;
  for (int t = 0; t < form.tp; ++t) {
    replicas.clear();
    for (int d = 0; d < form.dp; ++d) {
      for (int c = 0; c < form.cp; ++c) {
        const std::int64_t rank = t * tp_stride + c * cp_stride + d * dp_stride;
        replicas.push_back(devices[static_cast<std::size_t>(rank)]);
      }
    }
    if (!form.whole_experts) add_experts(replicas);
    std::sort(replicas.begin(), replicas.end());
    named.dense.push_back(replicas);
  }
  if (form.whole_experts) {
    std::vector<std::int64_t> ranks;
    ranks.reserve(devices.size());
    for (int r = 0; r < form.dp * form.cp; ++r) {
      for (int t = 0; t < form.tp; ++t) {
        const std::int64_t rank = t * tp_stride + r % form.cp * cp_stride + r / form.cp * dp_stride;
        ranks.push_back(devices[static_cast<std::size_t>(rank)]);
      }
    }
    add_experts(ranks);
  }
  return named;
}

}  // namespace

StageContext::StageContext(const Plan& plan, std::size_t stage) {
  const Stage& at = plan.stages[stage];
  if (!at.own && plan.system.groups.size() == 1) {
    context_ = data_parallel_context(plan.parallel, plan.precision, plan.system, plan.trainer.does);
    return;
  }
  *this = StageContext(at.devices, form_of(plan, stage), plan.precision, plan.system,
                       plan.trainer.does);
}

StageContext::StageContext(std::span<const std::int64_t> devices, const Parallelism& form,
                           const Precision& precision, const System& system,
                           const TrainerBehaviour& does)
    : replicas_(std::make_unique<const NamedReplicas>(named_replicas(devices, form))) {
  context_.precision = precision;
  context_.zero = form.zero;
  context_.offload_optimizer = form.offload_optimizer;
  context_.offload_weights = form.offload_weights;
  context_.overlap_gradients = does.overlapped_gradients;
  context_.dense_ranks = static_cast<double>(form.dp) * form.cp;
  context_.expert_ranks = static_cast<double>(form.expert_axis()) / form.ep;
  context_.system = &system;
  context_.named = replicas_.get();
  for (const std::int64_t device : devices) {
    const Chip& chip = chip_at(system, device);
    const auto rate = [](const Chip& of) {
      return of.memory.bytes_per_s * of.efficiency.memory_peak_fraction;
    };
    if (context_.chip == nullptr || rate(chip) < rate(*context_.chip)) context_.chip = &chip;
  }
}

double usable_bytes_of_stage(const Plan& plan, std::size_t stage) {
  double least = kInfinity;
  for (const std::size_t group : groups_of(plan.system, plan.stages[stage].devices)) {
    least = std::min(least, usable_bytes(plan.system.groups[group].chip));
  }
  return least;
}

}  // namespace braid
