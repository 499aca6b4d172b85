#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/program/dense_tensor.h"
#include "braid/run/staged_model.h"

namespace braid {

/// A parameter or some indices of one of its dimensions.
struct ParameterPiece {
  ValueId value = -1;
  std::int32_t axis = -1;      ///< -1: all of the parameter.
  std::vector<Interval> held;  ///< Indices of that dimension of the whole parameter, ascending.
  friend bool operator==(const ParameterPiece&, const ParameterPiece&) = default;
};

/// Parts of parameters that the same ranks hold. Once an iteration these sum their gradients,
/// whether they are replicas of a stage, ranks that share its work, or stages that share a
/// parameter.
struct ParameterGroup {
  std::vector<std::int32_t> ranks;     ///< Ascending.
  std::vector<ParameterPiece> pieces;  ///< By parameter, then indices.
  Zero zero = Zero::none;              ///< The least of its stages'.

  bool has_any(std::span<const ValueId> parameters) const;
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// Whether its ranks keep but their parts of the parameters, and gather them for each pass.
inline bool is_gathered(const ParameterGroup& group) {
  return group.zero == Zero::parameters && group.ranks.size() > 1;
}

/// All groups, in the order in which every rank reduces those that it is in. Throws Error, naming
/// the stage, where ZeRO-3 shards a parameter that another stage holds too: their passes are not at
/// the same time; and where two stages hold parts of a parameter along different dimensions.
std::vector<ParameterGroup> parameter_groups(const StagedModel& staged, const Plan& plan);

/// Ranks that meet in collectives: those of each group, then StagedModel::sharers and
/// expert_sharers.
std::vector<std::vector<std::int32_t>> meeting_ranks(const StagedModel& staged,
                                                     std::span<const ParameterGroup> groups);

/// Where the indices of a piece lie in what a rank holds of its parameter: all of it (no part), or
/// a part that has them.
std::vector<Interval> places_in_part(const ParameterPiece& piece, const StoredPart* part);

/// A piece of a parameter as one tensor.
struct PieceOfTensor {
  ParameterPiece piece;
  DenseTensor tensor;  ///< As the whole parameter, but for its dimension `axis`.
};

/// Puts a piece into its place. Precondition: `whole` has the parameter's shape and the same type.
void put_piece(DenseTensor& whole, const PieceOfTensor& piece);

}  // namespace braid
