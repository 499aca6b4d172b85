#pragma once

#include <string>
#include <string_view>

#include "braid/trainers/exchange/import.h"

namespace braid {

/// Does the text start Megatron-LM: does it name one of its arguments or a script of its?
bool is_megatron(std::string_view text);

/// Reads a command line or a launch script with Megatron-LM's arguments
/// (megatron/training/arguments.py, whose defaults hold for what is not said). Its stages go over
/// the blocks of the model that is named beside it, or else of its own. Throws Error, naming the
/// argument, for a value that is no number or not of the argument's choices, for pipelines that
/// cannot be, and where there is no command with its arguments.
///
///     Import run = import_megatron("torchrun --nproc-per-node 8 pretrain_gpt.py "
///                                  "--tensor-model-parallel-size 8", "train.sh");
///     run.parallel.tp;  // 8
Import import_megatron(std::string_view text, const std::string& file,
                       const ImportChoice& choice = {});

}  // namespace braid
