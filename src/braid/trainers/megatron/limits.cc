#include "braid/trainers/megatron/limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

void add_attention_limits(const Plan& plan, const ModelShape& shape,
                          std::vector<std::string>& limits) {
  const Parallelism& p = plan.parallel;
  if (shape.heads % p.tp != 0) {
    limits.push_back(fmt::format(
        "Megatron-LM refuses {} attention heads over {} tensor-parallel ranks", shape.heads, p.tp));
  } else if (!shape.latent_attention && shape.kv_heads % p.tp != 0) {
    limits.push_back(fmt::format(
        "Megatron-LM refuses {} key and value heads over {} tensor-parallel ranks: plan with --tp "
        "{} or less",
        shape.kv_heads, p.tp, shape.kv_heads));
  }
  if (shape.window > 0 && p.cp > 1) {
    limits.emplace_back(
        "windowed attention over context-parallel ranks gathers keys and values: the ring that the "
        "plan is timed with has no windows in Transformer Engine");
  }
}

}  // namespace

bool has_transformer_engine(const Plan& plan) {
  const auto lacks = [](const DeviceGroup& group) {
    return matmul_peak(group.chip, Dtype::f16).has_value() &&
           !matmul_peak(group.chip, Dtype::bf16).has_value();
  };
  return std::none_of(plan.system.groups.begin(), plan.system.groups.end(), lacks);
}

std::vector<std::string> megatron_limits(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::vector<std::string> limits;
  if (const auto chip = chip_without_trainer(plan)) {
    limits.push_back("Megatron-LM runs on NVIDIA GPUs, and the plan is for " + *chip +
                     ": only the degrees carry over");
  } else if (plan.system.groups.front().chip.name.rfind("mi", 0) == 0) {
    limits.emplace_back("AMD GPUs need AMD's fork of Megatron-LM");
  }
  if (!has_transformer_engine(plan)) {
    limits.emplace_back(
        "Transformer Engine needs compute capability 8.0: --transformer-impl local is used, whose "
        "attention is not fused and takes more memory than the plan says");
    if (p.cp > 1) {
      limits.emplace_back("Megatron-LM has context parallelism in Transformer Engine alone");
    }
  }
  if (p.cp > 1 && plan.seq_len % (2 * std::int64_t{p.cp}) != 0) {
    limits.push_back(
        fmt::format("Megatron-LM refuses a sequence of {} tokens over {} context-parallel ranks: "
                    "it must be a multiple of {}",
                    plan.seq_len, p.cp, 2 * std::int64_t{p.cp}));
  }
  if (plan.shape) {
    add_attention_limits(plan, *plan.shape, limits);
    if (plan.shape->experts > 0 && plan.shape->linear_bias && p.tp > 1 && !p.whole_experts) {
      limits.emplace_back(
          "Megatron-LM refuses experts with biases that tensor parallelism divides: plan with --tp "
          "1");
    }
  }
  return limits;
}

}  // namespace braid
