#pragma once

#include <cstdint>

#include <torch/types.h>

#include "braid/run/synthetic_data.h"
#include "braid/run/torch/torch_exchange.h"
#include "braid/run/value_layout.h"

namespace braid {

/// The part of the iteration's loss that these samples of a result have: cross entropy, or half the
/// squared error where there is one column, as the mean over rows and over the iteration's samples.
torch::Tensor loss_of(const SyntheticData& data, ValueId result, const torch::Tensor& tensor,
                      std::int64_t first_sample, std::int64_t batch);

/// The same of a result that the ranks of a group have parts of. Of logits that are divided by
/// columns each has the whole loss and the gradient of its columns, of rows each has the loss of
/// its rows. `layout` is divided by one of the two dimensions of `shape`.
torch::Tensor divided_loss_of(const SyntheticData& data, ValueId result,
                              const torch::Tensor& tensor, std::int64_t first_sample,
                              std::int64_t batch, const ValueLayout& layout, const Shape& shape,
                              const TorchExchange& exchange);

}  // namespace braid
