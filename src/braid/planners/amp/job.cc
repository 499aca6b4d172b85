#include "braid/planners/amp/job.h"

#include <algorithm>
#include <map>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/amp/synced_assignment.h"
#include "braid/planners/job/outcomes.h"
#include "braid/schedule/timeline.h"
#include "braid/search/fitting_layers.h"
#include "braid/search/layer_outputs.h"
#include "braid/system/links.h"

namespace braid {
namespace {

const System& homogeneous(const System& system, const std::string& planner) {
  if (!is_homogeneous(system)) {
    throw Error("the " + planner + " planner needs one kind of device on a hierarchical network",
                "plan on one group of " + system.name);
  }
  return system;
}

void refuse(bool asked, const char* option, const std::string& planner) {
  if (!asked) return;
  throw Error(Where{"", 0, option}, "the " + planner + " planner cannot do that",
              "leave it out or use --planner braid");
}

}  // namespace

double synced_parameters(const ChainLayer& layer, const Precision& precision) {
  return layer.dense_parameters + layer.expert_parameters +
         layer.gradient_bytes / bytes_per_element(precision.gradient);
}

double ring_bytes_per_parameter(std::int64_t dp, const Precision& precision) {
  return 2.0 * static_cast<double>(dp - 1) / static_cast<double>(dp) *
         bytes_per_element(precision.gradient);
}

SpaceOptions amp_space(SpaceOptions space, const std::string& planner) {
  refuse(!space.cp.allows(1), "--cp", planner);
  refuse(!space.ep.allows(1), "--ep", planner);
  refuse(!space.vp.allows(1), "--vp", planner);
  refuse(space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b,
         "--schedule", planner);
  space.all_devices = true;
  space.cp = space.ep = space.vp = 1;
  space.schedule = ScheduleKind::one_f_one_b;
  if (!space.sequence_parallel) space.sequence_parallel = false;
  return space;
}

AmpJob::AmpJob(const Job& job, const System& system, const SpaceOptions& space, std::string planner)
    : job_(job),
      system_(homogeneous(system, planner)),
      space_(amp_space(space, planner)),
      planner_(std::move(planner)),
      chain_(chain_job(job, system)),
      tables_(job, system),
      scratch_(chain_) {
  const SpaceLimits limits = space_limits(job, system);
  check_space(limits, space_);
  for (Configuration configuration : base_configurations(limits, space_)) {
    // Moves as many bytes as plain replicas do, so AMP's cost is the same.
    configuration.zero = space_.zero.value_or(configuration.dp > 1 ? Zero::optimizer : Zero::none);
    configuration.recompute = space_.recompute.value_or(Recompute::none);
    if (configuration.tp > limits.devices_per_node) continue;
    if (tables_.is_distinct(configuration)) configurations_.push_back(configuration);
  }
  edges_ = layer_pairs(chain_.edges);
  output_bytes_ = output_bytes_of(chain_.layers->layers());
  cut_bytes_ = chain_cut_bytes(output_bytes_, edges_);
  if (chain_.branched) cuts_ = model_cuts(chain_.kind_of_layer, edges_, output_bytes_);
}

template <typename Assign>
std::optional<AmpAssignment> AmpJob::best_way(const Configuration& configuration, double below_s,
                                              Assign assign) {
  std::optional<AmpAssignment> best;
  for (const Recompute recompute : {configuration.recompute, Recompute::full}) {
    Configuration way = configuration;
    way.recompute = recompute;
    if (!is_listed(space_, way)) continue;
    auto found = assign(way, below_s);
    if (found.has_value() && found->cost_s < below_s) {
      below_s = found->cost_s;
      best = std::move(found);
    }
    if (space_.recompute.has_value()) break;
  }
  return best;
}

std::optional<AmpAssignment> AmpJob::evaluate(const Configuration& configuration, double below_s) {
  return best_way(configuration, below_s, [&](const Configuration& way, double best_s) {
    auto found = assign_in_order(way);
    if (!is_graph() || way.pp == 1) return found;
    auto better =
        assign_branches(way, found.has_value() ? std::min(best_s, found->cost_s) : best_s);
    return better.has_value() ? better : found;
  });
}

std::optional<AmpAssignment> AmpJob::evaluate_in_order(const Configuration& configuration) {
  return best_way(configuration, kUnlimited,
                  [&](const Configuration& way, double) { return assign_in_order(way); });
}

double AmpJob::bound_s(const Configuration& configuration) {
  const LayerTable& table = tables_.at(configuration);
  double all_s = 0, longest_s = 0, parameters = 0;
  for (const ChainLayer& layer : table.chain) {
    all_s += layer.time_s();
    longest_s = std::max(longest_s, layer.time_s());
    parameters += synced_parameters(layer, job_.precision);
  }
  const double bottleneck_s = std::max(all_s / configuration.pp, longest_s);
  const double sync_s = parameters * sync_s_per_parameter(configuration) / configuration.pp;
  return (static_cast<double>(configuration.num_micro_batches - 1) * bottleneck_s + all_s +
          sync_s) *
         kBelowTolerance;
}

MemoryForm AmpJob::memory(const Configuration& configuration) {
  return memory_form(scratch_.evaluator.context(configuration),
                     usable_bytes(system_.groups.front().chip));
}

const std::vector<double>& AmpJob::handovers_s(const Configuration& configuration, double bytes) {
  const double sent = boundary_bytes({0, 0, bytes}, to_parallelism(configuration));
  scratch_.evaluator.fill_handovers(configuration, sent, scratch_.handover_s);
  return scratch_.handover_s;
}

std::optional<AmpAssignment> AmpJob::assign_branches(const Configuration& configuration,
                                                     double below_s) {
  if (!(bound_s(configuration) < below_s)) return std::nullopt;
  auto assignment =
      assign_graph(assignment_graph(configuration), cuts_->cuts, cuts_->crossing_bytes, below_s);
  if (!assignment.has_value()) return std::nullopt;
  const double cost_s = assignment->cost_s();
  return AmpAssignment{configuration, std::move(assignment->stages), cost_s};
}

AssignmentGraph AmpJob::assignment_graph(const Configuration& configuration) {
  const LayerTable& table = tables_.at(configuration);
  const MemoryForm form = memory(configuration);
  AssignmentGraph graph;
  graph.edges = edges_;
  graph.micro_batches = configuration.num_micro_batches;
  graph.output_bytes = output_bytes_;
  // A handover takes a latency and a time for each byte, of which two handovers tell.
  constexpr double kSomeBytes = 1e9;
  graph.s_per_byte = handovers_s(configuration, 2 * kSomeBytes);
  graph.latency_s = handovers_s(configuration, kSomeBytes);
  for (std::size_t i = 0; i < graph.latency_s.size(); ++i) {
    graph.s_per_byte[i] = (graph.s_per_byte[i] - graph.latency_s[i]) / kSomeBytes;
    graph.latency_s[i] -= graph.s_per_byte[i] * kSomeBytes;
  }
  const double s_per_parameter = sync_s_per_parameter(configuration);
  std::vector<double> times_s;
  graph.largest_bytes.resize(2);
  for (const ChainLayer& layer : table.chain) {
    const double parameters = layer.dense_parameters + layer.expert_parameters;
    times_s.push_back(layer.time_s());
    graph.sync_s.push_back(synced_parameters(layer, job_.precision) * s_per_parameter);
    graph.largest_bytes[0].push_back(layer.working_bytes);
    graph.largest_bytes[1].push_back(parameters * form.per_largest_layer_parameter);
  }
  graph.layer_s.assign(static_cast<std::size_t>(configuration.pp), times_s);
  // Placeholders of gradients are taken for those of all layers.
  RunSums shapes;
  for (const ChainLayer& layer : table.chain) shapes.weight_shapes |= layer.weight_shapes;
  graph.available_bytes.assign(static_cast<std::size_t>(configuration.pp),
                               form.available_bytes - standing_bytes(shapes, form));
  for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
    const auto in_flight = static_cast<double>(one_f_one_b_in_flight(configuration, stage));
    graph.layer_bytes.push_back(additive_layer_bytes(table.chain, form, in_flight));
  }
  return graph;
}

