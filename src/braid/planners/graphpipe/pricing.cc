#include "braid/planners/graphpipe/pricing.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/planners/graphpipe/in_flight.h"

namespace braid {
namespace {

/// Crossing bytes and sums of a stage.
struct Sums {
  double forward_s = 0, backward_s = 0;
  double fixed_bytes = 0, gradient_bytes = 0, expert_gradient_bytes = 0;
  double stash_bytes = 0, working_bytes = 0;
  double in_bytes = 0, out_bytes = 0;  ///< Per sample, forward.
};

std::size_t samples_index(const GraphPipeProblem& problem, const GraphPipeStage& stage) {
  const std::int64_t replicas = graphpipe_replicas(problem, stage);
  assert(stage.group.micro_batch % replicas == 0);
  const std::int64_t samples = stage.group.micro_batch / replicas;
  const auto found =
      std::lower_bound(problem.device_samples.begin(), problem.device_samples.end(), samples);
  assert(found != problem.device_samples.end() && *found == samples);
  return static_cast<std::size_t>(found - problem.device_samples.begin());
}

Sums sums_of(const GraphPipeProblem& problem, const GraphPipeStage& stage) {
  Sums sums;
  const std::size_t index = samples_index(problem, stage);
  for (const std::int32_t node : stage.nodes) {
    const GraphPipeCost& cost = problem.kinds[at(problem.nodes[at(node)])][at(stage.strategy)];
    sums.forward_s += cost.forward_s[index];
    sums.backward_s += cost.backward_s[index];
    sums.fixed_bytes += cost.fixed_bytes;
    sums.gradient_bytes += cost.gradient_bytes;
    sums.expert_gradient_bytes += cost.expert_gradient_bytes;
    sums.stash_bytes += cost.stash_bytes;
    sums.working_bytes = std::max(sums.working_bytes, cost.working_bytes);
  }
  const auto inside = [&](std::int32_t node) {
    return std::binary_search(stage.nodes.begin(), stage.nodes.end(), node);
  };
  for (const GraphPipeEdge& edge : problem.edges) {
    if (inside(edge.source) == inside(edge.target)) continue;
    (inside(edge.target) ? sums.in_bytes : sums.out_bytes) += edge.bytes;
  }
  return sums;
}

GraphPipePool pool_of(const GraphPipeProblem& problem, const GraphPipeStage& stage) {
  return problem.pool_of(problem.strategies[at(stage.strategy)]);
}

/// Of synchronising gradients, once.
double sync_s(const GraphPipeProblem& problem, const GraphPipeStage& stage, const Sums& sums) {
  const auto r = static_cast<double>(graphpipe_replicas(problem, stage));
  const auto e = static_cast<double>(problem.strategies[at(stage.strategy)].expert);
  return 2 * ((r - 1) * sums.gradient_bytes + (r - e) * sums.expert_gradient_bytes) / r /
         graphpipe_sync_bytes_per_s(pool_of(problem, stage), stage.devices);
}

std::int64_t copies_of(const GraphPipeProblem& problem, const GraphPipeStage& stage) {
  return problem.strategies[at(stage.strategy)].copies;
}

double time_s(const GraphPipeProblem& problem, const GraphPipeStage& stage, const Sums& sums,
              const NeighbourCopies& neighbours) {
  const double compute_s =
      (sums.forward_s + sums.backward_s) / static_cast<double>(stage.group.micro_batch) +
      sync_s(problem, stage, sums) / static_cast<double>(problem.batch);
  const double received_bytes =
      static_cast<double>(copies_of(problem, stage)) * (sums.in_bytes + sums.out_bytes);
  const double sent_bytes = static_cast<double>(neighbours.before) * sums.in_bytes +
                            static_cast<double>(neighbours.after) * sums.out_bytes;
  const double network_s =
      std::max(received_bytes, sent_bytes) /
      (pool_of(problem, stage).bandwidth_bytes_per_s * static_cast<double>(stage.devices));
  return problem.overlap ? std::max(compute_s, network_s) : compute_s + network_s;
}

/// Bytes per sample between stages, by their indices.
std::map<std::pair<std::size_t, std::size_t>, double> stage_edges(
    const GraphPipeProblem& problem, const std::vector<GraphPipeStage>& stages) {
  std::vector<std::size_t> stage_of(problem.nodes.size(), stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const std::int32_t node : stages[s].nodes) stage_of[at(node)] = s;
  }
  std::map<std::pair<std::size_t, std::size_t>, double> edges;
  for (const GraphPipeEdge& edge : problem.edges) {
    const std::size_t from = stage_of[at(edge.source)];
    const std::size_t to = stage_of[at(edge.target)];
    if (from != to) edges[{from, to}] += edge.bytes;
  }
  return edges;
}

StageGraph graph_of(const GraphPipeProblem& problem, const std::vector<GraphPipeStage>& stages,
                    const std::map<std::pair<std::size_t, std::size_t>, double>& edges) {
  StageGraph graph;
  graph.batch = problem.batch;
  graph.stages.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    graph.stages.push_back({static_cast<std::int32_t>(s), stages[s].group.micro_batch});
  }
  graph.edges.reserve(edges.size());
  for (const auto& [ends, bytes] : edges) {
    graph.edges.push_back(
        {static_cast<std::int32_t>(ends.first), static_cast<std::int32_t>(ends.second)});
  }
  return graph;
}

