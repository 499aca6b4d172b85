#include "braid/run/torch/torch_weights.h"

#include <algorithm>
#include <cmath>

#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/run/torch/torch_tensor.h"

namespace braid {

TorchWeights::TorchWeights(const StagedModel& staged, std::span<const ParameterGroup> groups,
                           std::int32_t rank, const TrainingSettings& settings)
    : settings_(settings) {
  const Program& program = staged.model.program;
  const std::vector<ValueId>& parameters = staged.model.parameters;
  for (const StagePart& part : staged.parts) {
    if (std::find(part.ranks.begin(), part.ranks.end(), rank) == part.ranks.end()) continue;
    for (const RunSegment& segment : part.segments) {
      for (const NodeId n : segment.nodes) {
        for (const ValueId id : program.nodes[at(n)].inputs) {
          if (id < 0 || values_.contains(id)) continue;
          torch::Tensor weight = initial_weight(program, id, settings);
          if (!weight.defined()) continue;
          if (std::binary_search(parameters.begin(), parameters.end(), id)) {
            weight.requires_grad_(true);
          }
          values_[id] = weight;
        }
      }
    }
  }
  for (const ParameterGroup& each : groups) {
    Group group;
    group.parameters = each.parameters;
    // Of groups that the rank is not in, nothing is asked.
    if (std::binary_search(each.ranks.begin(), each.ranks.end(), rank)) {
      for (const ValueId id : group.parameters) group.length += values_.at(id).numel();
      const auto ranks = std::ssize(each.ranks);
      group.length = (group.length + ranks - 1) / ranks * ranks;
    }
    groups_.push_back(std::move(group));
    if (!is_gathered(each) || groups_.back().length == 0) continue;
    const auto place = std::lower_bound(each.ranks.begin(), each.ranks.end(), rank);
    const std::int64_t length = groups_.back().length / std::ssize(each.ranks);
    groups_.back().part =
        row(groups_.size() - 1).slice(0, (place - each.ranks.begin()) * length).clone();
    groups_.back().part.resize_({length});
    release(groups_.size() - 1);
  }
}

torch::Tensor TorchWeights::of(ValueId value) const {
  const auto found = values_.find(value);
  return found != values_.end() ? found->second : torch::Tensor();
}

torch::Tensor TorchWeights::joined(const Group& group,
                                   const std::vector<torch::Tensor>& pieces) const {
  const bool narrow = settings_.type == ElementType::bf16;
  torch::Tensor row =
      torch::zeros({group.length}, narrow ? torch::kFloat32 : scalar_type(settings_.type));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::int64_t count = values_.at(group.parameters[i]).numel();
    if (pieces[i].defined()) row.slice(0, first, first + count).copy_(pieces[i].reshape({-1}));
    first += count;
  }
  return row;
}

torch::Tensor TorchWeights::gradients(std::size_t group) const {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> pieces;
  for (const ValueId id : groups_[group].parameters) pieces.push_back(values_.at(id).grad());
  return joined(groups_[group], pieces);
}

torch::Tensor TorchWeights::row(std::size_t group) const {
  const torch::NoGradGuard no_gradients;
  if (groups_[group].part.defined()) return groups_[group].part;
  if (groups_[group].master.defined()) return groups_[group].master;
  std::vector<torch::Tensor> pieces;
  for (const ValueId id : groups_[group].parameters) pieces.push_back(values_.at(id));
  return joined(groups_[group], pieces);
}

void TorchWeights::set_row(std::size_t group, const torch::Tensor& row) {
  const torch::NoGradGuard no_gradients;
  Group& of = groups_[group];
  if (settings_.type == ElementType::bf16) of.master = row;
  std::int64_t first = 0;
  for (const ValueId id : of.parameters) {
    torch::Tensor& weight = values_.at(id);
    weight.copy_(row.slice(0, first, first + weight.numel()).reshape(weight.sizes()));
    first += weight.numel();
  }
}

void TorchWeights::gather(std::size_t group, const torch::Tensor& row) {
  const torch::NoGradGuard no_gradients;
  std::int64_t first = 0;
  for (const ValueId id : groups_[group].parameters) {
    torch::Tensor& weight = values_.at(id);
    // Graphs of passes that wait for their backward pass refer to the storage: it is filled again.
    torch::Tensor whole =
        row.slice(0, first, first + weight.numel()).to(weight.scalar_type(), false, true);
    weight.storage().set_nbytes(whole.storage().nbytes());
    weight.storage().set_data_ptr_noswap(
        std::move(whole.storage().unsafeGetStorageImpl()->data_ptr()));
    first += weight.numel();
  }
}

void TorchWeights::release(std::size_t group) {
  for (const ValueId id : groups_[group].parameters) {
    values_.at(id).storage().set_data_ptr_noswap(c10::DataPtr());
    values_.at(id).storage().set_nbytes(0);
  }
}

void TorchWeights::clear_gradients() {
  for (auto& [id, value] : values_) value.mutable_grad() = torch::Tensor();
}

void TorchWeights::step(std::size_t group, const torch::Tensor& gradients, std::int64_t first) {
  const torch::NoGradGuard no_gradients;
  Group& of = groups_[group];
  torch::Tensor all = row(group);
  torch::Tensor weights = of.part.defined() ? all : all.slice(0, first, first + gradients.size(0));
  if (settings_.optimizer == OptimizerRule::sgd) {
    weights.sub_(gradients, settings_.learning_rate);
  } else {
    if (!of.first_moment.defined()) {
      of.first_moment = torch::zeros_like(gradients);
      of.second_moment = torch::zeros_like(gradients);
    }
    ++of.steps;
    of.first_moment.mul_(0.9).add_(gradients, 0.1);
    of.second_moment.mul_(0.999).addcmul_(gradients, gradients, 0.001);
    const torch::Tensor spread =
        (of.second_moment / (1 - std::pow(0.999, of.steps))).sqrt_().add_(1e-8);
    weights.addcdiv_(of.first_moment, spread,
                     -settings_.learning_rate / (1 - std::pow(0.9, of.steps)));
  }
  if (!of.part.defined()) set_row(group, all);
}

}  // namespace braid
