#pragma once

#include <span>
#include <string_view>

#include "braid/trainers/exchange/unmodelled.h"

namespace braid {

/// Whether an argument of Megatron-LM is known and says nothing of the time or memory of a step as
/// braid models it: data, learning rates, logging, checkpoints, details of routing, and overlap,
/// fusion and formats, which are the trainer's own behaviour (data/trainers/megatron.yaml). By
/// whole families where all of a family is so. Its name has dashes, no underscores.
bool is_ignored_by_megatron_reader(std::string_view name);

/// Arguments that do say something of it, and that braid does not model.
std::span<const Unmodelled> unmodelled_megatron_arguments();

}  // namespace braid
