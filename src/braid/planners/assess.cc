#include "braid/planners/assess.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

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
      double longest = static_cast<double>((m - 1) / p) * sum_s;
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

void stage_totals(const LayerTable& table, const Graph& graph, const Configuration& configuration,
                  const Ends& ends, int stage, std::vector<ChunkTotals>& totals) {
  totals.clear();
  for (int c = 0; c < configuration.vp; ++c) {
    const auto piece = static_cast<std::size_t>(c * configuration.pp + stage);
    totals.push_back(range_totals(table, graph, piece_range(ends, piece)));
  }
}

/// Fullest stage of a given assignment.
void find_tightest(const ChainJob& chain, const LayerTable& table,
                   const Configuration& configuration, const Parallelism& parallel,
                   const Ends& ends, std::vector<ChunkTotals>& totals, Assessment& assessment) {
  const Job& job = *chain.job;
  for (int s = 0; s < configuration.pp; ++s) {
    stage_totals(table, *job.graph, configuration, ends, s, totals);
    const auto context =
        data_parallel_context(parallel, job.precision, *chain.system, first_device(parallel, s));
    const std::int64_t in_flight =
        in_flight_chunks(configuration.schedule, configuration.pp, s, configuration.vp,
                         configuration.num_micro_batches);
    const double bytes = memory_of(totals, in_flight, context).device_total();
    if (bytes > assessment.needed_bytes) {
      assessment.needed_bytes = bytes;
      assessment.tightest_stage = s;
    }
  }
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

double time_assignment_s(const ChainJob& chain, LayerTables& tables,
                         const Configuration& configuration, const Ends& ends,
                         AssessmentScratch& scratch) {
  const Job& job = *chain.job;
  const LayerTable& table = tables.at(configuration);
  const Parallelism parallel = to_parallelism(configuration);
  scratch.loads.clear();
  for (int s = 0; s < configuration.pp; ++s) {
    stage_totals(table, *job.graph, configuration, ends, s, scratch.totals);
    const auto context =
        data_parallel_context(parallel, job.precision, *chain.system, first_device(parallel, s));
    scratch.loads.push_back(load_of(scratch.totals, context));
  }
  fill_transfers(chain, configuration, parallel, ends, scratch.transfers);
  return pipeline_time_s(configuration.schedule, scratch.loads, scratch.transfers,
                         configuration.num_micro_batches, scratch.pipeline);
}

namespace {

/// Least time that the first stage, whichever layers it takes, spends after the last backward pass:
/// exposed gradients and optimizer. A first stage of more layers has more of both to do, but more
/// backward pass to hide behind.
double least_tail_s(const ChainJob& chain, const LayerTable& table,
                    const Configuration& configuration) {
  const Job& job = *chain.job;
  const Parallelism parallel = to_parallelism(configuration);
  const auto context = data_parallel_context(parallel, job.precision, *chain.system, 0);
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
  const auto context = data_parallel_context(parallel, job.precision, *chain.system, 0);
  const MemoryForm memory = memory_form(context, usable_bytes(chain.system->groups.front().chip));
  fill_handovers(chain, configuration, parallel, scratch.handover_s);
  const double tail_s = least_tail_s(chain, table, configuration);
  const std::vector<double> handover_s = scratch.handover_s;
  return for_each_partition_below(table.chain, handover_s, configuration.num_micro_batches, memory,
                                  time_s - tail_s, most, [&](const Ends& ends) {
                                    const double found_s = time_assignment_s(
                                        chain, tables, configuration, ends, scratch);
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

  const int pieces = configuration.pp * configuration.vp;
  if (configuration.schedule == ScheduleKind::one_f_one_b) {
    const auto context = data_parallel_context(parallel, job.precision, *chain.system, 0);
    const auto partition =
        partition_one_f_one_b(table.chain, scratch.handover_s, configuration.num_micro_batches,
                              memory_form(context, usable_bytes(chip)));
    if (partition) {
      assessment.feasible = true;
      assessment.memory_bound = partition->memory_bound;
      assessment.ends = partition->ends;
      assessment.path_s = partition->path_s;
    } else {
      assessment.memory_bound = true;
      const auto even = partition_min_max(table.chain, pieces);
      find_tightest(chain, table, configuration, parallel, *even, scratch.totals, assessment);
    }
  } else {
    const auto even = partition_min_max(table.chain, pieces);
    find_tightest(chain, table, configuration, parallel, *even, scratch.totals, assessment);
    assessment.feasible = assessment.needed_bytes <= usable_bytes(chip);
    assessment.memory_bound = !assessment.feasible;
    assessment.ends = *even;
    assessment.path_s = configuration_bound_s(chain, tables, configuration);
  }
  if (!assessment.feasible || assessment.path_s >= cutoff_s) return assessment;

  assessment.iteration_time_s =
      time_assignment_s(chain, tables, configuration, assessment.ends, scratch);
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
      const Range range = piece_range(ends, static_cast<std::size_t>(c * configuration.pp + s));
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
