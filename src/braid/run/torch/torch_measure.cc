#include "braid/run/torch/torch_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
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
constexpr double kTouchedCaches = 2;  ///< What layers touch in turn, in sizes of the cache.
constexpr double kMostLayers = 64;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// Layers of one graph, one behind the other as a stage has them: all share the shapes, and each
/// has memory of its own, so that the caches hold of each what they hold of it in a run.
class MeasuredLayers {
 public:
  MeasuredLayers(const Graph& graph, std::int64_t batch, double cache_bytes)
      : model_(layered_program(graph)) {
    const Program& program = model_.program;
    check_operations(program);
    alike_.resize(program.values.size());
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      const auto& constant = program.values[v].constant;
      if (constant) alike_[v].tensor = torch_tensor(*constant, ElementType::f32);
    }
    for (const ProgramInput& each : program.inputs) {
      if (!each.shape || !is_real(each.type)) throw Error(graph.name + " is fed no numbers");
      Shape sizes = *each.shape;
      sizes.insert(sizes.begin(), batch);
      alike_[at(each.value)] = {torch::randn(sizes), true};
    }
    layers_.push_back(with_weights());
    forward(layers_.front());
    const torch::Tensor& result = result_of(layers_.front());
    gradient_ = torch::randn(result.sizes());
    const double layers = std::ceil(kTouchedCaches * cache_bytes / bytes_of(layers_.front()));
    const auto count = static_cast<std::size_t>(std::clamp<double>(layers, 1, kMostLayers));
    while (layers_.size() < count) layers_.push_back(with_weights());
  }

  /// All layers forward, then all back in reverse order. The means of one.
  TrainedTime pass() {
    TrainedTime time;
    for (Values& layer : layers_) time.forward_s += forward(layer);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      time.backward_s += backward(*layer);
    }
    const auto count = static_cast<double>(layers_.size());
    return {time.forward_s / count, time.backward_s / count};
  }

 private:
  using Values = std::vector<BatchedTensor>;

  const torch::Tensor& result_of(const Values& layer) const {
    return layer[at(model_.program.outputs.front())].tensor;
  }

  Values with_weights() const {
    Values layer = alike_;
    for (const MissingWeight& each : model_.program.missing) {
      layer[at(each.value)].tensor = torch::randn(each.shape).requires_grad_(true);
    }
    return layer;
  }

  /// Of what a pass forward and back touches.
  double bytes_of(const Values& layer) const {
    double numbers = 2 * static_cast<double>(result_of(layer).numel());
    for (const MissingWeight& each : model_.program.missing) {
      numbers += 2 * static_cast<double>(layer[at(each.value)].tensor.numel());
    }
    for (const ProgramInput& each : model_.program.inputs) {
      numbers += 2 * static_cast<double>(layer[at(each.value)].tensor.numel());
    }
    return 4 * numbers;
  }

  /// What goes in was just written, as by the layer before.
  double forward(Values& layer) const {
    const Program& program = model_.program;
    for (const ProgramInput& each : program.inputs) {
      layer[at(each.value)] = {alike_[at(each.value)].tensor.clone().requires_grad_(true), true};
    }
    const double start_s = now_s();
    compute_nodes(program, layer);
    return now_s() - start_s;
  }

  /// Gradients of weights are added up, as in a run; those of inputs are handed on.
  double backward(Values& layer) const {
    const torch::Tensor gradient = gradient_.clone();
    const double start_s = now_s();
    torch::autograd::backward({result_of(layer)}, {gradient});
    const double time_s = now_s() - start_s;
    for (const ProgramNode& node : model_.program.nodes) layer[at(node.outputs.front())] = {};
    return time_s;
  }

  LayeredProgram model_;
  Values alike_;  ///< Constants, and inputs to be copied.
  std::vector<Values> layers_;
  torch::Tensor gradient_;
};

}  // namespace

TrainedTime measured_layer(const Graph& graph, std::int64_t batch, std::int64_t samples,
                           double cache_bytes) {
  MeasuredLayers layers(graph, batch, cache_bytes);
  const double start_s = now_s();
  for (std::int64_t i = 0; i < kWarmUps; ++i) layers.pass();
  std::vector<double> forward_s, backward_s;
  for (std::int64_t i = 0; i < samples; ++i) {
    if (i >= 3 && now_s() - start_s > kMost_s) break;
    TrainedTime sum;
    double passes = 0;
    do {
      const TrainedTime time = layers.pass();
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
