#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/run/synthetic_data.h"
#include "braid/run/torch/torch_exchange.h"
#include "braid/run/torch/torch_experts.h"
#include "braid/run/torch/torch_loss.h"
#include "braid/run/torch/torch_operations.h"
#include "braid/run/torch/torch_tensor.h"
#include "braid/run/torch/torch_training.h"
#include "braid/run/torch/torch_weights.h"

namespace braid {
namespace {

class TorchArithmetic : public TensorArithmetic {
 public:
  TensorHandle slice(const TensorHandle& x, int dimension, std::int64_t first,
                     std::int64_t count) const override {
    const torch::Tensor part = tensor_of(x).slice(dimension, first, first + count);
    return handle_of(part.clone(torch::MemoryFormat::Contiguous));
  }
  TensorHandle join(std::span<const TensorHandle> parts, int dimension) const override {
    std::vector<torch::Tensor> tensors;
    for (const TensorHandle& part : parts) tensors.push_back(tensor_of(part));
    return handle_of(torch::cat(tensors, dimension));
  }
  TensorHandle sum(const TensorHandle& a, const TensorHandle& b) const override {
    return handle_of(tensor_of(a) + tensor_of(b));
  }
  std::int64_t length(const TensorHandle& x) const override { return tensor_of(x).size(0); }
};

/// What a segment keeps of a pass.
struct SegmentPass {
  std::vector<torch::Tensor> reads;    ///< Leaves, by RunSegment::reads.
  std::vector<torch::Tensor> results;  ///< What gradients start from; empty when recomputed.
  std::vector<torch::Tensor> starts;   ///< Their gradients, between two halves.
};

struct KeptPass {
  std::vector<SegmentPass> segments;
  std::map<ValueId, BatchedTensor> inputs;  ///< Of the program.
  std::map<ValueId, torch::Tensor> received;
};

class TorchStageMath : public StageMath {
 public:
  TorchStageMath(const StagedModel& staged, std::span<const ParameterGroup> groups,
                 std::int32_t rank, const TrainingSettings& settings, RankLink& link)
      : staged_(staged),
        place_(staged.places[at(rank)]),
        program_(staged.program_of(rank).program),
        settings_(settings),
        data_(staged.model, settings.seed, staged.batch),
        weights_(staged, groups, rank, settings),
        kept_(staged.parts.size()) {
    const std::int32_t own = group_with(staged.sharers, rank);
    if (own >= 0) exchange_.emplace(link, groups.size() + at(own), place_.of_replica);
    const std::int32_t shared = group_with(staged.expert_sharers, rank);
    if (shared < 0) return;
    experts_.emplace(link, groups.size() + staged.sharers.size() + at(shared),
                     static_cast<int>(staged.expert_sharers[at(shared)].size()), place_.of_experts);
  }

  const TensorArithmetic& arithmetic() const override { return torch_arithmetic(); }

  TensorHandle room_for(ValueId value, std::int64_t samples, std::int64_t rows) const override {
    Shape sizes = staged_.model.shapes[at(value)];
    if (!sizes.empty()) sizes.front() = rows;
    sizes.insert(sizes.begin(), samples);
    return handle_of(torch::empty(sizes, scalar_type(settings_.type)));
  }

  std::vector<TensorHandle> forward(const PassOf& pass,
                                    std::span<const TensorHandle> received) override {
    const StagePart& part = staged_.parts[at(pass.part)];
    KeptPass kept;
    kept.inputs = inputs_of(part, pass);
    std::map<ValueId, torch::Tensor> values;
    for (std::size_t i = 0; i < received.size(); ++i) {
      values[part.received[i]] = tensor_of(received[i]);
    }
    kept.received = values;
    for (const RunSegment& segment : part.segments) {
      SegmentPass of;
      for (const ValueId id : segment.reads) {
        of.reads.push_back(values.at(id).detach().requires_grad_(true));
      }
      const torch::AutoGradMode gradients(!segment.recomputed);
      std::vector<torch::Tensor> results = compute(segment, kept, of.reads);
      for (std::size_t w = 0; w < segment.writes.size(); ++w) {
        values[segment.writes[w]] = results[w].detach();
      }
      add_losses(part, segment, pass, results, true);
      if (!segment.recomputed) of.results = std::move(results);
      kept.segments.push_back(std::move(of));
    }
    std::vector<TensorHandle> handed;
    for (const ValueId id : part.handed) handed.push_back(handle_of(values.at(id)));
    kept_[at(pass.part)][pass.micro_batch] = std::move(kept);
    return handed;
  }

