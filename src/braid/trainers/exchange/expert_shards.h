#pragma once

#include <string_view>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Takes the ranks that each expert is sharded over, which the argument `name` says. One rank or
/// all tensor-parallel ones are as braid has them. Between, experts are taken to be sharded over
/// all and, where they are spread, spread over as many fewer ranks that each holds the same share;
/// a note says so. Throws Error where no number of ranks does that. Precondition: the other degrees
/// are read.
///
///     take_expert_shards(given, "--expert-tensor-parallel-size", 2, run);
///     // tp 4, ep 16: run.parallel.ep is 8, of experts over 4 ranks each
void take_expert_shards(const GivenArguments& given, std::string_view name, int ranks, Import& run);

}  // namespace braid
