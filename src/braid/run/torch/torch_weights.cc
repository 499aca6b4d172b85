#include "braid/run/torch/torch_weights.h"

#include <algorithm>
#include <utility>

#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/run/torch/adam_step.h"
#include "braid/run/torch/torch_tensor.h"

namespace braid {
namespace {

/// The memory of a tensor, which stays as long as somebody has this.
c10::DataPtr memory_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr(), new torch::Tensor(tensor),
          [](void* kept) { delete static_cast<torch::Tensor*>(kept); }, c10::kCPU};
}

}  // namespace

TorchWeights::TorchWeights(const StagedModel& staged, std::span<const ParameterGroup> groups,
                           std::int32_t rank, const TrainingSettings& settings)
    : settings_(settings) {
  const RankProgram& own = staged.program_of(rank);
  const std::vector<ValueId>& parameters = staged.model.parameters;
  for (const StagePart& part : staged.parts) {
    if (std::find(part.ranks.begin(), part.ranks.end(), rank) == part.ranks.end()) continue;
    for (const RunSegment& segment : part.segments) {
      for (const NodeId n : segment.nodes) {
        for (const ValueId id : own.program.nodes[at(n)].inputs) {
          if (id < 0 || values_.contains(id)) continue;
          torch::Tensor weight = initial_weight(own.program, id, settings);
          if (!weight.defined()) continue;
          const auto sharded = own.parts.find(id);
          if (sharded != own.parts.end()) {
            std::vector<torch::Tensor> held;
            for (const Interval& each : sharded->second.held) {
              held.push_back(weight.slice(sharded->second.axis, each.first, each.last));
            }
            weight = torch::cat(held, sharded->second.axis);
          }
          if (std::binary_search(parameters.begin(), parameters.end(), id)) {
            weight.requires_grad_(true);
          }
          values_[id] = weight;
        }
      }
    }
  }
  for (const ParameterGroup& each : groups) add_group(each, own, rank);
  // A parameter may have pieces in several groups.
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].part.defined()) release(g);
  }
}

void TorchWeights::add_group(const ParameterGroup& of, const RankProgram& own, std::int32_t rank) {
  groups_.emplace_back();
  Group& group = groups_.back();
  // Of groups that the rank is not in, nothing is asked.
  const auto place = std::lower_bound(of.ranks.begin(), of.ranks.end(), rank);
  if (place == of.ranks.end() || *place != rank) return;
  for (const ParameterPiece& piece : of.pieces) {
    const auto part = own.parts.find(piece.value);
    const StoredPart* held = part == own.parts.end() ? nullptr : &part->second;
    Piece& next =
        group.pieces.emplace_back(Piece{piece.value, piece.axis, places_in_part(piece, held)});
    for (const torch::Tensor& each : next.blocks(values_.at(piece.value))) {
      next.count += each.numel();
    }
    group.length += next.count;
  }
  const auto ranks = std::ssize(of.ranks);
  group.length = (group.length + ranks - 1) / ranks * ranks;
  group.stepped = of.zero == Zero::none ? group.length : group.length / ranks;
  group.weight_row = torch::zeros({group.length}, row_type());
  group.gradient_row = torch::zeros({group.length}, row_type());
  lay_in_rows(group, !is_gathered(of));
  if (!is_gathered(of)) return;
  const std::int64_t length = group.length / ranks;
  const std::int64_t first = (place - of.ranks.begin()) * length;
  group.part = joined(group, false).slice(0, first, first + length).clone();
  group.weight_row = torch::Tensor();
}

bool TorchWeights::is_as_in_row(const Piece& piece, const torch::Tensor& weight) const {
  const bool is_one_block = piece.axis < 0 || piece.places.size() == 1;
  return piece.count == weight.numel() && is_one_block && weight.scalar_type() == row_type() &&
         weight.is_contiguous();
}

void TorchWeights::lay_in_rows(Group& group, bool weights_too) {
  const torch::NoGradGuard no_gradients;
  std::int64_t first = 0;
  for (Piece& piece : group.pieces) {
    torch::Tensor& weight = values_.at(piece.value);
    const std::int64_t place = std::exchange(first, first + piece.count);
    if (!is_as_in_row(piece, weight)) continue;
    const auto view = [&](const torch::Tensor& row) {
      return row.slice(0, place, place + piece.count).view(weight.sizes()).detach();
    };
    if (weights_too) {
      piece.in_weights = true;
      view(group.weight_row).copy_(weight);
      weight = view(group.weight_row).requires_grad_(true);
    }
    piece.in_gradients = true;
    weight.mutable_grad() = view(group.gradient_row);
  }
}

std::vector<torch::Tensor> TorchWeights::Piece::blocks(const torch::Tensor& tensor) const {
  if (axis < 0) return {tensor};
  std::vector<torch::Tensor> blocks;
  for (const Interval& each : places) blocks.push_back(tensor.slice(axis, each.first, each.last));
  return blocks;
}

