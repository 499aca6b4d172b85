#include "braid/planners/job/one_form_job.h"

#include <algorithm>
#include <set>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/job/alternatives.h"
#include "braid/planners/job/outcomes.h"
#include "braid/schedule/timeline.h"
#include "braid/search/fitting_layers.h"
#include "braid/search/layer_outputs.h"

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

double expert_sync_share(const Configuration& configuration) {
  if (configuration.ep == 1) return 1;
  const double replicas = configuration.dp;
  return (replicas - configuration.ep) / (replicas - 1);
}

double synced_parameters(const ChainLayer& layer, const Configuration& configuration,
                         const Precision& precision) {
  return layer.dense_parameters + layer.expert_parameters * expert_sync_share(configuration) +
         layer.gradient_bytes / bytes_per_element(precision.gradient);
}

SpaceOptions one_form_space(SpaceOptions space, const std::string& planner) {
  refuse(!space.cp.allows(1), "--cp", planner);
  refuse(space.whole_experts.value_or(false), "--whole-experts", planner);
  refuse(!space.vp.allows(1), "--vp", planner);
  refuse(space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b,
         "--schedule", planner);
  space.all_devices = true;
  space.cp = space.vp = 1;
  space.whole_experts = false;
  space.schedule = ScheduleKind::one_f_one_b;
  if (!space.sequence_parallel) space.sequence_parallel = false;
  return space;
}

OneFormJob::OneFormJob(const Job& job, const System& system, const SpaceOptions& space,
                       std::string planner)
    : job_(job),
      system_(homogeneous(system, planner)),
      space_(one_form_space(space, planner)),
      planner_(std::move(planner)),
      chain_(chain_job(job, system)),
      tables_(job, system),
      scratch_(chain_) {
  const SpaceLimits limits = space_limits(job, system);
  check_space(limits, space_);
  std::set<Configuration> listed;
  std::map<Configuration, Configuration> least_split;  // Of configurations but for their split.
  for (Configuration configuration : base_configurations(limits, space_)) {
    // One ZeRO stage for all that differ in it alone: it moves as many bytes as plain replicas do.
    configuration.zero = space_.zero.value_or(configuration.dp > 1 ? Zero::optimizer : Zero::none);
    configuration.recompute = space_.recompute.value_or(Recompute::none);
    if (configuration.tp > limits.devices_per_node) continue;
    if (!listed.insert(configuration).second || !tables_.is_distinct(configuration)) continue;
    Configuration whole = configuration;
    whole.ep = 1;
    const auto [least, is_new] = least_split.try_emplace(whole, configuration);
    if (is_new) configurations_.push_back(configuration);
    expert_splits_[least->second].push_back(configuration);
  }
  edges_ = layer_pairs(chain_.edges);
  output_bytes_ = output_bytes_of(chain_.layers->layers());
  cut_bytes_ = chain_cut_bytes(output_bytes_, edges_);
  if (chain_.branched) cuts_ = model_cuts(chain_.kind_of_layer, edges_, output_bytes_);
}

std::vector<Configuration> OneFormJob::expert_splits(const Configuration& configuration) const {
  const auto found = expert_splits_.find(configuration);
  return found == expert_splits_.end() ? std::vector{configuration} : found->second;
}

MemoryForm OneFormJob::memory(const Configuration& configuration) {
  return memory_form(scratch_.evaluator.context(configuration),
                     usable_bytes(system_.groups.front().chip));
}

const std::vector<double>& OneFormJob::handovers_s(const Configuration& configuration,
                                                   double bytes) {
  const double sent = boundary_bytes({0, 0, bytes}, to_parallelism(configuration));
  scratch_.evaluator.fill_handovers(configuration, sent, scratch_.handover_s);
  return scratch_.handover_s;
}

AssignmentGraph OneFormJob::assignment_graph(const Configuration& configuration) {
  const LayerTable& table = tables_.at(configuration);
  const MemoryForm form = memory(configuration);
  AssignmentGraph graph;
  graph.edges = edges_;
  graph.micro_batches = configuration.num_micro_batches;
  graph.output_bytes = output_bytes_;
  std::vector<double> times_s;
  graph.largest_bytes.resize(2);
  for (const ChainLayer& layer : table.chain) {
    const double parameters = layer.dense_parameters + layer.expert_parameters;
    times_s.push_back(layer.time_s());
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

Infeasibility OneFormJob::nearest() {
  Infeasibility nearest{"no split divides the devices, heads and batch", -1, 0, 0, {}};
  for (const Configuration& whole : configurations_) {
    for (Configuration configuration : expert_splits(whole)) {
      Configuration less = configuration;
      less.recompute = Recompute::full;
      if (!space_.recompute.has_value() && is_listed(space_, less)) configuration = less;
      const Assessment assessment = assess(chain_, tables_, configuration, kInfinity, scratch_);
      if (nearest.stage >= 0 && !(assessment.needed_bytes < nearest.needed_bytes)) continue;
      nearest = {"every split needs more memory than there is", assessment.tightest_stage,
                 assessment.needed_bytes, usable_bytes(system_.groups.front().chip),
                 to_parallelism(configuration)};
    }
  }
  return nearest;
}

Outcome OneFormJob::outcome(std::vector<OneFormAssignment> found, std::int64_t work, bool complete,
                            std::string objective_name) {
  Outcome outcome = begin_outcome(job_, system_);
  outcome.objective_name = std::move(objective_name);
  if (chain_.branched && !is_graph()) outcome.assumptions.push_back(assumption_of_layer_order());
  outcome.work = work;
  outcome.evaluated = static_cast<std::int64_t>(found.size());
  std::stable_sort(
      found.begin(), found.end(),
      [](const OneFormAssignment& a, const OneFormAssignment& b) { return a.cost_s < b.cost_s; });
  std::vector<Configuration> taken;
  for (const OneFormAssignment& choice : found) {
    if (outcome.candidates.size() >= static_cast<std::size_t>(std::max(1, space_.top))) break;
    const bool is_known = std::any_of(taken.begin(), taken.end(), [&](const Configuration& other) {
      return is_same_class(other, choice.configuration);
    });
    if (is_known) continue;
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
