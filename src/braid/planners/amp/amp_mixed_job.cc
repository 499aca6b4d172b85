#include "braid/planners/amp/amp_mixed_job.h"

#include <algorithm>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/plan/stage_context.h"
#include "braid/planners/amp/amp_job.h"
#include "braid/planners/job/alternatives.h"
#include "braid/planners/job/one_form_job.h"
#include "braid/planners/job/outcomes.h"
#include "braid/schedule/timeline.h"
#include "braid/search/fitting_layers.h"
#include "braid/search/layer_outputs.h"
#include "braid/system/links.h"

namespace braid {
namespace {

constexpr std::int64_t kMostMixedDevices = 2048;

const System& small_enough(const System& system) {
  if (system.device_count <= kMostMixedDevices) return system;
  throw Error("AMP's planner compares links between all devices; " +
                  std::to_string(system.device_count) + " are too many",
              "plan for at most " + std::to_string(kMostMixedDevices));
}

}  // namespace

AmpMixedJob::AmpMixedJob(const Job& job, const System& system, const SpaceOptions& space,
                         std::string planner)
    : job_(job),
      system_(small_enough(system)),
      space_(one_form_space(space, planner)),
      planner_(std::move(planner)),
      mixed_(job, system, planner_) {
  std::int64_t node = -1;
  std::int64_t most_in_node = 1;
  for (std::int64_t device = 0; device < system.device_count; ++device) {
    const std::int64_t here = braid::placement_of(system, device).node;
    if (here != node) nodes_.emplace_back();
    node = here;
    nodes_.back().push_back(device);
    most_in_node = std::max(most_in_node, static_cast<std::int64_t>(nodes_.back().size()));
  }

  const SpaceLimits limits = space_limits(job, system);
  check_space(limits, space_);
  for (Configuration configuration : base_configurations(limits, space_)) {
    if (configuration.order != AxisOrder::pipeline_outermost) continue;
    if (std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& devices) {
          return devices.size() % at(configuration.tp) != 0;
        })) {
      continue;
    }
    // Moves as many bytes as plain replicas do, so AMP's cost is the same.
    configuration.zero = space_.zero.value_or(configuration.dp > 1 ? Zero::optimizer : Zero::none);
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      configuration.recompute = space_.recompute.value_or(recompute);
      configurations_.push_back(configuration);
    }
  }
  std::sort(configurations_.begin(), configurations_.end());
  configurations_.erase(std::unique(configurations_.begin(), configurations_.end()),
                        configurations_.end());

  const ChainJob& chain = mixed_.chain();
  edges_ = layer_pairs(chain.edges);
  output_bytes_ = output_bytes_of(chain.layers->layers());
  std::vector<double> cut_bytes = chain_cut_bytes(output_bytes_, edges_);
  cut_bytes.push_back(0);  // Behind the last layer.
  for (const double bytes : cut_bytes) {
    const auto known = std::find(bytes_of_class_.begin(), bytes_of_class_.end(), bytes);
    cut_class_.push_back(static_cast<std::size_t>(known - bytes_of_class_.begin()));
    if (known == bytes_of_class_.end()) bytes_of_class_.push_back(bytes);
  }
  if (!chain.branched) return;
  cuts_ = model_cuts(chain.kind_of_layer, edges_, output_bytes_);
  if (!is_graph()) return;
  least_crossing_bytes_.assign(layers() + 1, kInfinity);
  for (std::size_t cut = 0; cut < cuts_->cuts.sets.size(); ++cut) {
    double& least = least_crossing_bytes_[cuts_->cuts.sets[cut].count()];
    least = std::min(least, cuts_->crossing_bytes[cut]);
  }
}

std::size_t AmpMixedJob::shown() const { return at(std::max(1, space_.top)); }

