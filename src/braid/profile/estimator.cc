#include "braid/profile/estimator.h"

#include <vector>

#include "braid/profile/estimated_layers.h"
#include "braid/profile/layer_estimate.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/sharded_options.h"
#include "braid/profile/split_limits.h"

namespace braid {

LayerCost estimate_layer(const Graph& graph, LayerId layer, const Execution& how,
                         const Precision& precision, const LayerGroups& groups,
                         const System& system) {
  const std::vector<OperatorWork> works = layer_work(graph, layer);
  return estimate_layer({graph, layer, works}, how, {precision, groups, system});
}

LayerCost estimate_layer(const LayerInput& input, const Execution& how, const LayerPlace& place) {
  return traded(estimate_untraded(input, how, place), how, place.precision,
                place.system.groups.front().chip);
}

Profile estimate_profile(const Graph& graph, const std::vector<Execution>& executions,
                         const Precision& precision, const System& system,
                         ShardingSource sharding) {
  const EstimatedLayers layers(graph, sharding);
  const std::unique_ptr<LayerCosts> costs = layers.on(system, precision);
  const SplitLimits limits = split_limits(graph);
  Profile profile = layers.layers();
  profile.chip = system.groups.front().chip.name;
  const bool finds = layers.searches_shardings();
  const std::vector<bool> closed = kinds_closed(graph);
  for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) {
    for (const Execution& how : executions) {
      LayerGroups groups;
      groups.tp = span_of(system, 1, how.tp);
      groups.cp = span_of(system, how.tp, how.cp);
      groups.ep = span_of(system, how.whole_experts ? 1 : how.tp, how.ep);
      const auto add = [&](const KindSharding& choice) {
        Option& option = profile.kinds[kind].emplace_back(costs->option(kind, choice, how));
        option.cost = costs->cost(kind, choice, how, groups);
      };
      if (refusal(limits, how).empty() && !(finds && closed[kind] && how.tp > 1)) add({});
      Execution unsharded = how;
      unsharded.tp = 1;
      if (!finds || how.sequence_parallel || !refusal(limits, unsharded).empty()) continue;
      for (const KindSharding& choice : costs->shardings(kind, how, groups)) {
        if (choice) add(choice);
      }
    }
  }
  return profile;
}

std::string name_of(const Execution& how) {
  std::string name = "tp" + std::to_string(how.tp);
  if (how.sequence_parallel) name += " sp";
  if (how.cp > 1) name += " cp" + std::to_string(how.cp);
  if (how.ep > 1) name += " ep" + std::to_string(how.ep);
  if (how.whole_experts) name += " whole experts";
  if (how.recompute == Recompute::selective) name += " selective recompute";
  if (how.recompute == Recompute::full) name += " full recompute";
  if (how.offload_activations) name += " activations offloaded";
  if (how.offload_weights) name += " weights offloaded";
  return name;
}

}  // namespace braid
