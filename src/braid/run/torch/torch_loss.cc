#include "braid/run/torch/torch_loss.h"

#include <vector>

#include <torch/torch.h>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Classes or numbers that the samples are to have, row by row: [samples × rows].
torch::Tensor wanted_of(const SyntheticData& data, ValueId result, std::int64_t first_sample,
                        std::int64_t samples) {
  std::vector<torch::Tensor> wanted;
  for (std::int64_t s = 0; s < samples; ++s) {
    wanted.push_back(data.columns(result) == 1
                         ? torch::tensor(data.targets(result, first_sample + s), torch::kFloat64)
                         : torch::tensor(data.classes(result, first_sample + s), torch::kInt64));
  }
  return torch::stack(wanted);
}

/// Cross entropy or half the squared error, summed over rows.
torch::Tensor sum_of_rows(const torch::Tensor& rows, const torch::Tensor& wanted) {
  if (rows.size(1) == 1) {
    return (rows.squeeze(1) - wanted.to(rows.scalar_type())).square().sum() / 2;
  }
  return -rows.log_softmax(1).gather(1, wanted.unsqueeze(1)).sum();
}

/// Cross entropy of rows of which each rank has some columns (Shoeybi et al. 2019, §3).
torch::Tensor sum_by_columns(const torch::Tensor& rows, const torch::Tensor& wanted,
                             const Interval& columns, const TorchExchange& exchange) {
  const torch::Tensor most = exchange.greatest(rows.amax(1));
  const torch::Tensor sums = exchange.sum((rows - most.unsqueeze(1)).exp().sum(1));
  const torch::Tensor own = wanted.ge(columns.first).logical_and(wanted.lt(columns.last));
  const torch::Tensor places = (wanted - columns.first).clamp(0, columns.length() - 1);
  const torch::Tensor found = rows.gather(1, places.unsqueeze(1)).squeeze(1);
  const torch::Tensor score = exchange.sum(found * own.to(rows.scalar_type()));
  return (sums.log() + most - score).sum();
}

}  // namespace

torch::Tensor loss_of(const SyntheticData& data, const LossSamples& samples,
                      const torch::Tensor& tensor) {
  const torch::Tensor rows = tensor.reshape({-1, data.columns(samples.result)});
  const double weight =
      static_cast<double>(tensor.size(0)) / static_cast<double>(rows.size(0) * samples.batch);
  const torch::Tensor wanted =
      wanted_of(data, samples.result, samples.first_sample, tensor.size(0));
  return sum_of_rows(rows, wanted.reshape({-1})) * weight;
}

torch::Tensor sharded_loss_of(const SyntheticData& data, const LossSamples& samples,
                              const torch::Tensor& tensor, const ValueLayout& layout,
                              const Shape& shape, const TorchExchange& exchange) {
  const auto held = held_indices(layout, shape, at(exchange.rank()));
  if (!held || held->size() != 1 || shape.size() != 2) {
    throw Error("a loss reads a result that ranks have several parts of", "plan with --tp 1");
  }
  const torch::Tensor rows = tensor.reshape({-1, tensor.size(-1)});
  const double weight = 1 / static_cast<double>(shape.front() * samples.batch);
  const torch::Tensor wanted =
      wanted_of(data, samples.result, samples.first_sample, tensor.size(0));
  if (layout.axis == 1) {
    return sum_by_columns(rows, wanted.reshape({-1}), held->front(), exchange) * weight;
  }
  const torch::Tensor own = wanted.slice(1, held->front().first, held->front().last);
  return sum_of_rows(rows, own.reshape({-1})) * weight;
}

}  // namespace braid