AmpMixedJob::StageTable& AmpMixedJob::table(const Configuration& configuration,
                                            std::span<const std::size_t> groups) {
  const auto [found, fresh] = tables_.try_emplace({configuration, {groups.begin(), groups.end()}});
  StageTable& table = found->second;
  if (!fresh) return table;
  table.layers = mixed_.layers(configuration, groups, configuration.pp == 1);
  table.times_s.reserve(table.layers.size());
  for (const ChainLayer& layer : table.layers) {
    table.times_s.push_back(layer.time_s());
    table.synced_parameters += synced_parameters(layer, configuration, job_.precision);
  }
  table.time_before_s = running_sums(table.times_s);
  DataParallelContext context;
  context.precision = job_.precision;
  context.zero = configuration.zero;
  context.dense_ranks = configuration.dp;
  context.expert_ranks = static_cast<double>(configuration.dp) / configuration.ep;
  double available = kInfinity;
  for (const std::size_t group : groups) {
    available = std::min(available, usable_bytes(system_.groups[group].chip));
  }
  table.memory = memory_form(context, available);
  return table;
}

std::span<const std::int32_t> AmpMixedJob::first_allowed(StageTable& table,
                                                         std::int64_t in_flight) {
  std::vector<std::int32_t>& first = table.first_allowed[in_flight];
  if (first.empty()) {
    first = first_fitting_layers(table.layers, table.memory, static_cast<double>(in_flight));
  }
  return first;
}

std::vector<double> AmpMixedJob::handover_bytes(const Configuration& configuration) const {
  const Parallelism parallel = to_parallelism(configuration);
  std::vector<double> bytes;
  bytes.reserve(bytes_of_class_.size());
  for (const double per_sample : bytes_of_class_) {
    bytes.push_back(braid::handover_bytes({0, 1, per_sample}, parallel, parallel));
  }
  return bytes;
}

AmpMixedJob::Placement AmpMixedJob::placement_of(const Configuration& configuration,
                                                 std::span<const std::int64_t> devices) {
  const std::size_t size = at(std::int64_t{configuration.dp} * configuration.tp);
  Placement placement;
  for (std::size_t first = 0; first + size <= devices.size(); first += size) {
    auto& stage =
        placement.emplace_back(devices.begin() + static_cast<std::ptrdiff_t>(first),
                               devices.begin() + static_cast<std::ptrdiff_t>(first + size));
    std::sort(stage.begin(), stage.end());
  }
  return placement;
}

std::optional<SyncedAssignment> AmpMixedJob::assign(const Configuration& configuration,
                                                    const Placement& placement,
                                                    double extra_bytes) {
  AssignmentChain chain;
  chain.micro_batches = configuration.num_micro_batches;
  std::vector<std::vector<std::int32_t>> roomier;
  roomier.reserve(placement.size());
  for (std::size_t s = 0; s < placement.size(); ++s) {
    StageTable& stage = table(configuration, groups_of(system_, placement[s]));
    const std::int64_t stashes = one_f_one_b_in_flight(configuration, static_cast<std::int32_t>(s));
    if (extra_bytes <= 0) {
      chain.stages.push_back({stage.time_before_s, first_allowed(stage, stashes)});
      continue;
    }
    MemoryForm memory = stage.memory;
    memory.available_bytes += extra_bytes;
    roomier.push_back(first_fitting_layers(stage.layers, memory, static_cast<double>(stashes)));
    chain.stages.push_back({stage.time_before_s, roomier.back()});
  }
  const std::size_t hops = placement.size() - 1;
  std::vector<double> hop_s;  // [class · hops + hop]
  for (const double bytes : handover_bytes(configuration)) {
    for (std::size_t s = 0; s < hops; ++s) {
      hop_s.push_back(bytes > 0 ? handover_s(system_, placement[s], placement[s + 1], bytes) : 0);
    }
  }
  for (std::size_t l = 0; l + 1 < layers(); ++l) {
    for (std::size_t s = 0; s < hops; ++s) {
      chain.boundary_s.push_back(hop_s[cut_class_[l] * hops + s]);
    }
  }
  std::vector<std::vector<double>> sums_s;
  sums_s.reserve(placement.size());
  for (const auto& devices : placement) {
    const double s_per_parameter = sync_s_per_parameter(configuration, devices);
    std::vector<double> syncs_s;
    for (const ChainLayer& layer : table(configuration, groups_of(system_, devices)).layers) {
      syncs_s.push_back(synced_parameters(layer, configuration, job_.precision) * s_per_parameter);
    }
    sums_s.push_back(running_sums(syncs_s));
  }
  return assign_layers_and_sync(chain, {sums_s.begin(), sums_s.end()});
}

