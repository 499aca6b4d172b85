#pragma once

#include <string_view>

namespace braid {

/// Whether a field of Megatron-Bridge's ConfigContainer ("--train.manual-gc", as GivenArguments has
/// it) is known and says nothing of the time or memory of a step as braid models it: data, learning
/// rates, logging, checkpoints, and fusion, which is the trainer's own behaviour (classes of
/// src/megatron/bridge/training/config.py; data/trainers/megatron-bridge.yaml).
bool is_ignored_by_bridge_reader(std::string_view field);

}  // namespace braid
