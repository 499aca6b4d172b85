#pragma once

#include <span>
#include <string_view>

#include "braid/trainers/exchange/unmodelled.h"

namespace braid {

/// Whether a field of Megatron-Bridge's ConfigContainer ("--train.manual-gc", as GivenArguments has
/// it) is known and says nothing of the time or memory of a step as braid models it: data, learning
/// rates, logging, checkpoints, and fusion, which is the trainer's own behaviour (classes of
/// src/megatron/bridge/training/config.py; data/trainers/megatron-bridge.yaml).
bool is_ignored_by_bridge_reader(std::string_view field);

/// Fields that do say something of it, and that braid does not model.
std::span<const Unmodelled> unmodelled_bridge_fields();

}  // namespace braid
