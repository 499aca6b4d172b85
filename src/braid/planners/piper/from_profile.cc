#include "braid/planners/piper/from_profile.h"

#include <algorithm>

#include "braid/base/error.h"

namespace braid {
namespace {

/// `stated`, or where that is negative `bytes_each` for every parameter of the option.
double stated_or(double stated, const Option& option, double bytes_each) {
  const double parameters = option.cost.dense_parameters + option.cost.expert_parameters;
  return stated >= 0 ? stated : parameters * bytes_each;
}

}  // namespace

bool piper_can_use(const Option& option, int micro_batch) {
  const Execution& how = option.how;
  return how.micro_batch == micro_batch && how.cp == 1 && how.ep == 1 && !how.offload_weights &&
         !how.offload_activations;
}

bool states_memory(const Profile& profile) {
  for (const std::vector<Option>& options : profile.kinds) {
    for (const Option& option : options) {
      if (option.cost.fixed_bytes < 0 || option.cost.gradient_bytes < 0) return false;
    }
  }
  return true;
}

PiperProblem piper_from_profile(const Profile& profile, int micro_batch,
                                const Precision& precision) {
  const double gradient_bytes = bytes_per_element(precision.gradient);
  const double state_bytes = bytes_per_element(precision.weight) + gradient_bytes +
                             precision.optimizer_bytes_per_parameter;
  PiperProblem problem;
  const std::size_t layers = profile.layers.size();
  std::vector<std::vector<std::size_t>> ins(layers), outs(layers);
  for (std::size_t e = 0; e < profile.edges.size(); ++e) {
    const ProfileEdge& edge = profile.edges[e];
    problem.edges.push_back({edge.source, edge.target, edge.bytes * micro_batch});
    ins[static_cast<std::size_t>(edge.target)].push_back(e);
    outs[static_cast<std::size_t>(edge.source)].push_back(e);
  }
  for (std::size_t v = 0; v < layers; ++v) {
    PiperNode node;
    node.name = profile.layers[v].name;
    for (const Option& option : options_of(profile, static_cast<std::int32_t>(v))) {
      if (!piper_can_use(option, micro_batch)) continue;
      auto degree = std::lower_bound(node.degrees.begin(), node.degrees.end(), option.how.tp,
                                     [](const PiperDegree& d, int tp) { return d.tp < tp; });
      if (degree == node.degrees.end() || degree->tp != option.how.tp) {
        degree = node.degrees.insert(degree, {option.how.tp, {}});
      }
      PiperOption made;
      made.name = option.name;
      made.time = option.cost.time_s();
      made.parameter_bytes = stated_or(option.cost.gradient_bytes, option, gradient_bytes);
      made.in_flight_bytes = option.cost.stash_bytes;
      made.fixed_bytes = stated_or(option.cost.fixed_bytes, option, state_bytes);
      made.recompute = option.how.recompute != Recompute::none;
      if (!option.edge_syncs.empty()) {
        made.in_sync_bytes.assign(ins[v].size(), 0);
        made.out_sync_bytes.assign(outs[v].size(), 0);
      }
      for (const EdgeSync& sync : option.edge_syncs) {
        const auto edge = static_cast<std::size_t>(sync.edge);
        const auto in = std::find(ins[v].begin(), ins[v].end(), edge);
        const auto out = std::find(outs[v].begin(), outs[v].end(), edge);
        if (in != ins[v].end()) {
          made.in_sync_bytes[static_cast<std::size_t>(in - ins[v].begin())] = sync.forward_bytes;
        }
        if (out != outs[v].end()) {
          made.out_sync_bytes[static_cast<std::size_t>(out - outs[v].begin())] =
              sync.backward_bytes;
        }
      }
      degree->options.push_back(std::move(made));
    }
    if (node.degrees.empty()) {
      throw Error(Where{"", 0, node.name}, "the layer has no option that piper can use",
                  "profile it with micro-batches of " + std::to_string(micro_batch) +
                      ", without context or expert parallelism and offload");
    }
    problem.nodes.push_back(std::move(node));
  }
  return problem;
}

}  // namespace braid
