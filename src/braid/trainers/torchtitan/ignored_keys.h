#pragma once

#include <span>
#include <string_view>

#include "braid/trainers/exchange/unmodelled.h"

namespace braid {

/// Whether a key of torchtitan 0.2.2 (config/job_config.py), or a field of its later recipes
/// (config/configs.py), is known and says nothing of the time or memory of a step as braid models
/// it: data, learning rates, logging, checkpoints, and overlap and fusion, which are the trainer's
/// own behaviour (data/trainers/torchtitan.yaml).
bool is_ignored_by_torchtitan_reader(std::string_view key);

/// Keys that do say something of it, and that braid does not model.
std::span<const Unmodelled> unmodelled_torchtitan_keys();

}  // namespace braid
