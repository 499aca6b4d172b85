#include "braid/planners/job/assess.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/plan/node_replicas.h"
#include "braid/planners/job/assignment_bound.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/plan_builder.h"

namespace braid {

namespace {

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

double time_of(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
               const Ends& ends, double cutoff_s, AssessmentScratch& scratch) {
  lay_out(chain, tables.sums_at(configuration), configuration, ends, scratch.layout);
  const Evaluator::Memory memory = scratch.evaluator.memory(configuration, scratch.layout);
  if (!memory.host_fits() ||
      memory.needed_bytes > usable_bytes(chain.system->groups.front().chip)) {
    return kInfinity;
  }
  fill_handovers(chain, configuration, scratch);
  const double time_s =
      scratch.evaluator.time_s(configuration, scratch.layout, scratch.handover_s, cutoff_s);
  return time_s < cutoff_s ? time_s : kInfinity;
}

Improvement improve_assignment(const ChainJob& chain, LayerTables& tables,
                               const Configuration& configuration, const ImprovementLimits& limits,
                               AssessmentScratch& scratch) {
  const LayerTable& table = tables.at(configuration);
  const DataParallelContext& context = scratch.evaluator.context(configuration);
  const double available_bytes = usable_bytes(chain.system->groups.front().chip);
  MemoryForm memory = memory_form(context, available_bytes);
  if (!limits.within_memory) memory.available_bytes = memory.host_available_bytes = kInfinity;
  fill_handovers(chain, configuration, scratch);
  const OptimizerShare optimizer = optimizer_share(chain, table, configuration);
  PartitionLimits partitions;
  partitions.most = limits.most;
  partitions.most_of_more = limits.within_memory ? limits.most_of_more : 0;
  partitions.load_below_s = limits.below_s;
  partitions.optimizer_s_per_dense_parameter = optimizer.s_per_dense_parameter;
  partitions.optimizer_s_per_expert_parameter = optimizer.s_per_expert_parameter;
  if (!chain.branched) {
    partitions.path_below_s = limits.below_s -
                              least_tail_s(table, configuration, chain.kind_of_layer, context) -
                              scratch.evaluator.least_shared_gradient_sync_s(configuration);
  }
  Improvement found;
  const std::vector<double> handover_s = scratch.handover_s;
  const Handovers handovers{handover_s, chain.job->trainer.does.blocking_sends};
  const auto look_at = [&](const Ends& ends) {
    lay_out(chain, table, configuration, ends, scratch.layout);
    const double below_s = std::min(found.time_s, limits.below_s);
    const double time_s =
        scratch.evaluator.time_s(configuration, scratch.layout, handover_s, below_s);
    ++found.timed;
    if (time_s >= below_s) return;
    if (!limits.within_memory) {
      const Evaluator::Memory needed = scratch.evaluator.memory(configuration, scratch.layout);
      if (needed.needed_bytes > available_bytes || !needed.host_fits()) {
        found.memory_bound = true;
        return;
      }
    }
    found.time_s = time_s;
    found.ends = ends;
  };
  found.complete = for_each_partition_below(table.chain, handovers, configuration.num_micro_batches,
                                            memory, partitions, look_at);
  if (found.complete || limits.within_memory) return found;
  // Too many: those that fit may be fewer.
  ImprovementLimits fitting = limits;
  fitting.within_memory = true;
  found = improve_assignment(chain, tables, configuration, fitting, scratch);
  found.memory_bound = true;
  return found;
}

namespace {

/// With these last chunks, of interleaved stages.
MemoryFloor floor_with(const LayerTable& table, const ConfigurationRange& range,
                       const LastChunks& last, AssessmentScratch& scratch) {
  const Configuration& first = range.configuration;
  const bool interleaved = first.vp > 1;
  const double kept_bytes = table.stash_bytes - table.offloaded_bytes;
  const auto in_flight = static_cast<double>(
      in_flight_chunks(first.schedule, first.pp, first.pp - 1, 1, first.num_micro_batches));
  double stash_bytes = kept_bytes * in_flight + slot_bytes(table.offloaded_bytes, in_flight);
  const auto pp = static_cast<double>(first.pp);
  if (interleaved) {
    stash_bytes = pp * (kept_bytes - last.kept_bytes) + last.kept_bytes +
                  2 * table.offloaded_bytes / range.most_vp;
  }
  /// Of the stage with so many layers of a kind, or of its chunk.
  const auto bytes_with = [&](std::size_t kind, const MemoryForm& form) {
    const std::int32_t layers = table.fullest_count(kind, first.pp);
    RunSums sums;
    sums.add(table.layer_of_kind[kind]);
    sums.dense_parameters *= layers;
    sums.expert_parameters *= layers;
    const double kept = sums.stash_bytes - sums.offloaded_bytes;
    if (!interleaved) {
      return standing_bytes(sums, form) +
             layers * (kept * in_flight + slot_bytes(sums.offloaded_bytes, in_flight));
    }
    const std::int32_t in_last = std::min(layers, last.layers);
    const std::int32_t of_a_chunk = (layers + range.most_vp - 1) / range.most_vp;
    return standing_bytes(sums, form) + kept * (pp * (layers - in_last) + in_last) +
           2 * sums.offloaded_bytes * of_a_chunk;
  };
  const auto least_of = [&](const DataParallelContext& context) {
    const MemoryForm form = memory_form(context, 0);
    double bytes = (table.dense_parameters * form.per_dense_parameter +
                    table.expert_parameters * form.per_expert_parameter + stash_bytes) /
                   pp;
    for (std::size_t kind = 0; kind < table.layer_of_kind.size(); ++kind) {
      bytes = std::max(bytes, bytes_with(kind, form));
    }
    return bytes;
  };
  MemoryFloor least;
  least.configuration = first;
  Configuration without_optimizer = first;
  without_optimizer.offload_optimizer = true;
  least.without_optimizer_bytes = least_of(scratch.evaluator.context(without_optimizer));
  least.device_bytes = least_of(scratch.evaluator.context(first));
  return least;
}

}  // namespace

MemoryFloor memory_floor(const ChainJob& chain, LayerTables& tables,
                         const ConfigurationRange& range, AssessmentScratch& scratch) {
  const LayerTable& table = tables.sums_at(range.configuration);
  LastChunks last;
  if (range.configuration.vp > 1) last = last_chunks(chain, tables, range.configuration);
  return floor_with(table, range, last, scratch);
}

MemoryFloor memory_floor_at_any_times(const ChainJob& chain, LayerTables& tables,
                                      const ConfigurationRange& range, AssessmentScratch& scratch) {
  const LayerTable& table = tables.sums_at(range.configuration);
  const auto layers = static_cast<std::int32_t>(chain.kind_of_layer.size());
  return floor_with(table, range, {table.stash_bytes - table.offloaded_bytes, layers}, scratch);
}

Evaluator::Memory tried_memory(const ChainJob& chain, LayerTables& tables,
                               const Configuration& configuration, AssessmentScratch& scratch) {
  Evaluator::Memory least;
  const LayerTable& table = tables.sums_at(configuration);
  for (const TriedLayout& tried : tried_layouts(chain, tables, configuration)) {
    fill_tried_costs(tried, table.kinds, configuration, scratch.layout);
    const Evaluator::Memory memory = scratch.evaluator.memory(
        configuration, std::span<const Layout::StageKind>(scratch.layout.stage_kinds));
    if (least.tightest_stage < 0 || memory.needed_bytes < least.needed_bytes) least = memory;
  }
  return least;
}

namespace {

/// Looks at the assignments that are tried for a configuration: each one's memory and time only
/// where the assessment depends on it.
class TriedAssessment {
 public:
  TriedAssessment(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double cutoff_s, AssessmentScratch& scratch)
      : chain_(chain),
        configuration_(configuration),
        cutoff_s_(cutoff_s),
        scratch_(scratch),
        available_bytes_(usable_bytes(chain.system->groups.front().chip)),
        kinds_(tables.sums_at(configuration).kinds),
        tried_(tried_layouts(chain, tables, configuration)) {}

