#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/trained_job.h"
#include "braid/trainers/torchtitan/models.h"

namespace braid {

// What torchtitan 0.2.2, which reads TOML, and later versions, which take Python recipes, both
// refuse, or run in another way than a plan takes it to.

enum class TorchtitanFormat : std::uint8_t { toml, recipe };

/// Throws the Error that torchtitan does something else: "torchtitan 0.2.2 REASON; REMEDY".
[[noreturn]] void refuse_for_torchtitan(TorchtitanFormat form, const std::string& reason,
                                        const std::string& remedy);

/// Of models whose sizes no flavor has, of precisions, and of sequences too long for recipes.
JobRefusal torchtitan_refusal(const TrainedJob& job, TorchtitanFormat form);

/// The flavor that the plan trains. Throws Error for torchtitan_refusal(), and for heads that
/// tensor parallelism would divide, for too few micro-batches of 1F1B, offloaded activations and
/// stages without a module of the model.
const TorchtitanModel& check_torchtitan_model(const Plan& plan, TorchtitanFormat form);

/// Data-parallel ranks that hold copies of the state, and those that share one.
struct TorchtitanReplicas {
  int replicate = 1, shard = 1;
};
TorchtitanReplicas torchtitan_replicas(const Parallelism& p);

/// One sentence each.
std::vector<std::string> common_torchtitan_limits(const Plan& plan, const TorchtitanModel& model);

}  // namespace braid
