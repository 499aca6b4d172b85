#include "braid/cli/measure_profile.h"

#include <map>
#include <set>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/cli/measure_trained.h"
#include "braid/frontend/graph_program.h"
#include "braid/graph/layer_graph.h"
#include "braid/run/run_operations.h"

namespace braid {
namespace {

/// Why a layer cannot be measured; "" where it can.
std::string why_not_measured(const Graph& layer) {
  if (layer.outputs.size() != 1) return "it gives several tensors";
  try {
    const LayeredProgram model = layered_program(layer);
    check_operations(model.program);
    for (const ProgramInput& each : model.program.inputs) {
      if (each.type != ElementType::f32) return "it is fed no numbers";
    }
    if (model.program.outputs.empty()) return "it computes nothing";
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

using LayerTimes = std::map<std::pair<std::size_t, int>, TrainedTime>;  ///< Of kind, micro-batch.

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

void put_times(const TrainedTime& time, LayerCost& cost) {
  const double input_s = cost.backward_input.compute_s;
  const double both_s = input_s + cost.backward_weight.compute_s;
  cost.recompute.compute_s *= share(time.forward_s, cost.forward.compute_s);
  cost.forward.compute_s = time.forward_s;
  const double of_input = both_s > 0 ? input_s / both_s : 1;
  cost.backward_input.compute_s = of_input * time.backward_s;
  cost.backward_weight.compute_s = (1 - of_input) * time.backward_s;
}

/// The first layer of each kind.
std::vector<LayerId> first_layers(const Graph& graph, std::size_t kinds) {
  std::vector<LayerId> first(kinds, -1);
  for (std::size_t l = graph.layers.size(); l-- > 0;) {
    first[at(graph.layers[l].kind)] = static_cast<LayerId>(l);
  }
  return first;
}

}  // namespace

std::vector<std::string> measure_profile(Profile& profile, const Graph& graph,
                                         const LayerMeasurement& how) {
  std::vector<TrainedLayer> layers;
  std::vector<std::pair<std::size_t, int>> keys;
  std::vector<std::string> estimated;
  const std::vector<LayerId> first = first_layers(graph, profile.kinds.size());
  for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) {
    const Graph layer = layer_graph(graph, first[kind]);
    const std::string problem = why_not_measured(layer);
    if (!problem.empty()) {
      estimated.push_back(layer.name + ": " + problem);
      continue;
    }
    std::set<int> sizes;
    for (const Option& option : profile.kinds[kind]) sizes.insert(option.how.micro_batch);
    for (const int micro_batch : sizes) {
      layers.push_back({layer, micro_batch});
      keys.emplace_back(kind, micro_batch);
    }
  }
  if (layers.empty()) return estimated;
  const std::vector<TrainedTime> times =
      measure_layers(layers, how.split, how.samples, how.cache_bytes);
  LayerTimes by_kind;
  for (std::size_t i = 0; i < keys.size(); ++i) by_kind[keys[i]] = times[i];
  for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) {
    for (Option& option : profile.kinds[kind]) {
      const auto found = by_kind.find({kind, option.how.micro_batch});
      if (found != by_kind.end()) put_times(found->second, option.cost);
    }
  }
  return estimated;
}

}  // namespace braid