double AmpMixedJob::sync_s_per_parameter(const Configuration& configuration,
                                         std::span<const std::int64_t> devices) const {
  const auto tp = at(configuration.tp);
  double link = kInfinity;
  for (std::size_t d = 0; configuration.dp > 1 && d < devices.size(); ++d) {
    link =
        std::min(link, link_bytes_per_s(system_, devices[d], devices[(d + tp) % devices.size()]));
  }
  return ring_bytes_per_parameter(configuration.dp, job_.precision) / link;
}

std::optional<AmpMixedAssignment> AmpMixedJob::evaluate(const Configuration& configuration,
                                                        const Placement& placement) {
  ++evaluated_;
  const auto assignment = assign(configuration, placement, 0);
  if (!assignment.has_value()) return std::nullopt;
  AmpMixedAssignment found;
  std::int32_t begin = 0;
  for (std::size_t s = 0; s < placement.size(); ++s) {
    const std::int32_t end = assignment->ends[s];
    found.stages.push_back({begin, end, configuration, placement[s]});
    begin = end;
  }
  found.cost_s = assignment->cost_s();
  return found;
}

std::vector<double> AmpMixedJob::least_handover_bytes(const Configuration& configuration) const {
  const Parallelism parallel = to_parallelism(configuration);
  std::vector<double> bytes;
  bytes.reserve(least_crossing_bytes_.size());
  for (const double per_sample : least_crossing_bytes_) {
    bytes.push_back(braid::handover_bytes({0, 1, per_sample}, parallel, parallel));
  }
  return bytes;
}

AssignmentGraph AmpMixedJob::assignment_graph(const Configuration& configuration,
                                              const Placement& placement) {
  const Parallelism parallel = to_parallelism(configuration);
  AssignmentGraph graph;
  graph.edges = edges_;
  graph.output_bytes = output_bytes_;
  graph.micro_batches = configuration.num_micro_batches;
  graph.handover_s = [this, parallel, &placement](std::size_t stage, double per_sample) {
    const double bytes = braid::handover_bytes({0, 1, per_sample}, parallel, parallel);
    return bytes > 0 ? handover_s(system_, placement[stage], placement[stage + 1], bytes) : 0;
  };
  graph.largest_bytes.assign(2, std::vector<double>(layers(), 0));
  for (std::size_t s = 0; s < placement.size(); ++s) {
    const StageTable& stage = table(configuration, groups_of(system_, placement[s]));
    auto& layer_s = graph.layer_s.emplace_back();
    for (std::size_t l = 0; l < layers(); ++l) {
      const ChainLayer& layer = stage.layers[l];
      const double parameters = layer.dense_parameters + layer.expert_parameters;
      layer_s.push_back(layer.time_s());
      if (s == 0 && configuration.dp > 1) {
        graph.sync_s.push_back(synced_parameters(layer, configuration, job_.precision));
      }
      // The same on all chips, but for what the estimator may round.
      double& working_bytes = graph.largest_bytes[0][l];
      working_bytes = std::max(working_bytes, layer.working_bytes);
      double& gathered_bytes = graph.largest_bytes[1][l];
      gathered_bytes =
          std::max(gathered_bytes, parameters * stage.memory.per_largest_layer_parameter);
    }
    const auto stashes =
        static_cast<double>(one_f_one_b_in_flight(configuration, static_cast<std::int32_t>(s)));
    graph.layer_bytes.push_back(additive_layer_bytes(stage.layers, stage.memory, stashes));
    graph.available_bytes.push_back(stage.memory.available_bytes);
    if (configuration.dp == 1) continue;
    graph.sync_pace.push_back(sync_s_per_parameter(configuration, placement[s]));
  }
  return graph;
}

