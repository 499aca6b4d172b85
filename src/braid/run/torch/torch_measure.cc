#include "braid/run/torch/torch_measure.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <torch/torch.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/frontend/graph_program.h"
#include "braid/run/run_operations.h"
#include "braid/run/torch/torch_operations.h"
#include "braid/run/torch/torch_tensor.h"

namespace braid {
namespace {

constexpr double kSample_s = 1e-3;  ///< What a sample takes at the least.
constexpr double kMost_s = 2;       ///< What a layer takes in all, but for three samples.
constexpr std::int64_t kWarmUps = 2;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// A graph of one layer with numbers, which passes go through.
class MeasuredLayer {
 public:
  explicit MeasuredLayer(const Graph& graph) : model_(layered_program(graph)) {
    const Program& program = model_.program;
    check_operations(program);
    values_.resize(program.values.size());
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      const auto& constant = program.values[v].constant;
      if (constant) values_[v].tensor = torch_tensor(*constant, ElementType::f32);
    }
    for (const MissingWeight& each : program.missing) {
      values_[at(each.value)].tensor = torch::randn(each.shape).requires_grad_(true);
    }
    for (const ProgramInput& each : program.inputs) {
      if (!each.shape || !is_real(each.type)) throw Error(graph.name + " is fed no numbers");
      Shape sizes = *each.shape;
      sizes.insert(sizes.begin(), 1);
      inputs_.push_back(each.value);
      values_[at(each.value)] = {torch::randn(sizes).requires_grad_(true), true};
    }
  }

  TrainedTime pass() {
    const Program& program = model_.program;
    TrainedTime time;
    double start_s = now_s();
    std::vector<BatchedTensor> values = values_;
    for (const ProgramNode& node : program.nodes) {
      std::vector<BatchedTensor> operands;
      for (const ValueId id : node.inputs) {
        operands.push_back(id < 0 ? BatchedTensor() : values[at(id)]);
      }
      values[at(node.outputs.front())] = compute_node(program, node, operands);
    }
    const torch::Tensor result = values[at(program.outputs.front())].tensor;
    time.forward_s = now_s() - start_s;
    if (!gradient_.defined()) gradient_ = torch::randn(result.sizes());
    start_s = now_s();
    torch::autograd::backward({result}, {gradient_});
    time.backward_s = now_s() - start_s;
    // Gradients of weights are added up, as in a run; those of inputs are handed on.
    for (const ValueId input : inputs_) values_[at(input)].tensor.mutable_grad() = torch::Tensor();
    return time;
  }

 private:
  LayeredProgram model_;
  std::vector<BatchedTensor> values_;
  std::vector<ValueId> inputs_;
  torch::Tensor gradient_;
};

}  // namespace

TrainedTime measured_layer(const Graph& graph, std::int64_t samples) {
  MeasuredLayer layer(graph);
  const double start_s = now_s();
  for (std::int64_t i = 0; i < kWarmUps; ++i) layer.pass();
  std::vector<double> forward_s, backward_s;
  for (std::int64_t i = 0; i < samples; ++i) {
    if (i >= 3 && now_s() - start_s > kMost_s) break;
    TrainedTime sum;
    double passes = 0;
    do {
      const TrainedTime time = layer.pass();
      sum.forward_s += time.forward_s;
      sum.backward_s += time.backward_s;
      ++passes;
    } while (sum.forward_s + sum.backward_s < kSample_s);
    forward_s.push_back(sum.forward_s / passes);
    backward_s.push_back(sum.backward_s / passes);
  }
  return {median(forward_s), median(backward_s)};
}

void measure_messages(RankLink& link, std::int32_t rank, const TrainedTimesJob& job,
                      TrainedTimes& times) {
  const auto processes = static_cast<std::int32_t>(job.processes);
  const auto measured = [&](const std::function<void()>& exchange) {
    std::vector<double> samples_s;
    for (std::int64_t i = 0; i < kWarmUps + job.samples; ++i) {
      link.sum_of_all(0);
      const double start_s = now_s();
      exchange();
      if (i >= kWarmUps) samples_s.push_back(now_s() - start_s);
    }
    return median(std::move(samples_s));
  };
  for (std::int64_t bytes = 4; bytes <= job.largest_bytes; bytes *= 4) {
    const TensorHandle row = handle_of(torch::ones({bytes / 4}));
    const TensorHandle room = handle_of(torch::ones({bytes / 4}));
    times.messages.push_back({bytes, measured([&] {
                                link.send(row, (rank + 1) % processes, 0);
                                link.receive(room, (rank + processes - 1) % processes, 0);
                                link.finish_sends();
                              })});
    times.sums.push_back({bytes, measured([&] { link.sum(0, row); })});
  }
}

}  // namespace braid