torch::Tensor TorchWeights::of(ValueId value) const {
  const auto found = values_.find(value);
  return found != values_.end() ? found->second : torch::Tensor();
}

torch::Tensor TorchWeights::piece(std::size_t group, std::size_t piece) const {
  const torch::NoGradGuard no_gradients;
  const Piece& of = groups_[group].pieces[piece];
  return torch::cat(of.blocks(values_.at(of.value)), std::max(0, of.axis));
}

torch::Tensor TorchWeights::joined(const Group& group, bool gradients) const {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor& row = gradients ? group.gradient_row : group.weight_row;
  std::int64_t first = 0;
  for (const Piece& piece : group.pieces) {
    if (gradients ? piece.in_gradients : piece.in_weights) {
      first += piece.count;
      continue;
    }
    const torch::Tensor& weight = values_.at(piece.value);
    const torch::Tensor from = gradients ? weight.grad() : weight;
    if (!from.defined()) {
      row.slice(0, first, first + piece.count).zero_();
      first += piece.count;
      continue;
    }
    for (const torch::Tensor& block : piece.blocks(from)) {
      row.slice(0, first, first + block.numel()).copy_(block.reshape({-1}));
      first += block.numel();
    }
  }
  return row;
}

torch::Tensor TorchWeights::gradients(std::size_t group) const {
  return joined(groups_[group], true);
}

torch::Tensor TorchWeights::row(std::size_t group) const {
  if (groups_[group].part.defined()) return groups_[group].part;
  if (groups_[group].master.defined()) return groups_[group].master;
  return joined(groups_[group], false);
}

void TorchWeights::spread(const Group& group, const torch::Tensor& row) {
  std::int64_t first = 0;
  for (const Piece& piece : group.pieces) {
    const void* const place = row.slice(0, first, first + piece.count).data_ptr();
    if (values_.at(piece.value).data_ptr() == place) {
      first += piece.count;
      continue;
    }
    // Without a version of its own: graphs of passes that wait for their backward pass have it.
    for (const torch::Tensor& block : piece.blocks(values_.at(piece.value).variable_data())) {
      block.copy_(row.slice(0, first, first + block.numel()).reshape(block.sizes()));
      first += block.numel();
    }
  }
}

void TorchWeights::set_row(std::size_t group, const torch::Tensor& row) {
  const torch::NoGradGuard no_gradients;
  Group& of = groups_[group];
  if (settings_.type == ElementType::bf16) of.master = row;
  spread(of, row);
}

void TorchWeights::gather(std::size_t group, const torch::Tensor& row) {
  const torch::NoGradGuard no_gradients;
  std::int64_t first = 0;
  for (const Piece& piece : groups_[group].pieces) {
    const torch::Tensor& value = values_.at(piece.value);
    torch::Storage storage = value.storage();
    const std::int64_t place = std::exchange(first, first + piece.count);
    // Graphs of passes that wait for their backward pass refer to the storage: it is filled again.
    if (storage.nbytes() > 0) continue;
    const std::size_t bytes = at(value.numel()) * value.element_size();
    storage.set_data_ptr_noswap(is_as_in_row(piece, value)
                                    ? memory_of(row.slice(0, place, place + piece.count))
                                    : c10::GetAllocator(c10::kCPU)->allocate(bytes));
    storage.set_nbytes(bytes);
  }
  spread(groups_[group], row);
}

void TorchWeights::release(std::size_t group) {
  for (const Piece& piece : groups_[group].pieces) {
    values_.at(piece.value).storage().set_data_ptr_noswap(c10::DataPtr());
    values_.at(piece.value).storage().set_nbytes(0);
  }
}

torch::ScalarType TorchWeights::row_type() const {
  return settings_.type == ElementType::bf16 ? torch::kFloat32 : scalar_type(settings_.type);
}

torch::Tensor TorchWeights::moment(std::size_t group, std::size_t which) const {
  const Group& of = groups_[group];
  const torch::Tensor& moment = which == 0 ? of.first_moment : of.second_moment;
  return moment.defined() ? moment : torch::zeros({of.stepped}, row_type());
}

void TorchWeights::restore(std::size_t group, std::span<const torch::Tensor> rows,
                           std::int64_t steps) {
  Group& of = groups_[group];
  if (of.part.defined()) {
    of.part = rows[0];
  } else {
    set_row(group, rows[0]);
  }
  if (rows.size() < 3) return;
  of.first_moment = rows[1];
  of.second_moment = rows[2];
  of.steps = static_cast<double>(steps);
}

void TorchWeights::clear_gradients() {
  for (Group& group : groups_) {
    if (group.gradient_row.defined()) group.gradient_row.zero_();
    for (const Piece& piece : group.pieces) {
      if (!piece.in_gradients) values_.at(piece.value).mutable_grad() = torch::Tensor();
    }
  }
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
    adam_step({weights, of.first_moment, of.second_moment}, gradients, settings_.learning_rate,
              of.steps);
  }
  if (!of.part.defined()) set_row(group, all);
}

}  // namespace braid
