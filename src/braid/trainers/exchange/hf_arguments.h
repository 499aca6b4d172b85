#pragma once

#include <cstdint>
#include <string_view>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

// Arguments of training scripts that Hugging Face's Trainer has, and of its usual examples
// (transformers/training_args.py, run_clm.py, TRL, FastChat).

/// Whether a flag of its parser is there, bare or with a word that says yes.
bool is_set_for_hf(GivenArguments& given, std::string_view name);

/// What the arguments say of any run: model, tokens of a sample, recomputation, and in notes what
/// is not modelled. Takes note of those that no figure depends on. Throws Error for a value that
/// cannot be.
void take_hf_arguments(GivenArguments& given, Import& run);

/// The samples of a micro-batch, for each device; 0: not said.
std::int64_t micro_batch_of_hf(GivenArguments& given);

/// Micro-batches of a step; 0: not said.
std::int64_t accumulation_of_hf(GivenArguments& given);

}  // namespace braid
