#include "braid/planners/assignment_bound.h"

#include <algorithm>
#include <limits>

namespace braid {

OptimizerShare optimizer_share(const ChainJob& chain, const LayerTable& table,
                               const Configuration& configuration) {
  const bool sharded = configuration.zero >= Zero::optimizer;
  const double dense_ranks = sharded ? configuration.dp * configuration.cp : 1;
  const double expert_ranks = sharded ? dense_ranks / configuration.ep : 1;
  const double parameters =
      table.dense_parameters / dense_ranks + table.expert_parameters / expert_ranks;
  OptimizerShare share;
  if (parameters <= 0) return share;
  share.all_s =
      optimizer_time_s(parameters, chain.job->precision, chain.system->groups.front().chip,
                       configuration.offload_optimizer);
  share.s_per_dense_parameter = share.all_s / parameters / dense_ranks;
  share.s_per_expert_parameter = share.all_s / parameters / expert_ranks;
  return share;
}

double configuration_bound_s(const ChainJob& chain, LayerTables& tables,
                             const Configuration& configuration) {
  LayerTable& table = tables.at(configuration);
  const std::int64_t p = configuration.pp;
  const std::int64_t m = configuration.num_micro_batches;
  const auto steps = static_cast<double>(m);
  const double sum_s = table.time_s();
  // All stages together have all passes and the whole optimizer to do.
  const double even_s =
      (steps * sum_s + optimizer_share(chain, table, configuration).all_s) / static_cast<double>(p);
  if (configuration.schedule == ScheduleKind::interleaved) {
    return std::max(even_s, steps * LayerTables::fullest_stage_s(table, configuration.pp));
  }
  const double slowest_s = tables.min_max_s(table, configuration.pp);
  const double busy_s = std::max(even_s, steps * slowest_s);
  const std::int64_t dives = (m - 1) / p;
  if (chain.branched) {
    // A micro-batch takes the longest way down and up, and 1F1B lets no stage run ahead by more
    // than p micro-batches.
    const double way_s = LayerTables::longest_way_s(table, chain.edges);
    const bool waits = configuration.schedule == ScheduleKind::one_f_one_b;
    return std::max(busy_s, waits ? static_cast<double>(dives + 1) * way_s : way_s);
  }
  if (configuration.schedule == ScheduleKind::gpipe) {
    return std::max(busy_s, sum_s + (steps - 1) * slowest_s);
  }
  // The paths of one_f_one_b_path_s, each at its least over all partitions.
  double longest = static_cast<double>(dives) * sum_s;
  if (m > p) longest = std::max(longest, sum_s + static_cast<double>(m - p - 1) * slowest_s);
  longest = std::max(longest, (steps - 1) * slowest_s * table.least_backward_share);
  return std::max(busy_s, sum_s + longest);
}

double split_bound_s(const ChainJob& chain, LayerTables& tables, const Configuration& split,
                     std::int64_t global_batch, std::span<const int> micro_batches,
                     const std::vector<bool>& sequence_parallel) {
  double least_s = std::numeric_limits<double>::infinity();
  Configuration configuration = split;
  configuration.zero = Zero::optimizer;  // No other takes less time for the optimizer.
  const bool spreads = split.ep > split.cp && split.pp > 1 && split.dp > 1;
  for (const AxisOrder order : {AxisOrder::pipeline_outermost, AxisOrder::data_outermost}) {
    if (order == AxisOrder::data_outermost && !spreads) continue;  // Layers cost the same.
    configuration.order = order;
    for (const bool on : sequence_parallel) {
      configuration.sequence_parallel = on;
      for (const int micro_batch : micro_batches) {
        configuration.micro_batch = micro_batch;
        const std::int64_t steps = global_batch / split.dp / micro_batch;
        LayerTable& table = tables.at(configuration);
        const double even_s = (static_cast<double>(steps) * table.time_s() +
                               optimizer_share(chain, table, configuration).all_s) /
                              split.pp;
        const double fullest_s =
            static_cast<double>(steps) * LayerTables::fullest_stage_s(table, split.pp);
        least_s = std::min(least_s, std::max(even_s, fullest_s) * (1 - 1e-12));
      }
    }
  }
  return least_s;
}

double path_bound_s(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                    double path_s) {
  return chain.branched ? configuration_bound_s(chain, tables, configuration) : path_s;
}

double least_load_s(const LayerTable& table, const Configuration& configuration,
                    const OptimizerShare& optimizer, Ends& ends) {
  std::vector<ChainLayer> loads(table.chain.size());
  for (std::size_t l = 0; l < loads.size(); ++l) {
    const ChainLayer& layer = table.chain[l];
    loads[l].forward_s = static_cast<double>(configuration.num_micro_batches) * layer.time_s() +
                         layer.dense_parameters * optimizer.s_per_dense_parameter +
                         layer.expert_parameters * optimizer.s_per_expert_parameter;
  }
  ends = *partition_min_max(loads, configuration.pp);
  double most_s = 0;
  std::size_t l = 0;
  for (const std::int32_t end : ends) {
    double load_s = 0;
    for (; l < static_cast<std::size_t>(end); ++l) load_s += loads[l].forward_s;
    most_s = std::max(most_s, load_s);
  }
  return most_s;
}

}  // namespace braid