std::optional<AmpAssignment> AmpJob::assign_in_order(const Configuration& configuration) {
  const LayerTable& table = tables_.at(configuration);
  std::vector<double> times_s;
  for (const ChainLayer& layer : table.chain) times_s.push_back(layer.time_s());
  const std::vector<double> before_s = running_sums(times_s);
  const MemoryForm form = memory(configuration);
  AssignmentChain chain;
  chain.micro_batches = configuration.num_micro_batches;
  std::map<std::int64_t, std::vector<std::int32_t>> first_allowed;  // By micro-batches in flight.
  for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
    const std::int64_t in_flight = one_f_one_b_in_flight(configuration, stage);
    auto& first = first_allowed[in_flight];
    if (first.empty()) {
      first = first_fitting_layers(table.chain, form, static_cast<double>(in_flight));
    }
    chain.stages.push_back({before_s, first});
  }
  std::map<double, std::vector<double>> handovers;
  for (const double cut_bytes : cut_bytes_) {
    auto& handover_s = handovers[cut_bytes];
    if (handover_s.empty()) handover_s = handovers_s(configuration, cut_bytes);
    for (std::int32_t stage = 0; stage + 1 < configuration.pp; ++stage) {
      chain.boundary_s.push_back(handover_s[static_cast<std::size_t>(stage)]);
    }
  }
  const double s_per_parameter = sync_s_per_parameter(configuration);
  std::vector<double> syncs_s;
  for (const ChainLayer& layer : table.chain) {
    syncs_s.push_back(synced_parameters(layer, job_.precision) * s_per_parameter);
  }
  const std::vector<double> sync_before_s = running_sums(syncs_s);
  auto assignment = assign_layers_and_sync(
      chain, std::vector<std::span<const double>>(chain.stages.size(), sync_before_s));
  if (!assignment.has_value()) return std::nullopt;
  const double cost_s = assignment->cost_s();
  return AmpAssignment{configuration, chunks_of(assignment->ends), cost_s};
}

