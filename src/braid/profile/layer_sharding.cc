#include "braid/profile/layer_sharding.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "braid/base/infinity.h"
#include "braid/chip/elimination.h"
#include "braid/graph/tensor_size.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/operator_estimate.h"
#include "braid/profile/shard.h"
#include "braid/profile/tensor_comm.h"

namespace braid {
namespace {

constexpr double kForbidden = kInfinity;

/// All that readers may want of a tensor, by whether its writer divides it.
struct HubValue {
  bool sharded = false;
  TensorNeeds needs;
};

std::vector<HubValue> hub_values() {
  std::vector<HubValue> values;
  for (const bool sharded : {false, true}) {
    for (int mask = 1; mask < 8; ++mask) {
      values.push_back({sharded, {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0}});
    }
  }
  return values;
}

bool includes(const TensorNeeds& all, const TensorNeeds& some) {
  return (all.whole || !some.whole) && (all.sharded || !some.sharded) && (all.as_is || !some.as_is);
}

/// An activation: its writer and readers as numbers of operators in the layer.
struct Activation {
  TensorId tensor = 0;
  std::optional<std::size_t> writer;  ///< Without one it comes from outside, whole.
  std::vector<std::size_t> readers;   ///< Each once.
  bool leaves = false;
};

/// The choice of a split for every operator as a pairwise problem. Its first variables are the
/// operators; a tensor with several readers is one more, whose value says what is made of it.
class SplitChoice {
 public:
  SplitChoice(const LayerInput& layer, const ShardingInput& input, const Execution& how,
              const LayerPlace& place, ShardingAim aim)
      : graph_(layer.graph),
        layer_(layer.graph.layers[static_cast<std::size_t>(layer.layer)]),
        works_(layer.works),
        how_(how),
        groups_(place.groups),
        system_(place.system),
        aim_(aim),
        rows_(static_cast<double>(how.micro_batch) / static_cast<double>(graph_.samples) / how.cp),
        width_(bytes_per_element(place.precision.activation)),
        estimate_(graph_, how, place.precision, system_.groups.front().chip,
                  matmul_peak_in(system_.groups.front().chip, place.precision)) {
    for (OperatorId id = layer_.first; id < layer_.last; ++id) {
      const Operator& op = graph_.operators[static_cast<std::size_t>(id)];
      options_.emplace_back();
      for (const Split split :
           operator_splits(graph_, op, layer.layer, input.features, how.tp, input.fixes(op))) {
        options_.back().push_back(op);
        options_.back().back().split = split;
      }
      possible_ = possible_ && !options_.back().empty();
    }
    if (!possible_) return;
    for (std::size_t i = 0; i < options_.size(); ++i) {
      problem_.costs.emplace_back();
      for (const Operator& op : options_[i]) problem_.costs.back().push_back(of_operator(i, op));
    }
    for (const Activation& activation :
         activations(input.leaving[static_cast<std::size_t>(layer.layer)])) {
      charge(activation);
    }
  }

  LayerSharding solve(std::size_t most_entries) const {
    LayerSharding result;
    if (!possible_) return result;
    std::optional<std::vector<std::size_t>> values = minimise(problem_, most_entries);
    result.optimal = values.has_value();
    if (!values) values = descend(problem_);
    const RankedCost cost = cost_of(problem_, *values);
    result.time_s = cost[aim_ == ShardingAim::time ? 0 : 1];
    result.parameters = cost[aim_ == ShardingAim::time ? 1 : 0];
    result.splits.reserve(options_.size());
    for (std::size_t i = 0; i < options_.size(); ++i) {
      result.splits.push_back(options_[i][(*values)[i]].split);
    }
    return result;
  }

 private:
  RankedCost ranked(double time_s, double parameters) const {
    if (aim_ == ShardingAim::time) return {time_s, parameters, 0};
    return {parameters, time_s, 0};
  }
  /// Of both passes: what is computed again, full recomputation sends again.
  double comm_s(const TensorComm& comm) const {
    return comm.forward * (how_.recompute == Recompute::full ? 2 : 1) + comm.backward;
  }
  double bytes_of_rows(TensorId id) const {
    return elements_of(graph_.tensors[static_cast<std::size_t>(id)]) * rows_ * width_;
  }