double transfer_s(const GraphPipeProblem& problem, const GraphPipeStage& receiver, double bytes,
                  std::int64_t samples) {
  return static_cast<double>(copies_of(problem, receiver)) * bytes * static_cast<double>(samples) /
         (pool_of(problem, receiver).bandwidth_bytes_per_s * static_cast<double>(receiver.devices));
}

using StageEdges = std::map<std::pair<std::size_t, std::size_t>, double>;  ///< stage_edges().

/// Samples in flight by the table of stages in topological order; fills in the path through them.
std::vector<std::int64_t> count_by_table(const GraphPipeProblem& problem,
                                         const std::vector<Sums>& sums, const StageEdges& edges,
                                         GraphPipeSolution& solution) {
  const std::vector<GraphPipeStage>& stages = solution.stages;
  std::vector<double> out_s(stages.size(), 0), back_s(stages.size(), 0);  // To a sink and back.
  std::vector<std::int64_t> in_flight(stages.size(), 0);
  solution.fill_s = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    const PassGroup& group = stages[s].group;
    in_flight[s] = group.k * group.micro_batch;
    for (auto edge = edges.lower_bound({s, 0}); edge != edges.end() && edge->first.first == s;
         ++edge) {
      const std::size_t y = edge->first.second;
      const double hop_s = transfer_s(problem, stages[y], sums[y].in_bytes, group.micro_batch);
      out_s[s] = std::max(out_s[s], hop_s + out_s[y]);
      back_s[s] = std::max(back_s[s], hop_s + back_s[y]);
      in_flight[s] = std::max(in_flight[s], table_in_flight(group, stages[y].group, in_flight[y]));
    }
    out_s[s] += sums[s].forward_s;
    back_s[s] += sums[s].backward_s;
    solution.fill_s = std::max(solution.fill_s, out_s[s] + back_s[s]);
  }
  return in_flight;
}

/// The least at the solution's rate.
std::vector<std::int64_t> count_least(const GraphPipeProblem& problem,
                                      const std::vector<Sums>& sums, const StageEdges& edges,
                                      GraphPipeSolution& solution) {
  const std::vector<GraphPipeStage>& stages = solution.stages;
  const std::int64_t b = stages.front().group.micro_batch;
  std::vector<RoundTripStage> trips;
  trips.reserve(stages.size());
  for (const Sums& sum : sums) trips.push_back({sum.forward_s, sum.backward_s});
  std::vector<RoundTripEdge> hops;
  hops.reserve(edges.size());
  for (const auto& [ends, bytes] : edges) {
    const double hop_s = transfer_s(problem, stages[ends.second], sums[ends.second].in_bytes, b);
    hops.push_back({static_cast<std::int32_t>(ends.first), static_cast<std::int32_t>(ends.second),
                    hop_s, hop_s});
  }
  LeastInFlight least =
      least_in_flight(trips, hops, solution.time_s * static_cast<double>(b), problem.batch / b);
  for (std::int64_t& count : least.micro_batches) count *= b;
  solution.fill_s = least.fill_s;
  return std::move(least.micro_batches);
}

/// What the neighbours of each stage have, `edges` being stage_edges().
std::vector<NeighbourCopies> neighbours_of(
    const GraphPipeProblem& problem, const std::vector<GraphPipeStage>& stages,
    const std::map<std::pair<std::size_t, std::size_t>, double>& edges) {
  std::vector<NeighbourCopies> neighbours(stages.size());
  for (const auto& [ends, bytes] : edges) {
    std::int64_t& after = neighbours[ends.first].after;
    after = std::max(after, copies_of(problem, stages[ends.second]));
    std::int64_t& before = neighbours[ends.second].before;
    before = std::max(before, copies_of(problem, stages[ends.first]));
  }
  return neighbours;
}