  /// The fastest that fits, where one is faster than the cutoff.
  Assessment fastest() {
    Assessment assessment;
    if (tried_.empty()) return assessment;
    bool any = false;
    for (std::size_t i = 0; i < tried_.size(); ++i) any = any || !is_left_out(i);
    if (!any) {
      assessment.feasible = true;
      return assessment;
    }
    double cutoff_s = cutoff_s_;
    for (std::size_t i = 0; i < tried_.size(); ++i) {
      if (is_left_out(i) || !fits(i)) continue;
      assessment.feasible = true;
      const double found_s = time_s(i, cutoff_s);
      if (found_s >= cutoff_s) continue;
      cutoff_s = assessment.iteration_time_s = found_s;
      assessment.ends = tried_[i].shape->ends;
    }
    assessment.memory_bound = !assessment.feasible;
    for (std::size_t i = 0; i < tried_.size() && !assessment.memory_bound; ++i) {
      if (is_left_out(i) || fits(i)) continue;
      assessment.memory_bound = time_s(i, cutoff_s) < cutoff_s;
    }
    if (assessment.memory_bound) note_memory(assessment);
    return assessment;
  }

 private:
  void fill_costs_of(std::size_t i) {
    if (filled_ == i) return;
    filled_ = i;
    fill_tried_costs(tried_[i], kinds_, configuration_, scratch_.layout);
  }

