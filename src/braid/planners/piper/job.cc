#include "braid/planners/piper/job.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "braid/base/index.h"
#include "braid/graph/downsets.h"
#include "braid/plan/totals.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/plan_builder.h"
#include "braid/planners/job/space.h"
#include "braid/planners/job/space_rules.h"
#include "braid/planners/piper/levels.h"
#include "braid/planners/piper/network.h"
#include "braid/search/downset_lattice.h"
#include "braid/search/layer_outputs.h"

namespace braid {
namespace {

/// More downsets of a model's layers than this, and they are cut as a chain.
constexpr std::size_t kMostDownsets = 2'000;

/// What a device sends along an edge of so many bytes a sample.
double sent_bytes(const Configuration& form, double edge_bytes) {
  return boundary_bytes({0, 0, edge_bytes}, to_parallelism(form));
}

/// Forms of one tp, in the order of their options.
using FormsByDegree = std::map<int, std::vector<std::int32_t>>;

FormsByDegree by_degree(const std::vector<PiperConfig>& forms) {
  FormsByDegree degrees;
  for (std::size_t f = 0; f < forms.size(); ++f) {
    degrees[forms[f].form.tp].push_back(static_cast<std::int32_t>(f));
  }
  return degrees;
}

/// Least that any form's devices send, of bytes 1: what every stage pays for an edge.
double least_share(const std::vector<PiperConfig>& forms) {
  double least = sent_bytes(forms.front().form, 1);
  for (const PiperConfig& form : forms) least = std::min(least, sent_bytes(form.form, 1));
  return least;
}

}  // namespace

PiperJob piper_job(const Job& job, const System& system, LayerTables& tables,
                   PiperNetwork network) {
  PiperJob result{&job, &system, &tables, layer_options(job), {}, 0, {}, system.device_count};
  const DeviceGroup& group = system.groups.front();
  result.bandwidth = system.levels.empty() || system.device_count <= group.devices_per_node
                         ? group.intra_node.bytes_per_s
                         : system.levels.back().bytes_per_s;
  if (network == PiperNetwork::levels) {
    result.levels = piper_levels_of(system);
    result.bandwidth = result.levels.front().bandwidth_bytes;
    result.devices = device_count(result.levels);
  }
  const Profile& layers = result.layers->layers();
  for (const ProfileEdge& edge : layers.edges) {
    result.edges.push_back({edge.source, edge.target, edge.bytes});
  }
  const std::size_t most_downsets = result.levels.empty() ? kMostDownsets : kMostPiperLevelDownsets;
  if (downset_lattice(make_dag(layers.layers.size(), layer_pairs(layers.edges)), most_downsets))
    return result;
  // Edges that carry nothing leave only the order of a chain.
  for (std::size_t l = 0; l + 1 < layers.layers.size(); ++l) {
    const auto from = static_cast<std::int32_t>(l);
    const bool there = std::any_of(
        result.edges.begin(), result.edges.end(),
        [&](const PiperEdge& edge) { return edge.source == from && edge.target == from + 1; });
    if (!there) result.edges.push_back({from, from + 1, 0});
  }
  std::sort(result.edges.begin(), result.edges.end(), [](const PiperEdge& a, const PiperEdge& b) {
    return std::pair(a.source, a.target) < std::pair(b.source, b.target);
  });
  return result;
}

namespace {

/// Whether sequence parallelism is on in manual forms of this degree; nullopt: there is none.
std::optional<bool> sequence_parallel(const SplitLimits& split, Configuration form,
                                      const SpaceOptions& space) {
  form.sequence_parallel = form.tp > 1 && space.sequence_parallel.value_or(true);
  if (refusal(split, to_execution(form)).empty()) return form.sequence_parallel;
  if (space.sequence_parallel.value_or(false)) return std::nullopt;
  form.sequence_parallel = false;
  if (refusal(split, to_execution(form)).empty()) return false;
  return std::nullopt;
}

/// What stages of one tp may choose among with these shardings. Without sequence parallelism
/// manual ones go with automatic ones.
std::vector<TensorSharding> forms_of(const SpaceLimits& limits, const Configuration& form,
                                     const SpaceOptions& space, ShardingSource sharding) {
  if (sharding == ShardingSource::automatic) {
    SpaceOptions whole = space;
    if (space.sequence_parallel.value_or(false)) return {};
    whole.sequence_parallel = false;
    return tensor_shardings(form, limits, whole);
  }
  const std::optional<bool> on = sequence_parallel(limits.split, form, space);
  if (!on) return {};
  return {{*on, ShardingKind::manual}};
}

}  // namespace

std::vector<PiperConfig> piper_configs(const PiperJob& job, const SpaceOptions& space,
                                       const Configuration& shared, std::int64_t most_tp,
                                       bool recompute, ShardingSource sharding) {
  SpaceLimits limits;
  limits.split = job.layers->limits(most_tp);
  if (sharding == ShardingSource::manual) limits.split.automatic.clear();
  std::vector<PiperConfig> forms;
  for (int tp = 1; tp <= most_tp; ++tp) {
    if (!space.tp.allows(tp)) continue;
    Configuration degree;
    degree.tp = tp;
    degree.ep = degree.dp = shared.ep;
    degree.micro_batch = shared.micro_batch;
    degree.zero = space.zero.value_or(Zero::none);
    for (const TensorSharding& tensor : forms_of(limits, degree, space, sharding)) {
      if (!job.tables->is_distinct(with_form(degree, tensor))) continue;
      if (!can_divide(space.can, to_execution(with_form(degree, tensor)))) continue;
      for (const Recompute kind : {Recompute::none, Recompute::selective, Recompute::full}) {
        if (space.recompute ? *space.recompute != kind : kind != Recompute::none && !recompute) {
          continue;
        }
        if (kind != Recompute::none && !recompute) continue;
        PiperConfig made;
        Configuration& form = made.form;
        form = with_form(degree, tensor);
        form.recompute = kind;
        if (!is_listed(space, form)) continue;
        const LayerTable& table = job.tables->at(form);
        made.time_s = table.time_s() / shared.micro_batch;
        const auto context =
            data_parallel_context(to_parallelism(form), job.job->precision, *job.system);
        for (const LayerCost& cost : table.kinds) {
          ChunkTotals totals;
          totals.add(cost, 1);
          made.working_bytes = std::max(made.working_bytes, memory_of(totals, 1, context).working);
        }
        forms.push_back(made);
      }
    }
  }
  return forms;
}

PiperProblem piper_problem_of(const PiperJob& job, const std::vector<PiperConfig>& forms,
                              std::int64_t dp, double working_bytes) {
  assert(!forms.empty());
  const std::vector<ProfileLayer>& layers = job.layers->layers().layers;
  PiperProblem problem;
  const double share = least_share(forms);
  problem.edges = job.edges;
  for (PiperEdge& edge : problem.edges) {
    edge.whole_bytes = edge.bytes * forms.front().form.micro_batch;
    edge.bytes *= share;
  }
  std::vector<std::vector<double>> in_bytes(layers.size()), out_bytes(layers.size());
  for (const PiperEdge& edge : job.edges) {
    in_bytes[at(edge.target)].push_back(edge.bytes);
    out_bytes[at(edge.source)].push_back(edge.bytes);
  }
  const auto beyond = [](std::vector<double> bytes, double factor) {
    for (double& each : bytes) each *= factor;
    return bytes;
  };
  const Configuration& shared = forms.front().form;
  problem.dp_multiple = shared.ep;
  problem.micro_batches = std::min(job.job->global_batch / shared.micro_batch, kMostPiperDevices);
  // Of d replicas 4·(d/ep - 1)/(d/ep) synchronise a byte, which is 4·(ep - 1)/d less than 4·(d -
  // 1)/d: a share of 1/d, as that of the passes.
  const double s_per_split_parameter =
      4.0 * (shared.ep - 1) / static_cast<double>(problem.micro_batches) *
      bytes_per_element(job.job->precision.gradient) / job.bandwidth;
  const FormsByDegree degrees = by_degree(forms);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    PiperNode node;
    node.name = layers[l].name;
    for (const auto& [tp, members] : degrees) {
      PiperDegree degree{tp, {}};
      for (const std::int32_t member : members) {
        Configuration form = forms[at(member)].form;
        const LayerCost& cost = job.tables->at(form).kinds[at(layers[l].kind)];
        form.dp = static_cast<std::int32_t>(dp);
        const auto context =
            data_parallel_context(to_parallelism(form), job.job->precision, *job.system);
        ChunkTotals totals;
        totals.add(cost, 1);
        const MemoryBreakdown idle = memory_of(totals, 0, context);
        const MemoryBreakdown busy = memory_of(totals, 1, context);
        PiperOption option;
        option.name = job.tables->option(form, at(layers[l].kind)).name;
        option.time = std::max(0.0, cost.time_s() - cost.expert_parameters * s_per_split_parameter);
        option.parameter_bytes = (cost.dense_parameters + cost.expert_parameters) *
                                     bytes_per_element(job.job->precision.gradient) +
                                 std::max(0.0, cost.gradient_bytes);
        option.in_flight_bytes = busy.activations - idle.activations;
        option.fixed_bytes = idle.weights + idle.gradients + idle.optimizer;
        option.recompute = form.recompute != Recompute::none;
        if (const double more = sent_bytes(form, 1) - share; more > 0) {
          option.in_sync_bytes = beyond(in_bytes[l], more);
          option.out_sync_bytes = beyond(out_bytes[l], more);
        }
        degree.options.push_back(std::move(option));
      }
      node.degrees.push_back(std::move(degree));
    }
    problem.nodes.push_back(std::move(node));
  }
  problem.levels = job.levels;
  problem.devices = std::min(job.devices, kMostPiperDevices);
  problem.memory_bytes =
      std::max(1.0, usable_bytes(job.system->groups.front().chip) - working_bytes);
  problem.bandwidth_bytes = job.bandwidth;
  return problem;
}

