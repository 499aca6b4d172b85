#pragma once

#include <string_view>

#include "braid/plan/parallelism.h"

namespace braid {

/// What Megatron-FSDP shards by its data_parallel_sharding_strategy (DistributedDataParallelConfig
/// of Megatron Core), whose default is "optim_grads_params".
inline Zero zero_of_megatron_fsdp(std::string_view strategy) {
  return strategy == "no_shard"      ? Zero::none
         : strategy == "optim"       ? Zero::optimizer
         : strategy == "optim_grads" ? Zero::gradients
                                     : Zero::parameters;
}

}  // namespace braid
