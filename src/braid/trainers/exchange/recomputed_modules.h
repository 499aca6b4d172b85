#pragma once

#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Takes what Megatron Core's recompute_modules lists ("core_attn layernorm", or in brackets, with
/// commas) for what the run's selective recomputation repeats (SelectiveParts). Modules that braid
/// repeats in no layer end up in a note, which calls the option `option`.
void take_recomputed_modules(std::string_view modules, std::string_view option, Import& run);

}  // namespace braid
