#include "braid/planners/assess.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

namespace braid {

ChainJob chain_job(const Job& job, const System& system) {
  ChainJob chain;
  chain.job = &job;
  chain.system = &system;
  const Graph& graph = *job.graph;
  const auto samples = static_cast<double>(graph.samples);
  // Sum of the edges that are open after each layer, by differences.
  std::vector<double> change(graph.layers.size() + 1, 0.0);
  for (const LayerEdge& edge : layer_edges(graph)) {
    chain.edges.push_back({edge.source, edge.target, edge.bytes / samples});
    change[static_cast<std::size_t>(edge.source)] += edge.bytes / samples;
    change[static_cast<std::size_t>(edge.target)] -= edge.bytes / samples;
  }
  double open = 0;
  chain.least_cut_bytes = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l + 1 < graph.layers.size(); ++l) {
    open = std::max(0.0, open + change[l]);
    chain.least_cut_bytes = std::min(chain.least_cut_bytes, open);
  }
  if (graph.layers.size() < 2) chain.least_cut_bytes = 0;
  return chain;
}

double configuration_bound_s(const ChainJob& chain, LayerTables& tables,
                             const Configuration& configuration) {
  (void)chain;
  LayerTable& table = tables.at(configuration);
  const std::int64_t p = configuration.pp;
  const std::int64_t m = configuration.num_micro_batches;
  const double sum_s = table.time_s();
  const double slowest_s = tables.min_max_s(table, configuration.pp);
  const auto steps = static_cast<double>(m);
  switch (configuration.schedule) {
    case ScheduleKind::one_f_one_b: {
      // The paths of one_f_one_b_path_s, each at its least over all partitions.
      const std::int64_t dives = (m - 1) / p;
      double longest = static_cast<double>(dives) * sum_s;
      if (m > p) longest = std::max(longest, sum_s + static_cast<double>(m - p - 1) * slowest_s);
      longest = std::max(longest, (steps - 1) * slowest_s * table.least_backward_share);
      return std::max(sum_s + longest, steps * slowest_s);
    }
    case ScheduleKind::gpipe:
      return sum_s + (steps - 1) * slowest_s;
    case ScheduleKind::interleaved:
      return steps * sum_s / static_cast<double>(p);
  }
  return 0;
}

namespace {

/// Least time to hand over from each stage to the next, wherever the cut between them is.
void fill_handovers(const ChainJob& chain, const Configuration& configuration,
                    const Parallelism& parallel, std::vector<double>& handover_s) {
  const double bytes = boundary_bytes({0, 0, chain.least_cut_bytes}, parallel);
  handover_s.clear();
  for (int s = 0; s + 1 < configuration.pp; ++s) {
    handover_s.push_back(transfer_time_s(parallel, *chain.system, s, s + 1, bytes));
  }
}

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

ChunkTotals range_totals(const LayerTable& table, const Graph& graph, Range range) {
  ChunkTotals totals;
  for (std::int32_t l = range.begin; l < range.end;) {
    const std::int32_t kind = graph.layers[static_cast<std::size_t>(l)].kind;
    std::int32_t last = l + 1;
    while (last < range.end && graph.layers[static_cast<std::size_t>(last)].kind == kind) ++last;
    totals.add(table.kinds[static_cast<std::size_t>(kind)], last - l);
    l = last;
  }
  return totals;
}

/// Totals of all chunks, stage by stage: chunk c of stage s is number s·vp + c.
void fill_totals(const LayerTable& table, const Graph& graph, const Configuration& configuration,
                 const Ends& ends, std::vector<ChunkTotals>& totals) {
  totals.clear();
  for (int s = 0; s < configuration.pp; ++s) {
    for (int c = 0; c < configuration.vp; ++c) {
      const std::size_t piece = piece_number(configuration, s, c);
      totals.push_back(range_totals(table, graph, piece_range(ends, piece)));
    }
  }
}

std::span<const ChunkTotals> stage_of(const std::vector<ChunkTotals>& totals,
                                      const Configuration& configuration, int stage) {
  const auto vp = static_cast<std::size_t>(configuration.vp);
  return std::span(totals).subspan(static_cast<std::size_t>(stage) * vp, vp);
}

/// Fullest stage of the assignment in `totals`.
void find_tightest(const Configuration& configuration, const DataParallelContext& context,
                   const std::vector<ChunkTotals>& totals, Assessment& assessment) {
  for (int s = 0; s < configuration.pp; ++s) {
    const std::int64_t in_flight =
        in_flight_chunks(configuration.schedule, configuration.pp, s, configuration.vp,
                         configuration.num_micro_batches);
    const double bytes =
        memory_of(stage_of(totals, configuration, s), in_flight, context).device_total();
    if (bytes > assessment.needed_bytes) {
      assessment.needed_bytes = bytes;
      assessment.tightest_stage = s;
    }
  }
}

/// The longest, over all stages, of: the first chunks before it down and up once, and all of its
/// work.
double busy_path_s(const Configuration& configuration, const std::vector<ChunkTotals>& totals,
                   std::span<const double> handover_s) {
  double longest_s = 0;
  double before_s = 0;
  for (int s = 0; s < configuration.pp; ++s) {
    double work_s = 0;
    for (const ChunkTotals& chunk : stage_of(totals, configuration, s)) work_s += chunk.time_s();
    longest_s = std::max(longest_s,
                         before_s + static_cast<double>(configuration.num_micro_batches) * work_s);
    if (s + 1 == configuration.pp) break;
    before_s += stage_of(totals, configuration, s).front().time_s() +
                2 * handover_s[static_cast<std::size_t>(s)];
  }
  return longest_s;
}

/// Stage of each layer's chunk, for edges that skip stages.
std::size_t piece_of(const Ends& ends, std::int32_t layer) {
  return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), layer) - ends.begin());
}

