#include "braid/planners/amp/amp_job.h"

#include <algorithm>
#include <map>

#include "braid/base/dtype.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/amp/synced_assignment.h"
#include "braid/search/fitting_layers.h"
#include "braid/system/links.h"

namespace braid {

double ring_bytes_per_parameter(std::int64_t dp, const Precision& precision) {
  return 2.0 * static_cast<double>(dp - 1) / static_cast<double>(dp) *
         bytes_per_element(precision.gradient);
}

template <typename Assign>
std::optional<OneFormAssignment> AmpJob::best_choice(const Configuration& configuration,
                                                     double below_s, Assign assign) {
  std::optional<OneFormAssignment> best;
  for (const Configuration& split : expert_splits(configuration)) {
    for (const Recompute recompute : {split.recompute, Recompute::full}) {
      Configuration recomputed = split;
      recomputed.recompute = recompute;
      if (!is_listed(space(), recomputed)) continue;
      auto found = assign(recomputed, below_s);
      if (found.has_value() && found->cost_s < below_s) {
        below_s = found->cost_s;
        best = std::move(found);
      }
      if (space().recompute.has_value()) break;
    }
  }
  return best;
}

std::optional<OneFormAssignment> AmpJob::evaluate(const Configuration& configuration,
                                                  double below_s) {
  return best_choice(configuration, below_s, [&](const Configuration& recomputed, double best_s) {
    auto found = assign_in_order(recomputed);
    if (!is_graph() || recomputed.pp == 1) return found;
    auto better =
        assign_branches(recomputed, found.has_value() ? std::min(best_s, found->cost_s) : best_s);
    return better.has_value() ? better : found;
  });
}

std::optional<OneFormAssignment> AmpJob::evaluate_in_order(const Configuration& configuration) {
  return best_choice(configuration, kUnlimited, [&](const Configuration& recomputed, double) {
    return assign_in_order(recomputed);
  });
}

double AmpJob::bound_s(const Configuration& configuration) {
  const LayerTable& costs = table(configuration);
  double all_s = 0, longest_s = 0, parameters = 0;
  for (const ChainLayer& layer : costs.chain) {
    all_s += layer.time_s();
    longest_s = std::max(longest_s, layer.time_s());
    parameters += synced_parameters(layer, configuration, job().precision);
  }
  const double bottleneck_s = std::max(all_s / configuration.pp, longest_s);
  const double sync_s = parameters * sync_s_per_parameter(configuration) / configuration.pp;
  return (static_cast<double>(configuration.num_micro_batches - 1) * bottleneck_s + all_s +
          sync_s) *
         kBelowTolerance;
}

std::optional<OneFormAssignment> AmpJob::assign_branches(const Configuration& configuration,
                                                         double below_s) {
  if (!(bound_s(configuration) < below_s)) return std::nullopt;
  auto assignment =
      assign_graph(priced_graph(configuration), cuts().cuts, cuts().crossing_bytes, below_s);
  if (!assignment.has_value()) return std::nullopt;
  const double cost_s = assignment->cost_s();
  return OneFormAssignment{configuration, std::move(assignment->stages), cost_s};
}

AssignmentGraph AmpJob::priced_graph(const Configuration& configuration) {
  AssignmentGraph graph = assignment_graph(configuration);
  // A handover takes a latency and a time for each byte, of which two handovers tell.
  constexpr double kSomeBytes = 1e9;
  graph.s_per_byte = handovers_s(configuration, 2 * kSomeBytes);
  graph.latency_s = handovers_s(configuration, kSomeBytes);
  for (std::size_t i = 0; i < graph.latency_s.size(); ++i) {
    graph.s_per_byte[i] = (graph.s_per_byte[i] - graph.latency_s[i]) / kSomeBytes;
    graph.latency_s[i] -= graph.s_per_byte[i] * kSomeBytes;
  }
  const double s_per_parameter = sync_s_per_parameter(configuration);
  for (const ChainLayer& layer : table(configuration).chain) {
    graph.sync_s.push_back(synced_parameters(layer, configuration, job().precision) *
                           s_per_parameter);
  }
  return graph;
}

std::optional<OneFormAssignment> AmpJob::assign_in_order(const Configuration& configuration) {
  const LayerTable& costs = table(configuration);
  std::vector<double> times_s;
  for (const ChainLayer& layer : costs.chain) times_s.push_back(layer.time_s());
  const std::vector<double> before_s = running_sums(times_s);
  const MemoryForm form = memory(configuration);
  AssignmentChain chain;
  chain.micro_batches = configuration.num_micro_batches;
  std::map<std::int64_t, std::vector<std::int32_t>> first_allowed;  // By micro-batches in flight.
  for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
    const std::int64_t in_flight = one_f_one_b_in_flight(configuration, stage);
    auto& first = first_allowed[in_flight];
    if (first.empty()) {
      first = first_fitting_layers(costs.chain, form, static_cast<double>(in_flight));
    }
    chain.stages.push_back({before_s, first});
  }
  std::map<double, std::vector<double>> handovers;
  for (const double cut_bytes : cut_bytes()) {
    auto& handover_s = handovers[cut_bytes];
    if (handover_s.empty()) handover_s = handovers_s(configuration, cut_bytes);
    for (std::int32_t stage = 0; stage + 1 < configuration.pp; ++stage) {
      chain.boundary_s.push_back(handover_s[static_cast<std::size_t>(stage)]);
    }
  }
  const double s_per_parameter = sync_s_per_parameter(configuration);
  std::vector<double> syncs_s;
  for (const ChainLayer& layer : costs.chain) {
    syncs_s.push_back(synced_parameters(layer, configuration, job().precision) * s_per_parameter);
  }
  const std::vector<double> sync_before_s = running_sums(syncs_s);
  auto assignment = assign_layers_and_sync(
      chain, std::vector<std::span<const double>>(chain.stages.size(), sync_before_s));
  if (!assignment.has_value()) return std::nullopt;
  const double cost_s = assignment->cost_s();
  return OneFormAssignment{configuration, chunks_of(assignment->ends), cost_s};
}

double AmpJob::sync_s_per_parameter(const Configuration& configuration) const {
  if (configuration.dp == 1) return 0;
  // Stages of a homogeneous cluster have like rings: that of the first stage's first shard.
  const std::int64_t stride = configuration.order == AxisOrder::pipeline_outermost
                                  ? configuration.tp
                                  : std::int64_t{configuration.tp} * configuration.pp;
  double slowest = kInfinity;
  for (std::int64_t replica = 0; replica < configuration.dp; ++replica) {
    slowest = std::min(slowest, link_bytes_per_s(system(), replica * stride,
                                                 (replica + 1) % configuration.dp * stride));
  }
  return ring_bytes_per_parameter(configuration.dp, job().precision) / slowest;
}

}  // namespace braid