Plan plan_of_piper(const PiperJob& job, const std::vector<PiperConfig>& forms,
                   const PiperSolution& solution, const std::string& planner) {
  const std::vector<PiperStage>& stages = solution.stages;
  const FormsByDegree degrees = by_degree(forms);
  const auto form_at = [&](const PiperStage& stage, std::size_t i) {
    return degrees.at(stage.tp)[at(stage.options[i])];
  };
  const std::vector<std::vector<std::int64_t>> devices = devices_of_stages(solution, job.levels);
  PlanBuilder builder(blank_plan(*job.job, *job.layers, *job.system), planner);
  Plan& plan = builder.plan();
  plan.profile.chip = job.system->groups.front().chip.name;
  bool uniform = true;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const PiperStage& from = stages[s];
    uniform = uniform && from.dp == stages.front().dp;
    Configuration how = forms[at(form_at(from, 0))].form;
    how.dp = static_cast<std::int32_t>(from.dp);
    Stage& stage = builder.add_stage(how, devices[s]);
    stage.own = stage_config(how);
    Chunk& chunk = stage.chunks.emplace_back();
    for (std::size_t i = 0; i < from.nodes.size(); ++i) {
      const std::int32_t option = builder.option(*job.tables, forms[at(form_at(from, i))].form);
      add_layers(std::span(&from.nodes[i], 1), option, chunk);
    }
  }
  Configuration shared = forms[at(form_at(stages.front(), 0))].form;
  shared.pp = static_cast<std::int32_t>(stages.size());
  shared.dp = static_cast<std::int32_t>(stages.front().dp);
  shared.num_micro_batches = plan.global_batch / (std::int64_t{shared.dp} * shared.micro_batch);
  plan.parallel = to_parallelism(shared);
  if (!uniform || builder.options() > 1) return builder.take();
  if (const auto order = order_of_axes(plan.parallel, devices)) {
    plan.parallel.order = *order;
    for (Stage& stage : plan.stages) stage.own.reset();
  }
  return builder.take();
}

}  // namespace braid
