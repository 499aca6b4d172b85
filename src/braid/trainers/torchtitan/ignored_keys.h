#pragma once

#include <span>
#include <string_view>

namespace braid {

/// Keys of torchtitan 0.2.2 (config/job_config.py) and fields of its later recipes
/// (config/configs.py) that say nothing of the time or memory of a step as braid models it: data,
/// learning rates, logging, checkpoints, and overlap and fusion, which are the trainer's own
/// behaviour (data/trainers/torchtitan.yaml). With dashes in front, as GivenArguments has them.
std::span<const std::string_view> torchtitan_ignored_keys();

}  // namespace braid
