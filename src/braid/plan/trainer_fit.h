#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "braid/plan/plan.h"
#include "braid/plan/trainer_file.h"

namespace braid {

/// What the trainer can be told of the plan's model on its chips.
TrainerLimits limits_of(const TrainerFile& trainer, const Plan& plan);

/// Why a trainer with these limits cannot be told this plan; empty when it can. As refusal() of its
/// form, and for stages of different forms or numbers of layers and automatic sharding.
std::string refusal(const TrainerLimits& limits, const Plan& plan);

/// Whether these numbers of layers, of the chunks in model order, are what a trainer that deals
/// layers out evenly gives them: as layers_of_chunks has it, the same number to each, but perhaps
/// one more to the first and the last, which hold an embedding and a head.
bool is_dealt_evenly(std::span<const std::int32_t> counts);

}  // namespace braid
