#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// Why a trainer with these limits cannot be told this plan; empty when it can. As refusal() of its
/// form, and for stages of unlike forms or numbers of layers and layers divided as a search found.
std::string refusal(const TrainerLimits& limits, const Plan& plan);

/// Whether stages, and chunks of stages, hold equally many layers but for the first and the last
/// chunk, which may hold an embedding and a head beside.
bool has_even_chunks(const Plan& plan);

}  // namespace braid
