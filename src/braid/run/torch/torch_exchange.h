#pragma once

#include <cstddef>
#include <cstdint>

#include <torch/types.h>

#include "braid/program/program.h"
#include "braid/run/rank_link.h"

namespace braid {

/// What the ranks that divide a replica's work exchange within passes, seen by one of them.
class TorchExchange {
 public:
  /// `group`: of the link. The link outlives it, and the graphs of its results.
  TorchExchange(RankLink& link, std::size_t group, int rank)
      : link_(&link), group_(group), rank_(rank) {}

  /// A node that is_exchange(), of a value with a dimension for samples in front, with its
  /// gradient.
  torch::Tensor compute(const ProgramNode& node, const torch::Tensor& x) const;
  /// Of numbers of which each rank has a part; their gradient is that of the sum.
  torch::Tensor sum(const torch::Tensor& x) const;
  /// The greatest that any rank has, without gradient. Every rank has as many numbers.
  torch::Tensor greatest(const torch::Tensor& x) const;
  int rank() const { return rank_; }

 private:
  RankLink* link_;
  std::size_t group_;
  int rank_;
};

/// "TakeStored", "OfFirst" and "GatherPart" (stage_sharding.h), which exchange nothing. `ids` is of
/// the last alone.
torch::Tensor compute_own_part(const ProgramNode& node, const torch::Tensor& x,
                               const torch::Tensor& ids);

}  // namespace braid