/// A plan's stages in order, and what its rate does not change.
class PlanToPrice {
 public:
  PlanToPrice(const GraphPipeProblem& problem, GraphPipeSolution& solution)
      : problem_(problem), solution_(solution) {
    order();
    const std::vector<GraphPipeStage>& stages = solution.stages;
    edges_ = stage_edges(problem, stages);
    const std::vector<NeighbourCopies> neighbours = neighbours_of(problem, stages, edges_);
    sums_.reserve(stages.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
      sums_.push_back(sums_of(problem, stages[s]));
      solution.stages[s].time_s = time_s(problem, stages[s], sums_.back(), neighbours[s]);
      slowest_s_ = std::max(slowest_s_, stages[s].time_s);
    }
  }

  double slowest_s() const { return slowest_s_; }

  /// Fills in what a rate changes; whether all stages fit.
  bool fits_at(double rate_s) {
    solution_.time_s = rate_s;
    const std::vector<std::int64_t> in_flight =
        problem_.in_flight == InFlight::least ? count_least(problem_, sums_, edges_, solution_)
                                              : count_by_table(problem_, sums_, edges_, solution_);
    bool fits = true;
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      GraphPipeStage& stage = solution_.stages[s];
      stage.in_flight = std::min(in_flight[s], problem_.batch);
      stage.memory_bytes = graphpipe_memory_bytes(
          stage.in_flight, graphpipe_replicas(problem_, stage), stage.group.micro_batch,
          sums_[s].fixed_bytes, sums_[s].stash_bytes, sums_[s].working_bytes);
      fits = fits && stage.memory_bytes <= pool_of(problem_, stage).memory_bytes;
    }
    return fits;
  }

 private:
  void order() {
    std::vector<GraphPipeStage>& stages = solution_.stages;
    const std::vector<int> depths =
        depths_of(graph_of(problem_, stages, stage_edges(problem_, stages)));
    std::vector<GraphPipeStage> ordered;
    ordered.reserve(depths.size());
    for (const std::size_t s : topological_stages(depths)) {
      ordered.push_back(std::move(stages[s]));
      ordered.back().depth = depths[s];
    }
    stages = std::move(ordered);
  }

  const GraphPipeProblem& problem_;
  GraphPipeSolution& solution_;
  StageEdges edges_;
  std::vector<Sums> sums_;
  double slowest_s_ = 0;
};

}  // namespace

double graphpipe_stage_time_s(const GraphPipeProblem& problem, const GraphPipeStage& stage,
                              const NeighbourCopies& neighbours) {
  return time_s(problem, stage, sums_of(problem, stage), neighbours);
}

bool price_graphpipe(const GraphPipeProblem& problem, GraphPipeSolution& solution, double rate_s) {
  PlanToPrice plan(problem, solution);
  return plan.fits_at(std::max(rate_s, plan.slowest_s()));
}

double graphpipe_rate_s(const GraphPipeProblem& problem, GraphPipeSolution& solution,
                        double limit_s) {
  PlanToPrice plan(problem, solution);
  const double low_s = plan.slowest_s();
  if (plan.fits_at(low_s)) return low_s;
  if (limit_s <= low_s || !plan.fits_at(limit_s)) return kInfinity;
  const auto next = [](const ThresholdRange& range) -> std::optional<double> {
    if (!(range.high > range.low * (1 + kLastDigits))) return std::nullopt;
    return range.middle();
  };
  const auto fits = [&plan](double at_s) {
    return plan.fits_at(at_s) ? std::optional(at_s) : std::nullopt;
  };
  const ThresholdRange range = least_threshold({low_s, limit_s}, next, fits);
  // A little more, so that whoever rounds otherwise finds that it fits.
  const double high_s = std::min(range.high * kAboveRounding, limit_s);
  plan.fits_at(high_s);
  return high_s;
}

TimedGraph timed_graph_of(const GraphPipeProblem& problem, const GraphPipeSolution& solution) {
  const auto edges = stage_edges(problem, solution.stages);
  TimedGraph timed = timeless(graph_of(problem, solution.stages, edges));
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    const GraphPipeStage& stage = solution.stages[s];
    const Sums sums = sums_of(problem, stage);
    const auto samples = static_cast<double>(stage.group.micro_batch) /
                         static_cast<double>(graphpipe_replicas(problem, stage));
    StageCost& cost = timed.costs[s];
    cost.forward_s = sums.forward_s;
    cost.input_gradient_s = sums.backward_s;
    cost.reduce_gradients_s = sync_s(problem, stage, sums);
    cost.stash_bytes = sums.stash_bytes * samples;
    cost.fixed_bytes = sums.fixed_bytes + sums.working_bytes * samples;
  }
  std::size_t e = 0;
  for (const auto& [ends, bytes] : edges) {
    const GraphPipeStage& receiver = solution.stages[ends.second];
    const std::int64_t part =
        std::min(solution.stages[ends.first].group.micro_batch, receiver.group.micro_batch);
    timed.transfer_s[e++] = transfer_s(problem, receiver, bytes, part);
  }
  return timed;
}

}  // namespace braid
