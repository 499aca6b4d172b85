#pragma once

#include <span>
#include <string_view>

namespace braid {

/// Arguments of Megatron-LM (megatron/training/arguments.py) that say nothing of the time or memory
/// of an iteration as braid models it: data, tokenizer, learning rates, logging, checkpoints.
std::span<const std::string_view> megatron_ignored_arguments();

}  // namespace braid
