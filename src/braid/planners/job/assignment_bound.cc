#include "braid/planners/job/assignment_bound.h"

#include <algorithm>
#include <cassert>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {

OptimizerShare optimizer_share(const ChainJob& chain, const LayerTable& table,
                               const Configuration& configuration) {
  const bool sharded = configuration.zero >= Zero::optimizer;
  const double dense_ranks = sharded ? configuration.dp * configuration.cp : 1;
  const double expert_ranks =
      sharded ? static_cast<double>(expert_axis(configuration)) / configuration.ep : 1;
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
  const bool interleaved = configuration.schedule == ScheduleKind::interleaved;
  LayerTable& table = interleaved ? tables.sums_at(configuration) : tables.dealt_at(configuration);
  const std::int64_t p = configuration.pp;
  const std::int64_t m = configuration.num_micro_batches;
  const auto steps = static_cast<double>(m);
  const double sum_s = table.time_s();
  // All stages together have all passes and the whole optimizer to do.
  const double even_s =
      (steps * sum_s + optimizer_share(chain, table, configuration).all_s) / static_cast<double>(p);
  if (interleaved) {
    // Each stage waits for the first chunks of those before it, on their way down and up.
    const double waits_s = chain.branched ? 0
                                          : LayerTables::first_chunks_s(table, configuration.pp) /
                                                static_cast<double>(p);
    return std::max(even_s + waits_s,
                    steps * LayerTables::fullest_stage_s(table, configuration.pp));
  }
  const double slowest_s = tables.min_max_s(table, configuration.pp);
  const double busy_s = std::max(even_s, steps * slowest_s);
  if (chain.branched) {
    // A micro-batch takes the longest way down and up, and 1F1B lets no stage run ahead by more
    // than p micro-batches.
    const double way_s = tables.longest_way_s(table, chain.edges);
    const bool waits = configuration.schedule == ScheduleKind::one_f_one_b;
    const std::int64_t ways = waits ? (m - 1) / p + 1 : 1;
    return std::max(busy_s, static_cast<double>(ways) * way_s);
  }
  if (configuration.schedule == ScheduleKind::gpipe) {
    return std::max(busy_s, sum_s + (steps - 1) * slowest_s);
  }
  const double excess_s =
      OneFOneBTurns::least_chain_excess_s(p, m, sum_s, slowest_s, table.least_backward_share);
  return std::max(busy_s, sum_s + excess_s);
}

void fill_fullest_syncs(const LayerTable& table, int stages, const DataParallelContext& context,
                        std::vector<StageSync>& syncs) {
  assert(context.zero == zero_around(context.zero));
  syncs.resize(table.kinds.size());
  for (std::size_t kind = 0; kind < syncs.size(); ++kind) {
    const double layers = table.fullest_count(kind, stages);
    StageParameters parameters;
    parameters.dense = layers * table.kinds[kind].dense_parameters;
    parameters.expert = layers * table.kinds[kind].expert_parameters;
    parameters.layers = 1;
    syncs[kind] = stage_sync(parameters, context);
  }
}

double fullest_load_s(const LayerTable& table, const Configuration& configuration,
                      std::span<const StageSync> syncs) {
  const auto steps = static_cast<double>(configuration.num_micro_batches);
  // Gradients of chunks follow their own last passes, of which so many come in a row.
  const double last_passes = configuration.schedule == ScheduleKind::interleaved
                                 ? std::min<double>(configuration.pp, steps)
                                 : 1;
  double most_s = 0;
  for (std::size_t kind = 0; kind < syncs.size(); ++kind) {
    const double layers = table.fullest_count(kind, configuration.pp);
    const LayerCost& cost = table.kinds[kind];
    const StageSync& sync = syncs[kind];
    const double forward_s = layers * cost.forward.total_s();
    const double backward_s = layers * (cost.recompute.total_s() + cost.backward_input.total_s() +
                                        cost.backward_weight.total_s());
    const double gather_s = sync.parameter_sync_s;
    const double reduce_s = sync.gradient_sync_s;
    double load_s = sync.optimizer_s;
    if (configuration.zero == Zero::parameters) {
      load_s +=
          steps * (std::max(forward_s, gather_s) + std::max({backward_s, gather_s, reduce_s}));
    } else if (configuration.zero == Zero::gradients) {
      load_s += steps * (forward_s + std::max(backward_s, reduce_s)) +
                std::max(0.0, gather_s - forward_s);
    } else {
      load_s += steps * (forward_s + backward_s) + std::max(0.0, gather_s - forward_s) +
                std::max(0.0, reduce_s - last_passes * backward_s);
    }
    most_s = std::max(most_s, load_s);
  }
  return most_s * kBelowRounding;
}

double split_bound_s(const ChainJob& chain, LayerTables& tables, const Configuration& split,
                     std::int64_t global_batch, std::span<const int> micro_batches,
                     std::span<const TensorSharding> forms) {
  double least_s = kInfinity;
  Configuration configuration = split;
  std::vector<StageSync> syncs;
  for (const AxisOrder order : {AxisOrder::pipeline_outermost, AxisOrder::data_outermost}) {
    if (order == AxisOrder::data_outermost && (split.pp == 1 || split.dp == 1)) continue;
    configuration.order = order;
    DataParallelContext context =
        data_parallel_context(to_parallelism(configuration), chain.job->precision, *chain.system,
                              chain.job->trainer.does);
    // Of the ZeRO stages that shard the optimizer, the first takes least time, but for kernels that
    // add gradients up, which are left out where those are sharded.
    for (const Zero zero : {Zero::optimizer, Zero::none, Zero::gradients}) {
      if (zero == Zero::gradients && chain.job->trainer.does.fused_accumulation) continue;
      configuration.zero = zero;
      context.zero = zero_around(zero);
      for (const TensorSharding& form : forms) {
        configuration = with_form(configuration, form);
        syncs.clear();  // The same whatever the micro-batch.
        for (const int micro_batch : micro_batches) {
          configuration.micro_batch = micro_batch;
          const std::int64_t steps = global_batch / split.dp / micro_batch;
          configuration.num_micro_batches = steps;
          configuration.schedule =
              steps % split.pp == 0 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
          const LayerTable& table = tables.sums_at(configuration);
          if (syncs.empty()) fill_fullest_syncs(table, split.pp, context, syncs);
          const double even_s = (static_cast<double>(steps) * table.time_s() +
                                 optimizer_share(chain, table, configuration).all_s) /
                                split.pp;
          least_s = std::min(least_s, std::max(even_s * kBelowRounding,
                                               fullest_load_s(table, configuration, syncs)));
        }
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
