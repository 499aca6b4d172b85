#pragma once

#include <cstdint>

#include <torch/types.h>

#include "braid/run/synthetic_data.h"
#include "braid/run/torch/torch_exchange.h"
#include "braid/run/value_layout.h"

namespace braid {

/// Samples of a result that a loss is of.
struct LossSamples {
  ValueId result = -1;
  std::int64_t first_sample = 0;  ///< Counted over all iterations.
  std::int64_t batch = 1;         ///< Samples of an iteration.
};

/// The part of the iteration's loss that these samples of a result have: cross entropy, or half the
/// squared error where there is one column, as the mean over rows and over the iteration's samples.
torch::Tensor loss_of(const SyntheticData& data, const LossSamples& samples,
                      const torch::Tensor& tensor);

/// The same of a result that the ranks of a group have parts of. Of logits that are sharded by
/// columns each has the whole loss and the gradient of its columns, of rows each has the loss of
/// its rows. `layout` is sharded by one of the two dimensions of `shape`. Throws Error where a rank
/// has several parts.
torch::Tensor sharded_loss_of(const SyntheticData& data, const LossSamples& samples,
                              const torch::Tensor& tensor, const ValueLayout& layout,
                              const Shape& shape, const TorchExchange& exchange);

}  // namespace braid