double AmpJob::sync_s_per_parameter(const Configuration& configuration) const {
  if (configuration.dp == 1) return 0;
  // Stages of a homogeneous cluster have like rings: that of the first stage's first shard.
  const std::int64_t stride = configuration.order == AxisOrder::pipeline_outermost
                                  ? configuration.tp
                                  : std::int64_t{configuration.tp} * configuration.pp;
  double slowest = kInfinity;
  for (std::int64_t replica = 0; replica < configuration.dp; ++replica) {
    slowest = std::min(slowest, link_bytes_per_s(system_, replica * stride,
                                                 (replica + 1) % configuration.dp * stride));
  }
  return ring_bytes_per_parameter(configuration.dp, job_.precision) / slowest;
}

Infeasibility AmpJob::nearest() {
  Infeasibility nearest{"no split divides the devices, heads and batch", -1, 0, 0, {}};
  for (Configuration configuration : configurations_) {
    Configuration less = configuration;
    less.recompute = Recompute::full;
    if (!space_.recompute.has_value() && is_listed(space_, less)) configuration = less;
    const Assessment assessment = assess(chain_, tables_, configuration, kInfinity, scratch_);
    if (nearest.stage >= 0 && !(assessment.needed_bytes < nearest.needed_bytes)) continue;
    nearest = {"every split needs more memory than there is", assessment.tightest_stage,
               assessment.needed_bytes, usable_bytes(system_.groups.front().chip),
               to_parallelism(configuration)};
  }
  return nearest;
}

Outcome AmpJob::outcome(std::vector<AmpAssignment> found, std::int64_t work, bool complete) {
  Outcome outcome = begin_outcome(job_, system_);
  outcome.objective_name = "AMP's cost (s)";
  if (chain_.branched && !is_graph()) outcome.assumptions.push_back(assumption_of_layer_order());
  outcome.work = work;
  outcome.evaluated = static_cast<std::int64_t>(found.size());
  std::stable_sort(found.begin(), found.end(), [](const AmpAssignment& a, const AmpAssignment& b) {
    return a.cost_s < b.cost_s;
  });
  std::vector<Configuration> taken;
  for (const AmpAssignment& choice : found) {
    if (outcome.candidates.size() >= static_cast<std::size_t>(std::max(1, space_.top))) break;
    if (std::find(taken.begin(), taken.end(), choice.configuration) != taken.end()) continue;
    taken.push_back(choice.configuration);
    Candidate candidate;
    candidate.plan = build_plan(chain_, tables_, choice.configuration, choice.stages, planner_);
    candidate.metrics = measure(candidate.plan);
    outcome.candidates.push_back(std::move(candidate));
  }
  if (found.empty()) {
    outcome.infeasibility = nearest();
    if (!complete) outcome.status = Status::budget_exhausted;
    return outcome;
  }
  outcome.objective = found.front().cost_s;
  outcome.search_bound_s = complete ? outcome.objective : 0;
  outcome.status = complete ? Status::optimal : Status::feasible;
  return outcome;
}

}  // namespace braid