  std::vector<TensorHandle> backward(const PassOf& pass, std::span<const TensorHandle> gradients,
                                     PassHalf half) override {
    const StagePart& part = staged_.parts[at(pass.part)];
    KeptPass& kept = kept_[at(pass.part)].at(pass.micro_batch);
    if (half == PassHalf::weights) {
      for (std::size_t s = 0; s < part.segments.size(); ++s) {
        weight_gradients(part.segments[s], kept.segments[s]);
      }
      kept_[at(pass.part)].erase(pass.micro_batch);
      return {};
    }
    std::map<ValueId, torch::Tensor> known;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      known[part.handed[i]] = tensor_of(gradients[i]);
    }
    for (std::size_t s = part.segments.size(); s-- > 0;) {
      go_back(part, s, pass, kept, known, half);
    }
    std::vector<TensorHandle> result;
    for (const ValueId id : part.received) {
      const auto found = known.find(id);
      result.push_back(handle_of(found != known.end() ? found->second.contiguous()
                                                      : torch::zeros_like(kept.received.at(id))));
    }
    if (half == PassHalf::both) kept_[at(pass.part)].erase(pass.micro_batch);
    return result;
  }

  double take_loss() override { return std::exchange(loss_, 0); }

  std::int64_t row_length(std::size_t group) const override { return weights_.row_length(group); }
  TensorHandle gradients(std::size_t group) override {
    return handle_of(weights_.gradients(group));
  }
  TensorHandle weights(std::size_t group) override { return handle_of(weights_.row(group)); }
  void step(std::size_t group, const TensorHandle& gradients, std::int64_t first) override {
    weights_.step(group, tensor_of(gradients), first);
  }
  void set_weights(std::size_t group, const TensorHandle& row) override {
    weights_.set_row(group, tensor_of(row));
  }
  void gather_weights(std::size_t group, const TensorHandle& row) override {
    weights_.gather(group, tensor_of(row));
  }
  void release_weights(std::size_t group) override { weights_.release(group); }
  void clear_gradients() override { weights_.clear_gradients(); }
  TensorHandle row_room(std::int64_t length) const override {
    return handle_of(torch::empty({length}, weights_.row_type()));
  }
  TensorHandle row_of_numbers(const DenseTensor& numbers) const override {
    return handle_of(torch_tensor(numbers, numbers.type));
  }
  DenseTensor numbers(const TensorHandle& row) const override {
    return dense_tensor_of_row(tensor_of(row));
  }
  TensorHandle moment(std::size_t group, std::size_t which) const override {
    return handle_of(weights_.moment(group, which));
  }
  void restore(std::size_t group, std::span<const TensorHandle> rows, std::int64_t steps) override {
    std::vector<torch::Tensor> tensors;
    for (const TensorHandle& row : rows) tensors.push_back(tensor_of(row));
    weights_.restore(group, tensors, steps);
  }
  DenseTensor piece(std::size_t group, std::size_t piece) const override {
    return dense_tensor(weights_.piece(group, piece));
  }

 private:
  const Program& program() const { return program_; }

  std::map<ValueId, BatchedTensor> inputs_of(const StagePart& part, const PassOf& pass) const {
    std::map<ValueId, BatchedTensor> inputs;
    for (const RunSegment& segment : part.segments) {
      for (const NodeId n : segment.nodes) {
        for (const ValueId id : program().nodes[at(n)].inputs) {
          for (std::size_t i = 0; i < program().inputs.size(); ++i) {
            if (program().inputs[i].value != id || inputs.contains(id)) continue;
            inputs[id] = {
                input_of(data_, program(), i, pass.first_sample, part.micro_batch, settings_.type),
                true};
          }
        }
      }
    }
    return inputs;
  }

  /// What a segment writes.
  std::vector<torch::Tensor> compute(const RunSegment& segment, const KeptPass& kept,
                                     const std::vector<torch::Tensor>& reads) const {
    std::map<ValueId, BatchedTensor> values = kept.inputs;
    for (std::size_t i = 0; i < reads.size(); ++i) values[segment.reads[i]] = {reads[i], true};
    for (const NodeId n : segment.nodes) {
      const ProgramNode& node = program().nodes[at(n)];
      std::vector<BatchedTensor> operands;
      for (const ValueId id : node.inputs) {
        const auto found = values.find(id);
        operands.push_back(found != values.end() ? found->second
                                                 : BatchedTensor{weights_.of(id), false});
      }
      values[node.outputs.front()] = computed(node, operands);
    }
    std::vector<torch::Tensor> results;
    for (const ValueId id : segment.writes) results.push_back(values.at(id).tensor);
    return results;
  }

  BatchedTensor computed(const ProgramNode& node, std::span<const BatchedTensor> operands) const {
    if (node.domain != kBraidDomain || node.operation == "Experts") {
      return compute_node(program(), node, operands);
    }
    const BatchedTensor& x = operands.front();
    if (node.operation == "ExpertsOfGroup") {
      std::vector<torch::Tensor> tensors;
      for (const BatchedTensor& each : operands) tensors.push_back(each.tensor);
      return {experts_->compute(node, tensors), true};
    }
    if (is_exchange(node)) return {exchange_->compute(node, x.tensor), true};
    const bool looks_up = node.operation == "GatherPart";
    const torch::Tensor ids = looks_up ? operands[1].tensor : torch::Tensor();
    return {compute_own_part(node, x.tensor, ids), looks_up};
  }

