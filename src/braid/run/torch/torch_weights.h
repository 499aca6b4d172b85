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
/// their parameters one after the other, filled up with zeros to a multiple of their ranks.
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
  void set_row(std::size_t group, const torch::Tensor& row);
  void clear_gradients();

  /// Makes the parameters of a group that keeps parts whole, where autograd has seen them before,
  /// and takes their memory away again. row() is the own part all the while.
  void gather(std::size_t group, const torch::Tensor& row);
  void release(std::size_t group);

  /// Updates the row from `first` on, with as many gradients as there are; state is kept of these
  /// alone, so that a group is always updated in the same place.
  void step(std::size_t group, const torch::Tensor& gradients, std::int64_t first);

 private:
  struct Group {
    std::vector<ValueId> parameters;
    std::int64_t length = 0;
    torch::Tensor master;  ///< Of bf16: the whole row in f32.
    torch::Tensor part;    ///< Of a group that keeps parts: the own one.
    torch::Tensor first_moment, second_moment;
    double steps = 0;
  };
  torch::Tensor joined(const Group& group, const std::vector<torch::Tensor>& pieces) const;

  TrainingSettings settings_;
  std::map<ValueId, torch::Tensor> values_;
  std::vector<Group> groups_;
};

}  // namespace braid
