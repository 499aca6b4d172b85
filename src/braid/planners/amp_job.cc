#include "braid/planners/amp_job.h"

#include <algorithm>
#include <limits>
#include <map>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/planners/amp_synced_assignment.h"
#include "braid/planners/fitting_layers.h"
#include "braid/schedule/timeline.h"
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

SpaceOptions amp_space(SpaceOptions space, const std::string& planner) {
  refuse(space.cp.value_or(1) != 1, "--cp", planner);
  refuse(space.ep.value_or(1) != 1, "--ep", planner);
  refuse(space.vp.value_or(1) != 1, "--vp", planner);
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
      tables_(*job.graph, job.precision, system),
      scratch_(chain_) {
  SpaceLimits limits;
  limits.devices = system.device_count;
  limits.devices_per_node = system.groups.front().devices_per_node;
  limits.global_batch = job.global_batch;
  limits.layers = static_cast<int>(job.graph->layers.size());
  limits.split = split_limits(*job.graph);
  check_space(limits, space_);
  for (Configuration configuration : base_configurations(limits, space_)) {
    // Moves as many bytes as plain replicas do, so AMP's cost is the same.
    configuration.zero = space_.zero.value_or(configuration.dp > 1 ? Zero::optimizer : Zero::none);
    configuration.recompute = space_.recompute.value_or(Recompute::none);
    if (configuration.tp <= limits.devices_per_node) configurations_.push_back(configuration);
  }
  std::vector<double> change(job.graph->layers.size() + 1, 0);
  for (const ProfileEdge& edge : chain_.edges) {
    change[static_cast<std::size_t>(edge.source)] += edge.bytes;
    change[static_cast<std::size_t>(edge.target)] -= edge.bytes;
  }
  double open = 0;
  for (std::size_t l = 0; l + 1 < job.graph->layers.size(); ++l) {
    open = std::max(0.0, open + change[l]);
    cut_bytes_.push_back(open);
  }
}

std::optional<AmpFound> AmpJob::evaluate(const Configuration& configuration) {
  auto found = assign(configuration);
  if (space_.recompute.has_value()) return found;
  Configuration smaller = configuration;
  smaller.recompute = Recompute::full;
  auto other = assign(smaller);
  const bool better = other.has_value() && !(found.has_value() && found->cost_s <= other->cost_s);
  return better ? other : found;
}

MemoryForm AmpJob::memory(const Configuration& configuration) {
  return memory_form(scratch_.evaluator.context(configuration),
                     usable_bytes(system_.groups.front().chip));
}

std::optional<AmpFound> AmpJob::assign(const Configuration& configuration) {
  const LayerTable& table = tables_.at(configuration);
  std::vector<double> times_s;
  for (const ChainLayer& layer : table.chain) times_s.push_back(layer.time_s());
  const std::vector<double> before_s = running_sums(times_s);
  const MemoryForm form = memory(configuration);
  AssignmentChain chain;
  chain.micro_batches = configuration.num_micro_batches;
  std::map<std::int64_t, std::vector<std::int32_t>> first_allowed;  // By micro-batches in flight.
  for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
    const std::int64_t in_flight =
        std::min<std::int64_t>(configuration.num_micro_batches, configuration.pp - stage);
    auto& first = first_allowed[in_flight];
    if (first.empty()) {
      first = first_fitting_layers(table.chain, form, static_cast<double>(in_flight));
    }
    chain.stages.push_back({before_s, first});
  }
  std::map<double, std::vector<double>> handovers;
  const Parallelism parallel = to_parallelism(configuration);
  for (const double cut_bytes : cut_bytes_) {
    const double bytes = boundary_bytes({0, 0, cut_bytes}, parallel);
    auto& handover_s = handovers[bytes];
    if (handover_s.empty()) {
      scratch_.evaluator.fill_handovers(configuration, bytes, handover_s);
    }
    for (std::int32_t stage = 0; stage + 1 < configuration.pp; ++stage) {
      chain.boundary_s.push_back(handover_s[static_cast<std::size_t>(stage)]);
    }
  }
  const double s_per_parameter = sync_s_per_parameter(configuration);
  std::vector<double> syncs_s;
  for (const ChainLayer& layer : table.chain) {
    syncs_s.push_back((layer.dense_parameters + layer.expert_parameters) * s_per_parameter);
  }
  const std::vector<double> sync_before_s = running_sums(syncs_s);
  auto assignment = assign_layers_and_sync(
      chain, std::vector<std::span<const double>>(chain.stages.size(), sync_before_s));
  if (!assignment.has_value()) return std::nullopt;
  const double cost_s = assignment->cost_s();
  return AmpFound{configuration, std::move(assignment->ends), cost_s};
}

double AmpJob::sync_s_per_parameter(const Configuration& configuration) const {
  if (configuration.dp == 1) return 0;
  // Stages of a homogeneous cluster have like rings: that of the first stage's first shard.
  const std::int64_t stride = configuration.order == AxisOrder::pipeline_outermost
                                  ? configuration.tp
                                  : std::int64_t{configuration.tp} * configuration.pp;
  double slowest = std::numeric_limits<double>::infinity();
  for (std::int64_t replica = 0; replica < configuration.dp; ++replica) {
    slowest = std::min(slowest, link_bytes_per_s(system_, replica * stride,
                                                 (replica + 1) % configuration.dp * stride));
  }
  return 2.0 * (configuration.dp - 1) / configuration.dp *
         bytes_per_element(job_.precision.gradient) / slowest;
}

Infeasibility AmpJob::nearest() {
  Infeasibility nearest{"no split divides the devices, heads and batch", -1, 0, 0, {}};
  for (Configuration configuration : configurations_) {
    if (!space_.recompute.has_value()) configuration.recompute = Recompute::full;
    const Assessment assessment =
        assess(chain_, tables_, configuration, std::numeric_limits<double>::infinity(), scratch_);
    if (nearest.stage >= 0 && !(assessment.needed_bytes < nearest.needed_bytes)) continue;
    nearest = {"every split needs more memory than a device has", assessment.tightest_stage,
               assessment.needed_bytes, usable_bytes(system_.groups.front().chip),
               to_parallelism(configuration)};
  }
  return nearest;
}

Outcome AmpJob::outcome(std::vector<AmpFound> found, std::int64_t work, bool complete) {
  Outcome outcome;
  outcome.physical_bound = lower_bound(*job_.graph, job_.precision, job_.global_batch, system_);
  outcome.objective_name = "AMP's cost (s)";
  outcome.work = work;
  outcome.evaluated = static_cast<std::int64_t>(found.size());
  std::stable_sort(found.begin(), found.end(),
                   [](const AmpFound& a, const AmpFound& b) { return a.cost_s < b.cost_s; });
  std::vector<Configuration> taken;
  for (const AmpFound& choice : found) {
    if (outcome.candidates.size() >= static_cast<std::size_t>(std::max(1, space_.top))) break;
    if (std::find(taken.begin(), taken.end(), choice.configuration) != taken.end()) continue;
    taken.push_back(choice.configuration);
    Candidate candidate;
    candidate.plan = build_plan(chain_, tables_, choice.configuration, choice.ends, planner_);
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
