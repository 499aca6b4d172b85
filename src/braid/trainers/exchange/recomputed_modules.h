#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Takes what Megatron Core's recompute_modules lists ("core_attn layernorm", or in brackets, with
/// commas) for what the run's selective recomputation repeats (SelectiveParts). Modules that braid
/// repeats in no layer end up in a note, which calls the option `option`.
void take_recomputed_modules(std::string_view modules, std::string_view option, Import& run);

/// What Megatron Core keeps of a plan with selective recomputation though the plan does not count
/// it: its modules end behind attention's core, and with `fused_norms` norms belong to the GEMMs
/// behind them. "… stay in memory, which takes more than the plan says"; empty: nothing.
std::string kept_beside_plan(const TrainerBehaviour& does, bool fused_norms);

}  // namespace braid
