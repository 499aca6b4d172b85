#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <torch/types.h>

#include "braid/program/program.h"
#include "braid/run/rank_link.h"

namespace braid {

/// What one expert makes of its tokens; `weights` [matrices × width × inner], `biases` may be
/// undefined.
torch::Tensor one_expert(const torch::Tensor& x, const torch::Tensor& weights,
                         const torch::Tensor& biases);

/// Experts that the ranks of a group share: each has as many, in order. Tokens travel to the ranks
/// of their experts, what these make of them travels back, and gradients go the same ways (an
/// all-to-all each, of a row for every expert that a token visits).
class TorchExpertGroup {
 public:
  /// `group`: of the link, with so many ranks. The link outlives it, and the graphs of its results.
  TorchExpertGroup(RankLink& link, std::size_t group, int ranks, int rank)
      : link_(&link), group_(group), ranks_(ranks), rank_(rank) {}

  /// A node "ExpertsOfGroup" (stage_sharding.h): operands as of "Experts", of weights and biases
  /// this rank's alone.
  torch::Tensor compute(const ProgramNode& node, std::span<const torch::Tensor> operands) const;

 private:
  RankLink* link_;
  std::size_t group_;
  int ranks_, rank_;
};

}  // namespace braid