  const Evaluator::Memory& memory(std::size_t i) {
    std::optional<Evaluator::Memory>& known = memory_.at(i);
    if (!known) {
      fill_costs_of(i);
      known = scratch_.evaluator.memory(
          configuration_, std::span<const Layout::StageKind>(scratch_.layout.stage_kinds));
    }
    return *known;
  }

  /// A bound shows it not to be faster than the cutoff: whether it fits changes nothing.
  bool is_left_out(std::size_t i) const {
    return tried_[i].least_s(configuration_.num_micro_batches) >= cutoff_s_;
  }

  bool fits(std::size_t i) {
    return memory(i).needed_bytes <= available_bytes_ && memory(i).host_fits();
  }

  /// Infinite where a bound shows that it is not below `cutoff_s`.
  double time_s(std::size_t i, double cutoff_s) {
    if (!has_handovers_) fill_handovers(chain_, configuration_, scratch_);
    has_handovers_ = true;
    fill_costs_of(i);
    static_cast<LayoutShape&>(scratch_.layout) = *tried_[i].shape;
    return scratch_.evaluator.time_s(configuration_, scratch_.layout, scratch_.handover_s,
                                     cutoff_s);
  }

  void note_memory(Assessment& assessment) {
    assessment.needed_without_optimizer_bytes = assessment.needed_bytes = kInfinity;
    for (std::size_t i = 0; i < tried_.size(); ++i) {
      if (is_left_out(i)) continue;
      const Evaluator::Memory& one = memory(i);
      assessment.needed_without_optimizer_bytes =
          std::min(assessment.needed_without_optimizer_bytes, one.needed_without_optimizer_bytes);
      if (one.needed_bytes >= assessment.needed_bytes) continue;
      assessment.tightest_stage = one.tightest_stage;
      assessment.needed_bytes = one.needed_bytes;
    }
  }