void fill_transfers(const ChainJob& chain, const Configuration& configuration,
                    const Parallelism& parallel, const Ends& ends,
                    std::vector<EdgeLoad>& transfers) {
  transfers.clear();
  for (const ProfileEdge& edge : chain.edges) {
    const std::size_t from = piece_of(ends, edge.source);
    const std::size_t to = piece_of(ends, edge.target);
    if (from == to) continue;
    ChunkEdge part;
    part.source_stage = static_cast<std::int32_t>(from) % configuration.pp;
    part.source_chunk = static_cast<std::int32_t>(from) / configuration.pp;
    part.target_stage = static_cast<std::int32_t>(to) % configuration.pp;
    part.target_chunk = static_cast<std::int32_t>(to) / configuration.pp;
    part.bytes = boundary_bytes(edge, parallel);
    const auto same = std::find_if(transfers.begin(), transfers.end(), [&](const EdgeLoad& load) {
      return load.edge.source_stage == part.source_stage &&
             load.edge.source_chunk == part.source_chunk &&
             load.edge.target_stage == part.target_stage &&
             load.edge.target_chunk == part.target_chunk;
    });
    if (same == transfers.end()) {
      transfers.push_back({part, 0});
    } else {
      same->edge.bytes += part.bytes;
    }
  }
  std::sort(transfers.begin(), transfers.end(), [](const EdgeLoad& a, const EdgeLoad& b) {
    return std::tie(a.edge.source_stage, a.edge.source_chunk, a.edge.target_stage,
                    a.edge.target_chunk) < std::tie(b.edge.source_stage, b.edge.source_chunk,
                                                    b.edge.target_stage, b.edge.target_chunk);
  });
  for (EdgeLoad& load : transfers) {
    if (load.edge.source_stage != load.edge.target_stage) {
      load.transfer_s = transfer_time_s(parallel, *chain.system, load.edge.source_stage,
                                        load.edge.target_stage, load.edge.bytes);
    }
  }
}

}  // namespace

namespace {

/// Simulates the assignment whose chunks are in scratch.totals.
double time_totals_s(const ChainJob& chain, const Configuration& configuration,
                     const Parallelism& parallel, const DataParallelContext& context,
                     const Ends& ends, AssessmentScratch& scratch) {
  scratch.loads.clear();
  for (int s = 0; s < configuration.pp; ++s) {
    scratch.loads.push_back(load_of(stage_of(scratch.totals, configuration, s), context));
  }
  fill_transfers(chain, configuration, parallel, ends, scratch.transfers);
  return pipeline_time_s(configuration.schedule, scratch.loads, scratch.transfers,
                         configuration.num_micro_batches, scratch.pipeline);
}

}  // namespace

namespace {

/// Least time that the first stage, whichever layers it takes, spends after the last backward pass:
/// exposed gradients and optimizer. A first stage of more layers has more of both to do, but more
/// backward pass to hide behind.
double least_tail_s(const ChainJob& chain, const LayerTable& table,
                    const Configuration& configuration) {
  const Job& job = *chain.job;
  const Parallelism parallel = to_parallelism(configuration);
  const auto context = data_parallel_context(parallel, job.precision, *chain.system);
  const auto most = static_cast<std::int32_t>(table.chain.size()) - configuration.pp + 1;
  double least_s = std::numeric_limits<double>::infinity();
  for (std::int32_t end = 1; end <= most; ++end) {
    const ChunkTotals totals = range_totals(table, *job.graph, {0, end});
    const StageLoad load = load_of(std::span(&totals, 1), context);
    const double tail_s = exposed_gradient_sync_s(load.gradient_sync_s, load.chunks[0].backward_s(),
                                                  load.sync_buckets) +
                          load.optimizer_s;
    least_s = std::min(least_s, tail_s);
  }
  return least_s;
}

}  // namespace