  RankedCost of_operator(std::size_t index, const Operator& op) const {
    const OperatorWork& work = works_[index];
    const OperatorTimes times = estimate_.times(op, work);
    const bool again = how_.recompute == Recompute::full ||
                       (how_.recompute == Recompute::selective && work.is_recomputed);
    const double output_bytes = op.outputs.empty() ? 0 : bytes_of_rows(op.outputs[0]);
    double parameters = 0;
    for (const TensorId parameter : work.parameters) {
      parameters += elements_of(graph_.tensors[static_cast<std::size_t>(parameter)]) *
                    shard_of(op.split, how_, 1).weight;
    }
    return ranked(times.forward_s * (again ? 2 : 1) + times.backward_s() +
                      comm_s(operator_comm(op, output_bytes, rows_, how_, groups_.tp, system_)),
                  parameters);
  }

  double of_tensor(TensorId id, bool sharded, const TensorNeeds& needs) const {
    return comm_s(tensor_comm(bytes_of_rows(id), sharded, needs, false, groups_.tp, system_));
  }

  std::vector<Activation> activations(std::span<const TensorId> leaving) const {
    std::vector<Activation> all;
    const auto at = [&](TensorId id) -> Activation& {
      for (Activation& each : all) {
        if (each.tensor == id) return each;
      }
      Activation made;
      made.tensor = id;
      const OperatorId producer = graph_.tensors[static_cast<std::size_t>(id)].producer;
      if (producer >= layer_.first && producer < layer_.last) {
        made.writer = static_cast<std::size_t>(producer - layer_.first);
      }
      return all.emplace_back(std::move(made));
    };
    for (std::size_t i = 0; i < options_.size(); ++i) {
      for (const TensorId id : options_[i].front().inputs) {
        const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(id)];
        if (tensor.is_parameter || tensor.producer < 0) continue;
        std::vector<std::size_t>& readers = at(id).readers;
        if (readers.empty() || readers.back() != i) readers.push_back(i);
      }
    }
    for (const TensorId id : leaving) at(id).leaves = true;
    return all;
  }

  void charge(const Activation& activation) {
    const TensorNeeds leaves{false, false, activation.leaves};
    if (activation.readers.empty()) {
      // Only other layers read it.
      std::vector<RankedCost>& costs = problem_.costs[*activation.writer];
      for (std::size_t v = 0; v < costs.size(); ++v) {
        const bool sharded = leaves_sharded(options_[*activation.writer][v]);
        costs[v] = costs[v] + ranked(of_tensor(activation.tensor, sharded, leaves), 0);
      }
      return;
    }
    if (activation.readers.size() == 1) {
      const std::size_t reader = activation.readers[0];
      charge_pair(activation.writer, reader, [&](bool sharded, const Operator& op) {
        TensorNeeds needs = needs_of(op, activation.tensor, sharded, false);
        needs |= leaves;
        return of_tensor(activation.tensor, sharded, needs);
      });
      return;
    }
    const std::vector<HubValue> values = hub_values();
    const std::size_t hub = problem_.costs.size();
    problem_.costs.emplace_back();
    for (const HubValue& value : values) {
      const bool allowed = includes(value.needs, leaves) && (activation.writer || !value.sharded);
      const double time_s =
          allowed ? of_tensor(activation.tensor, value.sharded, value.needs) : kForbidden;
      problem_.costs.back().push_back(allowed ? ranked(time_s, 0)
                                              : RankedCost{kForbidden, kForbidden, 0});
    }
    if (activation.writer) {
      add_pair(*activation.writer, hub, [&](std::size_t w, std::size_t h) {
        return leaves_sharded(options_[*activation.writer][w]) == values[h].sharded;
      });
    }
    for (const std::size_t reader : activation.readers) {
      add_pair(reader, hub, [&](std::size_t r, std::size_t h) {
        return includes(values[h].needs,
                        needs_of(options_[reader][r], activation.tensor, values[h].sharded, false));
      });
    }
  }

