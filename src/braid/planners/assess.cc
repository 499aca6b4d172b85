#include "braid/planners/assess.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <tuple>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/planners/assignment_bound.h"
#include "braid/planners/job_layers.h"

namespace braid {

namespace {

/// Layers of piece `piece`: [begin, end).
struct Range {
  std::int32_t begin = 0, end = 0;
};
Range piece_range(const Ends& ends, std::size_t piece) {
  return {piece == 0 ? 0 : ends[piece - 1], ends[piece]};
}

/// Place of a stage's chunk in model order.
std::size_t piece_number(const Configuration& configuration, int stage, int chunk) {
  return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(configuration.pp) +
         static_cast<std::size_t>(stage);
}

void lay_out(const ChainJob& chain, const LayerTable& table, const Configuration& configuration,
             const Ends& ends, Layout& layout) {
  fill_layout(chain.kind_of_layer, table.kinds, configuration.pp, configuration.vp, ends, layout);
}

/// Least time to hand over from each stage to the next, wherever the cut between them is.
void fill_handovers(const ChainJob& chain, const Configuration& configuration,
                    AssessmentScratch& scratch) {
  const double bytes = boundary_bytes({0, 0, chain.least_hop_bytes}, to_parallelism(configuration));
  scratch.evaluator.fill_handovers(configuration, bytes, scratch.handover_s);
}

/// The longest, over all stages, of: the first chunks before it down and up once (where they must
/// come before it), and all of its work.
double busy_path_s(const ChainJob& chain, const Configuration& configuration, const Layout& layout,
                   std::span<const double> handover_s) {
  const auto time_of = [&](std::int64_t chunk) {
    const auto kind = layout.kind_of_chunk[static_cast<std::size_t>(chunk)];
    return layout.chunk_kinds[static_cast<std::size_t>(kind)].time_s();
  };
  double longest_s = 0;
  double before_s = 0;
  for (int s = 0; s < configuration.pp; ++s) {
    double work_s = 0;
    for (int c = 0; c < configuration.vp; ++c) {
      work_s += time_of(std::int64_t{c} * configuration.pp + s);
    }
    longest_s = std::max(longest_s,
                         before_s + static_cast<double>(configuration.num_micro_batches) * work_s);
    if (s + 1 == configuration.pp) break;
    if (chain.branched) continue;
    before_s += time_of(s) + 2 * handover_s[static_cast<std::size_t>(s)];
  }
  return longest_s;
}

/// Least time that the first stage, whichever layers it takes, spends after the last backward pass:
/// exposed gradients and optimizer. A first stage of more layers has more of both to do, but more
/// backward pass to hide behind.
double least_tail_s(const LayerTable& table, const Configuration& configuration,
                    std::span<const std::int32_t> kind_of_layer,
                    const DataParallelContext& context) {
  const auto most = static_cast<std::int32_t>(table.chain.size()) - configuration.pp + 1;
  double least_s = kInfinity;
  ChunkTotals totals;
  for (std::int32_t end = 1; end <= most; ++end) {
    const auto kind = kind_of_layer[static_cast<std::size_t>(end - 1)];
    totals.add(table.kinds[static_cast<std::size_t>(kind)], 1);
    const StageLoad load = load_of(std::span(&totals, 1), context);
    least_s = std::min(least_s, tail_s(load.sync, load.chunks[0].backward_s()));
  }
  return least_s;
}

}  // namespace

bool improve_assignment(const ChainJob& chain, LayerTables& tables,
                        const Configuration& configuration, std::int64_t most,
                        std::int64_t most_of_more, double& time_s, Ends& best_ends,
                        std::int64_t& timed, AssessmentScratch& scratch) {
  const LayerTable& table = tables.at(configuration);
  const DataParallelContext& context = scratch.evaluator.context(configuration);
  const MemoryForm memory = memory_form(context, usable_bytes(chain.system->groups.front().chip));
  fill_handovers(chain, configuration, scratch);
  const OptimizerShare optimizer = optimizer_share(chain, table, configuration);
  PartitionLimits limits;
  limits.most = most;
  limits.most_of_more = most_of_more;
  limits.load_below_s = time_s;
  limits.optimizer_s_per_dense_parameter = optimizer.s_per_dense_parameter;
  limits.optimizer_s_per_expert_parameter = optimizer.s_per_expert_parameter;
  if (!chain.branched) {
    limits.path_below_s = time_s -
                          least_tail_s(table, configuration, chain.kind_of_layer, context) -
                          scratch.evaluator.least_shared_gradient_sync_s(configuration);
  }
  const std::vector<double> handover_s = scratch.handover_s;
  return for_each_partition_below(table.chain, handover_s, configuration.num_micro_batches, memory,
                                  limits, [&](const Ends& ends) {
                                    lay_out(chain, table, configuration, ends, scratch.layout);
                                    const double found_s =
                                        scratch.evaluator.time_s(configuration, scratch.layout);
                                    ++timed;
                                    if (found_s < time_s) {
                                      time_s = found_s;
                                      best_ends = ends;
                                    }
                                  });
}

LeastMemory least_memory(LayerTables& tables, const ConfigurationRange& range,
                         AssessmentScratch& scratch) {
  const Configuration& first = range.configuration;
  const LayerTable& table = tables.sums_at(first);
  const auto in_flight_at = [&](std::int32_t vp) {
    return static_cast<double>(
        in_flight_chunks(first.schedule, first.pp, first.pp - 1, vp, first.num_micro_batches));
  };
  // The fullest of a stage's chunks stashes no less than their mean. With vp, chunks in flight grow
  // and the least of each falls, so that what is on the device moves one way only.
  const auto mean_stash_bytes = [&](std::int32_t vp) {
    const double in_flight = in_flight_at(vp);
    return ((table.stash_bytes - table.offloaded_bytes) * in_flight +
            table.offloaded_bytes * std::min(in_flight, 2.0)) /
           vp;
  };
  const double in_flight = in_flight_at(first.vp);
  // One of so many chunks, at the most, has its even share of the layers of a kind, rounded up.
  const std::int32_t chunks = first.pp * range.most_vp;
  double stash_bytes = mean_stash_bytes(first.vp);
  LeastMemory least;
  least.configuration = first;
  if (!range.is_single()) {
    const double at_last = mean_stash_bytes(range.most_vp);
    if (at_last < stash_bytes) {
      stash_bytes = at_last;
      least.configuration.vp = range.most_vp;
    }
  }
  const auto least_of = [&](const DataParallelContext& context) {
    const MemoryForm form = memory_form(context, 0);
    const double mean_bytes = (table.dense_parameters * form.per_dense_parameter +
                               table.expert_parameters * form.per_expert_parameter + stash_bytes) /
                              first.pp;
    double chunk_bytes = 0;
    for (std::size_t kind = 0; kind < table.layer_of_kind.size(); ++kind) {
      RunSums sums;
      sums.add(table.layer_of_kind[kind]);
      const std::int32_t layers = table.fullest_count(kind, chunks);
      for (double RunSums::*sum : {&RunSums::dense_parameters, &RunSums::expert_parameters,
                                   &RunSums::stash_bytes, &RunSums::offloaded_bytes}) {
        sums.*sum *= layers;
      }
      chunk_bytes = std::max(chunk_bytes, device_bytes(sums, in_flight, form));
    }
    return std::max(mean_bytes, chunk_bytes);
  };
  Configuration without_optimizer = first;
  without_optimizer.offload_optimizer = true;
  least.without_optimizer_bytes = least_of(scratch.evaluator.context(without_optimizer));
  least.device_bytes = least_of(scratch.evaluator.context(first));
  return least;
}

namespace {

Ends even_split(const LayerTable& table, const Configuration& configuration) {
  Ends ends;
  table.even.split(configuration.pp * configuration.vp, &ends);
  return ends;
}

}  // namespace

Evaluator::Memory even_memory(const ChainJob& chain, LayerTables& tables,
                              const Configuration& configuration, AssessmentScratch& scratch) {
  LayerTable& table = tables.at(configuration);
  const auto key = static_cast<std::uint64_t>(configuration.pp) << 32U |
                   static_cast<std::uint32_t>(configuration.vp);
  const auto [entry, is_new] = table.even_stages.try_emplace(key);
  if (is_new) {
    lay_out(chain, table, configuration, even_split(table, configuration), scratch.layout);
    entry->second = scratch.layout.stage_kinds;
  }
  scratch.even.stage_kinds = entry->second;
  return scratch.evaluator.memory(configuration, scratch.even);
}

Assessment assess(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double cutoff_s, AssessmentScratch& scratch) {
  const double available_bytes = usable_bytes(chain.system->groups.front().chip);
  LayerTable& table = tables.at(configuration);
  Evaluator& evaluator = scratch.evaluator;
  Layout& layout = scratch.layout;
  Assessment assessment;
  const auto fits_evenly = [&] {
    const Evaluator::Memory memory = even_memory(chain, tables, configuration, scratch);
    assessment.tightest_stage = memory.tightest_stage;
    assessment.needed_bytes = memory.needed_bytes;
    assessment.needed_without_optimizer_bytes = memory.needed_without_optimizer_bytes;
    return memory.needed_bytes <= available_bytes && memory.host_fits;
  };
  if (configuration.schedule == ScheduleKind::one_f_one_b) {
    fill_handovers(chain, configuration, scratch);
    auto partition =
        partition_one_f_one_b(table.chain, scratch.handover_s, configuration.num_micro_batches,
                              memory_form(evaluator.context(configuration), available_bytes));
    assessment.memory_bound = !partition || partition->memory_bound;
    assessment.feasible = partition.has_value();
    if (!partition) {
      fits_evenly();
      return assessment;
    }
    assessment.path_s = path_bound_s(chain, tables, configuration, partition->path_s);
    // Where the optimizer may take longer than filling the pipeline, it has a say.
    const OptimizerShare optimizer = optimizer_share(chain, table, configuration);
    const double passes_s = static_cast<double>(configuration.num_micro_batches) *
                            tables.min_max_s(table, configuration.pp);
    Ends least_loaded;
    if (passes_s + optimizer.all_s > assessment.path_s) {
      assessment.path_s =
          std::max(assessment.path_s, least_load_s(table, configuration, optimizer, least_loaded));
    }
    if (assessment.path_s >= cutoff_s) return assessment;
    assessment.ends = std::move(partition->ends);
    lay_out(chain, table, configuration, assessment.ends, layout);
    assessment.iteration_time_s = evaluator.time_s(configuration, layout);
    if (least_loaded.empty() || least_loaded == assessment.ends ||
        assessment.iteration_time_s <= assessment.path_s) {
      return assessment;
    }
    lay_out(chain, table, configuration, least_loaded, layout);
    const Evaluator::Memory memory = evaluator.memory(configuration, layout);
    if (memory.needed_bytes > available_bytes || !memory.host_fits) return assessment;
    const double loaded_s = evaluator.time_s(configuration, layout);
    if (loaded_s < assessment.iteration_time_s) {
      assessment.iteration_time_s = loaded_s;
      assessment.ends = std::move(least_loaded);
    }
    return assessment;
  }
  assessment.feasible = fits_evenly();
  assessment.memory_bound = !assessment.feasible;
  if (!assessment.feasible) return assessment;
  fill_handovers(chain, configuration, scratch);
  assessment.ends = even_split(table, configuration);
  lay_out(chain, table, configuration, assessment.ends, layout);
  assessment.path_s = std::max(busy_path_s(chain, configuration, layout, scratch.handover_s),
                               configuration_bound_s(chain, tables, configuration));
  if (assessment.path_s >= cutoff_s) return assessment;
  assessment.iteration_time_s = evaluator.time_s(configuration, layout);
  return assessment;
}

Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                const Ends& ends, const std::string& planner) {
  const Job& job = *chain.job;
  const LayerTable& table = tables.at(configuration);
  Plan plan = blank_plan(job, *chain.layers, *chain.system);
  plan.planner = planner;
  plan.parallel = to_parallelism(configuration);
  plan.profile.chip = chain.system->groups.front().chip.name;
  for (std::size_t k = 0; k < table.kinds.size(); ++k) {
    Option option = tables.option(configuration, k);
    option.cost = table.kinds[k];
    plan.profile.kinds[k].push_back(std::move(option));
  }
  for (int s = 0; s < configuration.pp; ++s) {
    Stage stage;
    stage.dp = configuration.dp;
    stage.tp = configuration.tp;
    stage.cp = configuration.cp;
    stage.devices = stage_devices(plan.parallel, s);
    for (int c = 0; c < configuration.vp; ++c) {
      const Range range = piece_range(ends, piece_number(configuration, s, c));
      Chunk chunk;
      for (std::int32_t l = range.begin; l < range.end; ++l) {
        chunk.layers.push_back(l);
        chunk.options.push_back(0);
      }
      stage.chunks.push_back(std::move(chunk));
    }
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

}  // namespace braid
