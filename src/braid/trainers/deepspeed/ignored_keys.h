#pragma once

#include <span>
#include <string_view>

#include "braid/trainers/exchange/unmodelled.h"

namespace braid {

/// Whether a key of DeepSpeed's configuration ("zero_optimization.reduce_bucket_size") is known and
/// says nothing of the time or memory of a step as braid models it: buckets, learning rates, loss
/// scales, logging, checkpoints (runtime/config.py, runtime/zero/config.py, runtime/constants.py at
/// 0.19).
bool is_ignored_by_deepspeed_reader(std::string_view key);

/// Keys that do say something of it, and that braid does not model.
std::span<const Unmodelled> unmodelled_deepspeed_keys();

}  // namespace braid
