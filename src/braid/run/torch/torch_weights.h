#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <torch/types.h>

#include "braid/run/parameter_groups.h"
#include "braid/run/training_settings.h"

namespace braid {

/// The first numbers of a weight, or a constant's; undefined for other values.
torch::Tensor initial_weight(const Program& program, ValueId value,
                             const TrainingSettings& settings);

/// Parameters and constants that one rank's parts read, and its optimizer. Groups are seen as rows:
/// their pieces one after the other, filled up with zeros to a multiple of their ranks. Where a
/// piece is all that the rank has of a parameter, the parameter and its gradient lie in these rows,
/// and nothing is copied.
class TorchWeights {
 public:
  TorchWeights(const StagedModel& staged, std::span<const ParameterGroup> groups, std::int32_t rank,
               const TrainingSettings& settings);

  /// Undefined for what no part of the rank reads.
  torch::Tensor of(ValueId value) const;
  bool is_parameter(ValueId value) const { return of(value).requires_grad(); }

  std::int64_t row_length(std::size_t group) const { return groups_[group].length; }
  torch::Tensor gradients(std::size_t group) const;
  torch::Tensor row(std::size_t group) const;
  torch::Tensor piece(std::size_t group, std::size_t piece) const;
  void set_row(std::size_t group, const torch::Tensor& row);
  void clear_gradients();

  /// Makes the parameters of a group that keeps parts whole, where autograd has seen them before,
  /// and takes their memory away again. row() is the own part all the while.
  void gather(std::size_t group, const torch::Tensor& row);
  void release(std::size_t group);

  torch::ScalarType row_type() const;
  /// Of as many numbers as step() is given; zeros before the first.
  torch::Tensor moment(std::size_t group, std::size_t which) const;
  /// Weights (of a group that keeps parts the own one, else the row) and moments, after `steps`.
  void restore(std::size_t group, std::span<const torch::Tensor> rows, std::int64_t steps);

  /// Updates the row from `first` on, with as many gradients as there are; state is kept of these
  /// alone, so that a group is always updated in the same place.
  void step(std::size_t group, const torch::Tensor& gradients, std::int64_t first);

 private:
  /// A piece of a parameter as this rank has it.
  struct Piece {
    ValueId value = -1;
    std::int32_t axis = -1;        ///< -1: all of it.
    std::vector<Interval> places;  ///< In what the rank has of it.
    std::int64_t count = 0;        ///< Of its numbers.
    bool in_weights = false;       ///< The parameter lies in the group's row of weights, …
    bool in_gradients = false;     ///< … and its gradient in that of gradients.
    std::vector<torch::Tensor> blocks(const torch::Tensor& tensor) const;
  };
  struct Group {
    std::vector<Piece> pieces;
    std::int64_t length = 0;
    std::int64_t stepped = 0;                ///< Numbers that this rank updates.
    torch::Tensor weight_row, gradient_row;  ///< Where the pieces that say so lie.
    torch::Tensor master;                    ///< Of bf16: the whole row in f32.
    torch::Tensor part;                      ///< Of a group that keeps parts: the own one.
    torch::Tensor first_moment, second_moment;
    double steps = 0;
  };
  torch::Tensor joined(const Group& group, bool gradients) const;
  /// Whether a parameter's numbers, all of them, stand in a row as they do in the parameter.
  bool is_as_in_row(const Piece& piece, const torch::Tensor& weight) const;
  /// Copies a row into the pieces of a group, but for those that lie in it.
  void spread(const Group& group, const torch::Tensor& row);
  /// Where pieces can lie in the group's rows, puts their gradients there, and their weights.
  void lay_in_rows(Group& group, bool weights_too);
  void add_group(const ParameterGroup& of, const RankProgram& own, std::int32_t rank);

  TrainingSettings settings_;
  std::map<ValueId, torch::Tensor> values_;
  std::vector<Group> groups_;
};

}  // namespace braid