bool improve_assignment(const ChainJob& chain, LayerTables& tables,
                        const Configuration& configuration, std::int64_t most, double& time_s,
                        Ends& best_ends, std::int64_t& timed, AssessmentScratch& scratch) {
  const Job& job = *chain.job;
  const LayerTable& table = tables.at(configuration);
  const Parallelism parallel = to_parallelism(configuration);
  const auto context = data_parallel_context(parallel, job.precision, *chain.system);
  const MemoryForm memory = memory_form(context, usable_bytes(chain.system->groups.front().chip));
  fill_handovers(chain, configuration, parallel, scratch.handover_s);
  const double tail_s = least_tail_s(chain, table, configuration);
  const std::vector<double> handover_s = scratch.handover_s;
  return for_each_partition_below(
      table.chain, handover_s, configuration.num_micro_batches, memory, time_s - tail_s, most,
      [&](const Ends& ends) {
        fill_totals(table, *job.graph, configuration, ends, scratch.totals);
        const double found_s =
            time_totals_s(chain, configuration, parallel, context, ends, scratch);
        ++timed;
        if (found_s < time_s) {
          time_s = found_s;
          best_ends = ends;
        }
      });
}

Assessment assess(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double cutoff_s, AssessmentScratch& scratch) {
  const Job& job = *chain.job;
  const Chip& chip = chain.system->groups.front().chip;
  LayerTable& table = tables.at(configuration);
  const Parallelism parallel = to_parallelism(configuration);
  Assessment assessment;
  fill_handovers(chain, configuration, parallel, scratch.handover_s);

  const auto context = data_parallel_context(parallel, job.precision, *chain.system);
  const auto take = [&](Ends ends) {
    assessment.ends = std::move(ends);
    fill_totals(table, *job.graph, configuration, assessment.ends, scratch.totals);
  };
  const int pieces = configuration.pp * configuration.vp;
  if (configuration.schedule == ScheduleKind::one_f_one_b) {
    auto partition =
        partition_one_f_one_b(table.chain, scratch.handover_s, configuration.num_micro_batches,
                              memory_form(context, usable_bytes(chip)));
    assessment.memory_bound = !partition || partition->memory_bound;
    assessment.feasible = partition.has_value();
    if (!partition) {
      take(*partition_min_max(table.chain, pieces));
      find_tightest(configuration, context, scratch.totals, assessment);
      return assessment;
    }
    assessment.path_s = partition->path_s;
    if (assessment.path_s >= cutoff_s) return assessment;
    take(std::move(partition->ends));
  } else {
    take(*partition_min_max(table.chain, pieces));
    assessment.path_s = std::max(busy_path_s(configuration, scratch.totals, scratch.handover_s),
                                 configuration_bound_s(chain, tables, configuration));
    assessment.feasible = true;
    if (assessment.path_s >= cutoff_s) return assessment;
    find_tightest(configuration, context, scratch.totals, assessment);
    assessment.feasible = assessment.needed_bytes <= usable_bytes(chip);
    assessment.memory_bound = !assessment.feasible;
    if (!assessment.feasible) return assessment;
  }
  assessment.iteration_time_s =
      time_totals_s(chain, configuration, parallel, context, assessment.ends, scratch);
  return assessment;
}

Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                const Ends& ends, const std::string& planner) {
  const Job& job = *chain.job;
  const Graph& graph = *job.graph;
  const LayerTable& table = tables.at(configuration);
  Plan plan;
  plan.planner = planner;
  plan.model = graph.name;
  plan.model_source = job.model_source;
  plan.model_parameters = static_cast<double>(parameter_count(graph));
  plan.shape = model_shape(graph);
  plan.seq_len = graph.seq_len;
  plan.global_batch = job.global_batch;
  plan.precision = job.precision;
  plan.parallel = to_parallelism(configuration);
  plan.system = *chain.system;

  plan.profile.model = graph.name;
  plan.profile.chip = chain.system->groups.front().chip.name;
  plan.profile.provenance = "estimated";
  plan.profile.seq_len = graph.seq_len;
  plan.profile.edges = chain.edges;
  for (const Layer& layer : graph.layers) plan.profile.layers.push_back({layer.name, layer.kind});
  for (const LayerCost& cost : table.kinds) {
    Option option;
    option.how = to_execution(configuration);
    option.name = name_of(option.how);
    option.cost = cost;
    plan.profile.kinds.push_back({option});
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