  const ChainJob& chain_;
  const Configuration& configuration_;
  const double cutoff_s_;
  AssessmentScratch& scratch_;
  const double available_bytes_;
  const std::span<const LayerCost> kinds_;
  const std::span<const TriedLayout> tried_;
  std::array<std::optional<Evaluator::Memory>, std::tuple_size_v<decltype(KnownTrials::layouts)>>
      memory_;
  std::optional<std::size_t> filled_;  ///< Whose costs the scratch layout has.
  bool has_handovers_ = false;
};

}  // namespace

bool may_be_faster(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                   double cutoff_s) {
  return std::ranges::any_of(tried_layouts(chain, tables, configuration),
                             [&](const TriedLayout& one) {
                               return one.least_s(configuration.num_micro_batches) < cutoff_s;
                             });
}

Assessment assess(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double cutoff_s, AssessmentScratch& scratch) {
  const double available_bytes = usable_bytes(chain.system->groups.front().chip);
  if (has_few_assignments(chain, configuration)) {
    return TriedAssessment(chain, tables, configuration, cutoff_s, scratch).fastest();
  }
  LayerTable& table = tables.at(configuration);
  Evaluator& evaluator = scratch.evaluator;
  Layout& layout = scratch.layout;
  Assessment assessment;
  fill_handovers(chain, configuration, scratch);
  auto partition = partition_one_f_one_b(
      table.chain, handovers_of(chain, scratch), configuration.num_micro_batches,
      memory_form(evaluator.context(configuration), available_bytes));
  assessment.memory_bound = !partition || partition->memory_bound;
  assessment.feasible = partition.has_value();
  if (!partition) {
    const Evaluator::Memory memory = tried_memory(chain, tables, configuration, scratch);
    assessment.tightest_stage = memory.tightest_stage;
    assessment.needed_bytes = memory.needed_bytes;
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
  assessment.iteration_time_s =
      evaluator.time_s(configuration, layout, scratch.handover_s, cutoff_s);
  if (least_loaded.empty() || least_loaded == assessment.ends ||
      assessment.iteration_time_s <= assessment.path_s) {
    return assessment;
  }
  lay_out(chain, table, configuration, least_loaded, layout);
  const Evaluator::Memory memory = evaluator.memory(configuration, layout);
  if (memory.needed_bytes > available_bytes || !memory.host_fits()) return assessment;
  const double loaded_s = evaluator.time_s(configuration, layout, scratch.handover_s,
                                           std::min(cutoff_s, assessment.iteration_time_s));
  if (loaded_s < assessment.iteration_time_s) {
    assessment.iteration_time_s = loaded_s;
    assessment.ends = std::move(least_loaded);
  }
  return assessment;
}

std::vector<std::vector<std::int32_t>> chunks_of(const Ends& ends) {
  std::vector<std::vector<std::int32_t>> chunks;
  chunks.reserve(ends.size());
  std::int32_t begin = 0;
  for (const std::int32_t end : ends) {
    auto& layers = chunks.emplace_back(static_cast<std::size_t>(end - begin));
    std::iota(layers.begin(), layers.end(), begin);
    begin = end;
  }
  return chunks;
}

Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                std::span<const std::vector<std::int32_t>> chunks, const std::string& planner) {
  const Job& job = *chain.job;
  PlanBuilder builder(blank_plan(job, *chain.layers, *chain.system), planner);
  Plan& plan = builder.plan();
  plan.parallel = to_parallelism(configuration);
  if (job.trainer.does.node_replicas) {
    plan.parallel.replicate = node_replicas(*chain.system, plan.parallel);
  }
  plan.profile.chip = chain.system->groups.front().chip.name;
  const std::int32_t option = builder.option(tables, configuration);
  for (int s = 0; s < configuration.pp; ++s) {
    Stage& stage = builder.add_stage(configuration, stage_devices(plan.parallel, s));
    for (int c = 0; c < configuration.vp; ++c) {
      add_layers(chunks[piece_number(configuration, s, c)], option, stage.chunks.emplace_back());
    }
  }
  if (chain.weight_shapes != nullptr) add_gradient_placeholders(*job.graph, plan);
  return builder.take();
}

Plan build_plan(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                const Ends& ends, const std::string& planner) {
  return build_plan(chain, tables, configuration, chunks_of(ends), planner);
}

}  // namespace braid