  torch::Tensor loss_of_result(ValueId id, const torch::Tensor& result,
                               std::int64_t first_sample) const {
    const ValueLayout& layout = staged_.shardings[at(place_.stage)].layouts[at(id)];
    const LossSamples samples{id, first_sample, staged_.batch};
    if (layout.is_whole()) return loss_of(data_, samples, result);
    return sharded_loss_of(data_, samples, result, layout, staged_.model.shapes[at(id)],
                           *exchange_);
  }

  /// Whether this rank counts a loss, of which all of its replica may have the whole.
  bool counts_loss(ValueId id) const {
    const ValueLayout& layout = staged_.shardings[at(place_.stage)].layouts[at(id)];
    return layout.axis == 0 || place_.of_replica == 0;
  }

  /// Appends the losses that the segment's results have, and counts them.
  void add_losses(const StagePart& part, const RunSegment& segment, const PassOf& pass,
                  std::vector<torch::Tensor>& results, bool counts) {
    for (std::size_t w = 0; w < segment.writes.size(); ++w) {
      const ValueId id = segment.writes[w];
      if (!std::binary_search(part.losses.begin(), part.losses.end(), id)) continue;
      results.push_back(loss_of_result(id, results[w], pass.first_sample));
      if (counts && counts_loss(id)) loss_ += results.back().item<double>();
    }
  }

  /// The backward pass of one segment: `known` has gradients of what it writes, and then of what it
  /// reads.
  void go_back(const StagePart& part, std::size_t s, const PassOf& pass, KeptPass& kept,
               std::map<ValueId, torch::Tensor>& known, PassHalf half) {
    const RunSegment& segment = part.segments[s];
    SegmentPass& of = kept.segments[s];
    if (segment.recomputed) {
      of.results = compute(segment, kept, of.reads);
      add_losses(part, segment, pass, of.results, false);
    }
    std::vector<torch::Tensor> results;
    for (std::size_t r = 0; r < of.results.size(); ++r) {
      const bool is_loss = r >= segment.writes.size();
      const auto found = is_loss ? known.end() : known.find(segment.writes[r]);
      if ((!is_loss && found == known.end()) || !of.results[r].requires_grad()) continue;
      results.push_back(of.results[r]);
      of.starts.push_back(is_loss ? torch::ones_like(of.results[r]) : found->second);
    }
    of.results = std::move(results);
    std::vector<torch::Tensor> leaves = of.reads;
    if (half == PassHalf::both) add_parameters(segment, leaves);
    if (!leaves.empty() && !of.results.empty()) {
      torch::autograd::backward(of.results, of.starts, half == PassHalf::inputs, false, leaves);
    }
    for (std::size_t i = 0; i < segment.reads.size(); ++i) {
      const torch::Tensor gradient = of.reads[i].grad();
      if (!gradient.defined()) continue;
      torch::Tensor& sum = known[segment.reads[i]];
      sum = sum.defined() ? sum + gradient : gradient;
    }
    if (half == PassHalf::both) of = {};
  }

  void weight_gradients(const RunSegment& segment, const SegmentPass& of) {
    std::vector<torch::Tensor> leaves;
    add_parameters(segment, leaves);
    if (leaves.empty() || of.results.empty()) return;
    torch::autograd::backward(of.results, of.starts, false, false, leaves);
  }

  void add_parameters(const RunSegment& segment, std::vector<torch::Tensor>& leaves) const {
    std::vector<ValueId> ids;
    for (const NodeId n : segment.nodes) {
      for (const ValueId id : program().nodes[at(n)].inputs) {
        if (id >= 0 && weights_.is_parameter(id)) ids.push_back(id);
      }
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    for (const ValueId id : ids) leaves.push_back(weights_.of(id));
  }

  const StagedModel& staged_;
  const RankPlace place_;
  const Program& program_;
  const TrainingSettings settings_;
  const SyntheticData data_;
  TorchWeights weights_;
  std::optional<TorchExchange> exchange_;    ///< Where the rank shares its replica's work.
  std::optional<TorchExpertGroup> experts_;  ///< Where it shares experts.
  std::vector<std::map<std::int64_t, KeptPass>> kept_;  ///< [part], by micro-batch.
  double loss_ = 0;
};

}  // namespace

const TensorArithmetic& torch_arithmetic() {
  static const TorchArithmetic arithmetic;
  return arithmetic;
}

std::unique_ptr<StageMath> torch_stage_math(const StagedModel& staged,
                                            std::span<const ParameterGroup> groups,
                                            std::int32_t rank, const TrainingSettings& settings,
                                            RankLink& link) {
  return std::make_unique<TorchStageMath>(staged, groups, rank, settings, link);
}

}  // namespace braid
