#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace braid {

/// Processes that the words before a script start, "torchrun --nproc-per-node 8 --nnodes 4",
/// "deepspeed --num_gpus 8 --num_nodes 4", "deepspeed --include host:0,1", or "mpirun -np 8" and
/// "srun -n 8" before the program itself; 0: they do not say, or say a variable or a range.
///
///     processes_started({{"torchrun", "--nproc-per-node=8"}}, "train.sh");  // 8
std::int64_t processes_started(std::span<const std::string> words, const std::string& file);

}  // namespace braid
