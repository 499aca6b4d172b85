#include "braid/planners/uniform/family_bounds.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/plan/totals.h"
#include "braid/planners/job/assignment_bound.h"

namespace braid {
namespace {

/// Communication of all layers, between experts or all of it.
double exchanges_s(const LayerTable& table, bool experts, bool all) {
  double sum_s = 0;
  for (std::size_t kind = 0; kind < table.kinds.size(); ++kind) {
    const LayerCost& cost = table.kinds[kind];
    for (const PassTime& pass :
         {cost.forward, cost.recompute, cost.backward_input, cost.backward_weight}) {
      if (experts || all) sum_s += table.count_of_kind[kind] * pass.ep_comm_s;
      if (all) sum_s += table.count_of_kind[kind] * (pass.tp_comm_s + pass.cp_comm_s);
    }
  }
  return sum_s;
}

}  // namespace

FamilyBounds family_bounds(const ChainJob& chain, LayerTables& tables, const Configuration& family,
                           std::span<const int> micro_batches, const SpaceLimits& limits,
                           const SpaceOptions& options) {
  Configuration configuration = family;
  const std::int64_t inner = inner_expert_axis(family);
  configuration.dp = static_cast<int>(std::max<std::int64_t>(1, family.ep / inner));
  // Where a plan's groups lie depends on its pipeline if they are of experts and reach past the
  // axes in front of the data-parallel one, and on the number of its devices if they reach over the
  // edges of nodes.
  const bool even = layer_groups_lie_evenly(to_parallelism(configuration), *chain.system);
  const Precision& precision = chain.job->precision;
  FamilyBounds bounds;
  bounds.sample_s = bounds.optimizer_s = bounds.state_bytes = bounds.stash_bytes = kInfinity;
  for (const TensorSharding& form : shardings_of_family(family, limits, options)) {
    configuration = with_form(configuration, form);
    for (const int micro_batch : micro_batches) {
      configuration.micro_batch = micro_batch;
      const LayerTable& table = tables.sums_at(configuration);
      const double time_s = table.time_s() - exchanges_s(table, family.ep > inner, !even);
      bounds.sample_s = std::min(bounds.sample_s, time_s / micro_batch * kBelowTolerance);
    }
    configuration.zero = Zero::optimizer;  // No other takes less time for the optimizer.
    // What shardings leave a rank may differ from one micro-batch to another where they are found.
    const bool manual = form.sharding == ShardingKind::manual;
    for (const int micro_batch : micro_batches.first(manual ? 1 : micro_batches.size())) {
      configuration.micro_batch = micro_batch;
      const double share_s =
          optimizer_share(chain, tables.sums_at(configuration), configuration).all_s *
          kBelowTolerance;
      bounds.optimizer_s = std::min(bounds.optimizer_s, share_s * configuration.dp);
      // State is spread over all copies and the context axis, experts over their group as well.
      Configuration smallest = configuration;
      smallest.recompute = options.recompute.value_or(Recompute::full);
      const LayerTable& table = tables.sums_at(smallest);
      const double parameter_bytes = bytes_per_element(precision.weight) +
                                     bytes_per_element(precision.gradient) +
                                     precision.optimizer_bytes_per_parameter;
      const double expert_ranks = static_cast<double>(family.ep) * family.cp / inner;
      const double parameters = table.dense_parameters + table.expert_parameters * expert_ranks;
      bounds.state_bytes = std::min(bounds.state_bytes, parameters * parameter_bytes / family.cp);
      bounds.stash_bytes = std::min(bounds.stash_bytes, table.stash_bytes);
    }
  }
  if (chain.system->groups.front().chip.host && options.allow_offload) {
    bounds.state_bytes = bounds.stash_bytes = 0;
  }
  return bounds;
}

}  // namespace braid
