#pragma once

#include "braid/trainers/exchange/shell_script.h"
#include "braid/trainers/megatron-bridge/recipe_source.h"

namespace braid {

/// Whether a word is a program of Megatron-Bridge whose command line names a recipe and says what
/// is otherwise in it: run_recipe.py (scripts/training), setup_experiment.py or run_script.py
/// (scripts/performance).
bool is_bridge_program(const std::string& word);

/// Reads what stands behind such a program: options ("-tp 4", "--tensor_model_parallel_size=4")
/// into the settings that they stand for, and overrides ("model.seq_length=4096",
/// "++model.seq_length=4096") as they are.
void read_bridge_words(const ShellCommand& words, BridgeSource& source);

}  // namespace braid
