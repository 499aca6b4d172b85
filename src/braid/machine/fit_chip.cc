#include "braid/machine/fit_chip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <variant>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/least_squares.h"
#include "braid/graph/op_work.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/operator_estimate.h"
#include "braid/profile/precision.h"

namespace braid {
namespace {

/// Ratios of fitted and measured times beyond this factor count linearly.
constexpr double kLargeRatio = 1.5;

/// Rows and columns that a library's inner GEMM computes at once, and the step of its depth.
struct Tile {
  int m, n, k;
};
constexpr std::array<Tile, 7> kTiles = {
    {{1, 1, 1}, {4, 4, 1}, {8, 8, 1}, {4, 16, 1}, {8, 32, 1}, {16, 64, 1}, {16, 64, 64}}};

constexpr std::array<double Efficiency::*, 6> kFigures = {
    &Efficiency::matmul_peak_fraction,    &Efficiency::vector_peak_fraction,
    &Efficiency::attention_peak_fraction, &Efficiency::memory_peak_fraction,
    &Efficiency::memory_half_bytes,       &Efficiency::kernel_launch_s};
const std::vector<FreeFigure> kBounds = {{1e-3, 1}, {1e-3, 1}, {1e-3, 1},
                                         {1e-2, 1}, {1, 1e8},  {1e-8, 1e-3}};
/// Slow arithmetic, so that none hides behind the memory where the descent begins.
const std::vector<double> kStart = {0.3, 0.02, 0.1, 0.8, 1e4, 1e-6};

Efficiency with(Efficiency efficiency, const std::vector<double>& figures) {
  for (std::size_t i = 0; i < figures.size(); ++i) efficiency.*kFigures.at(i) = figures[i];
  return efficiency;
}

/// The operators' works, which do not change with the chip.
struct Sample {
  const Graph* graph = nullptr;
  Graph fed;  ///< behind_a_layer().
  OperatorWork work;
  double measured_s = 0, backward_s = 0;
};

OperatorTimes estimate_of(const Sample& sample, const Chip& chip, const Precision& precision) {
  static const Execution alone;
  const OperatorEstimate estimate(sample.fed, alone, precision, chip,
                                  matmul_peak_in(chip, precision));
  return estimate.times(sample.fed.operators.back(), sample.work);
}

/// Whether the gradients take a time that says something of the chip: where nothing is computed,
/// as for sums, they are handed on.
bool has_gradients(const Sample& sample) {
  if (!(sample.backward_s > 0)) return false;
  const auto* pointwise = std::get_if<Elementwise>(&sample.graph->operators.front().kind);
  return pointwise == nullptr || pointwise->keeps != Elementwise::Keeps::nothing;
}

double bytes_of(const OpWork& work) {
  return work.input_bytes + work.weight_bytes + work.output_bytes;
}

bool is_sum(const Sample& sample) {
  const OperatorKind& kind = sample.graph->operators.front().kind;
  return std::holds_alternative<Elementwise>(kind) && sample.graph->inputs.size() == 2;
}

/// The highest rates of the measured: FLOP/s of GEMMs, bytes/s of what no cache holds.
struct HighestRates {
  double flops_per_s = 0, bytes_per_s = 0;
};
HighestRates highest_rates(std::span<const Sample> samples, double cache_bytes) {
  double most_bytes = 0;
  for (const Sample& each : samples) {
    if (!is_sum(each)) continue;
    most_bytes = std::max(most_bytes, bytes_of(each.work.forward));
  }
  HighestRates rates;
  for (const Sample& each : samples) {
    const OpWork& work = each.work.forward;
    if (std::holds_alternative<MatMul>(each.graph->operators.front().kind)) {
      rates.flops_per_s = std::max(rates.flops_per_s, work.matmul_flops / each.measured_s);
    }
    if (is_sum(each) && bytes_of(work) >= std::min(cache_bytes, most_bytes)) {
      rates.bytes_per_s = std::max(rates.bytes_per_s, bytes_of(work) / each.measured_s);
    }
  }
  return rates;
}

Descent fitted_figures(const Chip& chip, std::span<const Sample> samples,
                       const Precision& precision) {
  LeastSquares problem;
  problem.figures = kBounds;
  problem.weights.assign(samples.size(), 1);
  for (const Sample& each : samples) {
    if (has_gradients(each)) problem.weights.push_back(1);
  }
  problem.loss = huber_loss(std::log(kLargeRatio));
  problem.residuals = [&](const std::vector<double>& figures) {
    Chip tried = chip;
    tried.efficiency = with(chip.efficiency, figures);
    std::vector<double> residuals;
    residuals.reserve(problem.weights.size());
    for (const Sample& each : samples) {
      const OperatorTimes times = estimate_of(each, tried, precision);
      residuals.push_back(std::log(times.forward_s / each.measured_s));
      if (has_gradients(each)) residuals.push_back(std::log(times.backward_s() / each.backward_s));
    }
    return residuals;
  };
  constexpr int steps = 60;
  return descend(problem, kStart, {steps, 1e-6, true});
}

}  // namespace

Graph behind_a_layer(const Graph& graph) {
  Graph fed = graph;
  fed.operators.clear();
  fed.inputs.clear();
  for (const TensorId input : graph.inputs) {
    const auto view = static_cast<OperatorId>(fed.operators.size());
    const auto outside = static_cast<TensorId>(fed.tensors.size());
    Tensor tensor = graph.tensors[at(input)];
    tensor.name += ".outside";
    fed.operators.push_back({tensor.name + ".view", DataMovement{true}, {outside}, {input}});
    fed.tensors[at(input)].producer = view;
    fed.tensors.push_back(std::move(tensor));
    fed.inputs.push_back(outside);
  }
  const auto first = static_cast<OperatorId>(fed.operators.size());
  for (const Operator& op : graph.operators) {
    fed.operators.push_back(op);
    fed.operators.back().layer = 1;
    for (const TensorId output : op.outputs) fed.tensors[at(output)].producer += first;
  }
  fed.layers = {
      {"before", 0, first, 0},
      {graph.layers.front().name, first, static_cast<OperatorId>(fed.operators.size()), 1}};
  return fed;
}

FittedChip fit_chip(const Chip& bare, std::span<const MeasuredOperator> measured,
                    double cache_bytes) {
  const Precision precision = parse_precision("fp32");
  std::vector<Sample> samples;
  for (const MeasuredOperator& each : measured) {
    const Graph& graph = each.operation.graph;
    Graph fed = behind_a_layer(graph);
    OperatorWork work = layer_work(fed, 1).front();
    samples.push_back({&graph, std::move(fed), std::move(work), each.time_s, each.backward_s});
  }
  const HighestRates rates = highest_rates(samples, cache_bytes);
  if (rates.flops_per_s <= 0) throw Error("no GEMM could be measured");
  if (rates.bytes_per_s <= 0) throw Error("no sum of two tensors could be measured");
  FittedChip best;
  double least_cost = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    Chip chip = bare;
    chip.peaks = {{Dtype::f32, rates.flops_per_s}};
    chip.vector_flops_per_s = rates.flops_per_s;
    chip.memory.bytes_per_s = rates.bytes_per_s;
    chip.efficiency.tile_m = tile.m;
    chip.efficiency.tile_n = tile.n;
    chip.efficiency.tile_k = tile.k;
    const Descent fit = fitted_figures(chip, samples, precision);
    if (fit.cost >= least_cost) continue;
    least_cost = fit.cost;
    chip.efficiency = with(chip.efficiency, fit.figures);
    best.chip = chip;
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const OperatorTimes times = estimate_of(samples[i], best.chip, precision);
    const std::string& name = measured[i].operation.name;
    best.operators.push_back({name, samples[i].measured_s, times.forward_s});
    if (!has_gradients(samples[i])) continue;
    best.operators.push_back({name + ", gradients", samples[i].backward_s, times.backward_s()});
  }
  return best;
}

double mean_error(std::span<const FittedOperator> operators) {
  double sum = 0;
  for (const FittedOperator& each : operators) {
    sum += std::abs(std::log(each.fitted_s / each.measured_s));
  }
  return std::exp(sum / static_cast<double>(operators.size())) - 1;
}

}  // namespace braid