  template <typename Time>
  void charge_pair(std::optional<std::size_t> writer, std::size_t reader, const Time& time_s) {
    if (!writer) {
      std::vector<RankedCost>& costs = problem_.costs[reader];
      for (std::size_t v = 0; v < costs.size(); ++v) {
        costs[v] = costs[v] + ranked(time_s(false, options_[reader][v]), 0);
      }
      return;
    }
    PairwiseProblem::Pair pair{*writer, reader, {}};
    for (const Operator& out : options_[*writer]) {
      const bool sharded = leaves_sharded(out);
      for (const Operator& in : options_[reader]) {
        pair.costs.push_back(ranked(time_s(sharded, in), 0));
      }
    }
    problem_.pairs.push_back(std::move(pair));
  }

  /// A pair that costs nothing where it is allowed.
  template <typename Allowed>
  void add_pair(std::size_t a, std::size_t b, const Allowed& allowed) {
    PairwiseProblem::Pair pair{a, b, {}};
    const std::size_t values_a = problem_.costs[a].size(), values_b = problem_.costs[b].size();
    pair.costs.reserve(values_a * values_b);
    for (std::size_t v = 0; v < values_a; ++v) {
      for (std::size_t w = 0; w < values_b; ++w) {
        pair.costs.push_back(allowed(v, w) ? RankedCost{} : RankedCost{kForbidden, kForbidden, 0});
      }
    }
    problem_.pairs.push_back(std::move(pair));
  }

  const Graph& graph_;
  const Layer& layer_;
  std::span<const OperatorWork> works_;
  const Execution& how_;
  const LayerGroups& groups_;
  const System& system_;
  ShardingAim aim_;
  double rows_, width_;
  OperatorEstimate estimate_;
  std::vector<std::vector<Operator>> options_;  ///< Copies of each operator, each split a way.
  PairwiseProblem problem_;
  bool possible_ = true;
};

}  // namespace

bool ShardingInput::fixes(const Operator& op) const {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](TensorId tensor) { return is_shared[static_cast<std::size_t>(tensor)]; });
}

ShardingInput sharding_input(const Graph& graph) {
  ShardingInput input;
  input.features = feature_axes(graph);
  input.leaving = leaving_tensors(graph);
  input.is_shared.assign(graph.tensors.size(), false);
  std::vector<LayerId> reader(graph.tensors.size(), -1);  // Of a parameter: the first layer.
  for (const Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) {
      const auto at = static_cast<std::size_t>(id);
      if (!graph.tensors[at].is_parameter) continue;
      if (reader[at] >= 0 && reader[at] != op.layer) input.is_shared[at] = true;
      if (reader[at] < 0) reader[at] = op.layer;
    }
  }
  return input;
}

LayerSharding find_layer_sharding(const LayerInput& layer, const ShardingInput& input,
                                  const Execution& how, const LayerPlace& place, ShardingAim aim,
                                  std::size_t most_entries) {
  const Layer& range = layer.graph.layers[static_cast<std::size_t>(layer.layer)];
  if (how.tp == 1 || how.sequence_parallel || range.last - range.first > kMostShardedOperators) {
    return {};
  }
  return SplitChoice(layer, input, how, place, aim).solve(most_entries);
}

ShardedGraph::ShardedGraph(const Graph& graph) : graph_(graph) {
  for (Operator& op : graph_.operators) op.split = Split::replicated;
}

const Graph& ShardedGraph::with(LayerId layer, std::span<const Split> splits) {
  const Layer& last = graph_.layers[static_cast<std::size_t>(sharded_)];
  for (OperatorId id = last.first; id < last.last; ++id) {
    graph_.operators[static_cast<std::size_t>(id)].split = Split::replicated;
  }
  sharded_ = layer;
  const Layer& range = graph_.layers[static_cast<std::size_t>(layer)];
  assert(splits.size() == static_cast<std::size_t>(range.last - range.first));
  for (std::size_t i = 0; i < splits.size(); ++i) {
    graph_.operators[static_cast<std::size_t>(range.first) + i].split = splits[i];
  }
  return graph_;
}

}  // namespace braid