std::optional<AmpMixedAssignment> AmpMixedJob::evaluate_as_graph(const Configuration& configuration,
                                                                 const Placement& placement,
                                                                 double below_s,
                                                                 std::int64_t& steps) {
  ++evaluated_;
  const auto assignment = assign_graph(assignment_graph(configuration, placement), cuts_->cuts,
                                       cuts_->crossing_bytes, below_s, &steps);
  if (!assignment.has_value()) return std::nullopt;
  AmpMixedAssignment found;
  for (std::size_t s = 0; s < placement.size(); ++s) {
    const std::vector<std::int32_t>& layers = assignment->stages[s];
    const auto begin = static_cast<std::int32_t>(found.order.size());
    found.order.insert(found.order.end(), layers.begin(), layers.end());
    const auto end = static_cast<std::int32_t>(found.order.size());
    found.stages.push_back({begin, end, configuration, placement[s]});
  }
  found.cost_s = assignment->cost_s();
  return found;
}

Infeasibility AmpMixedJob::nearest() {
  Infeasibility nearest{"no split divides the nodes, heads and batch", -1, 0, 0, {}};
  double least = kInfinity;
  std::vector<std::int64_t> ranks;
  for (const auto& devices : nodes_) ranks.insert(ranks.end(), devices.begin(), devices.end());
  for (const Configuration& configuration : configurations_) {
    const Placement placement = placement_of(configuration, ranks);
    // Only when it is less than elsewhere.
    const double high = std::min(least, kEndlessBytes);
    const auto within = [&](double bytes) { return assign(configuration, placement, bytes); };
    auto any = within(high * (1 - kNearThreshold));
    if (!any.has_value()) continue;
    const auto next = [](const ThresholdRange& range) {
      return range.next_by_magnitude(kNearThreshold, kByte);
    };
    const auto assignment = least_memory({0, high}, std::move(*any), next, within,
                                         [high](const auto&) { return high; });
    std::int32_t begin = 0;
    double most = -kInfinity;
    Infeasibility here{"every split needs more memory than there is", -1, 0, 0,
                       to_parallelism(configuration)};
    for (std::size_t s = 0; s < placement.size(); ++s) {
      const StageTable& stage = table(configuration, groups_of(system_, placement[s]));
      RunSums sums;
      for (; begin < assignment.ends[s]; ++begin) sums.add(stage.layers[at(begin)]);
      const double needed = device_bytes(
          sums,
          static_cast<double>(one_f_one_b_in_flight(configuration, static_cast<std::int32_t>(s))),
          stage.memory);
      if (needed - stage.memory.available_bytes <= most) continue;
      most = needed - stage.memory.available_bytes;
      here.stage = static_cast<std::int64_t>(s);
      here.needed_bytes = needed;
      here.available_bytes = stage.memory.available_bytes;
    }
    if (most >= least) continue;
    least = most;
    nearest = here;
  }
  return nearest;
}

Outcome AmpMixedJob::outcome(std::vector<AmpMixedAssignment> found, double bound_s,
                             std::int64_t work) {
  Outcome outcome = begin_outcome(job_, system_);
  outcome.objective_name = kAmpObjective;
  if (mixed_.chain().branched && !is_graph()) {
    outcome.assumptions.push_back(assumption_of_layer_order());
  }
  outcome.work = work;
  outcome.evaluated = evaluated_;
  if (found.empty()) {
    outcome.infeasibility = nearest();
    return outcome;
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const AmpMixedAssignment& a, const AmpMixedAssignment& b) { return a.cost_s < b.cost_s; });
  std::vector<Configuration> taken;
  for (const AmpMixedAssignment& choice : found) {
    if (outcome.candidates.size() >= shown()) break;
    const Configuration& form = choice.stages.front().config;
    const bool is_known = std::any_of(taken.begin(), taken.end(), [&](const Configuration& other) {
      return is_same_class(other, form);
    });
    if (is_known) continue;
    taken.push_back(form);
    Candidate candidate;
    candidate.plan = mixed_.plan(choice.stages, choice.order);
    candidate.metrics = measure(candidate.plan);
    outcome.candidates.push_back(std::move(candidate));
  }
  outcome.objective = found.front().cost_s;
  outcome.search_bound_s = std::min(bound_s, outcome.objective);
  const bool proven = is_proven(outcome.search_bound_s, outcome.objective);
  outcome.status = proven ? Status::optimal : Status::feasible;
  return outcome;
}

}  // namespace braid
