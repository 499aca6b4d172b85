#include "braid/dataflow/staged_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/rounding.h"
#include "braid/chip/partition_time.h"
#include "braid/dataflow/joint_sharding.h"
#include "braid/dataflow/kernel_stages.h"

namespace braid {
namespace {

constexpr int kMostRounds = 4;

bool is_whole(const DataflowPlan& plan) { return !plan.outcome.mapping.partition_of.empty(); }

/// The place of each kernel in a topological order with the forward kernels first.
std::vector<std::int32_t> places_of(const ChipWork& work) {
  return kernel_by_kernel(work).partition_of;
}

/// The kernel that each kernel shares its stage with. Trained in a pipeline, a backward kernel is
/// where the last of the forward kernels is that it reads from, and never behind a kernel that it
/// reads a gradient from; so gradients go back from stage to stage. Each its own otherwise.
std::vector<std::int32_t> stage_mates(const ChipWork& work, bool folded) {
  std::vector<std::int32_t> mates(work.kernels.size());
  std::iota(mates.begin(), mates.end(), 0);
  if (!folded) return mates;
  // Places in the order: the last forward kernel that is read, the first mate of a gradient's.
  const auto last =
      static_cast<std::int32_t>(std::count_if(work.kernels.begin(), work.kernels.end(),
                                              [](const auto& kernel) { return !kernel.backward; }));
  if (last == 0) return mates;
  std::vector<std::int32_t> place = places_of(work);
  std::vector<std::int32_t> order(place.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[static_cast<std::size_t>(place[i])] = static_cast<std::int32_t>(i);
  }
  std::vector<std::int32_t> read(order.size(), -1), limit(order.size(), last - 1);
  std::vector<std::vector<std::int32_t>> readers(order.size());
  for (const ChipTensor& tensor : work.tensors) {
    readers[static_cast<std::size_t>(tensor.from)].push_back(tensor.to);
  }
  for (const std::int32_t kernel : order) {
    const auto k = static_cast<std::size_t>(kernel);
    const bool backward = work.kernels[k].backward;
    if (backward) {
      place[k] = read[k] < 0 ? limit[k] : std::min(read[k], limit[k]);
      mates[k] = order[static_cast<std::size_t>(place[k])];
    }
    for (const std::int32_t reader : readers[k]) {
      const auto r = static_cast<std::size_t>(reader);
      if (backward) {
        limit[r] = std::min(limit[r], place[k]);
      } else if (work.kernels[r].backward) {
        read[r] = std::max(read[r], place[k]);
      }
    }
  }
  return mates;
}

// Times that no mapping of the kernels goes below, in sum; of kernels with their mates.
StageJob stage_job(const DataflowSetup& setup, const DataflowPlanRules& rules, const ChipWork& work,
                   const std::vector<std::int32_t>& mates) {
  const bool folded = rules.job.plain_pipeline;
  StageJob job;
  job.stages = degree_of(setup.fabric, FabricRole::pipeline);
  job.overlap = rules.mapping.overlap;
  job.share_messages = rules.mapping.share_tensors;
  const double rate = rules.mapping.compute_fraction * peak_flops_per_s(setup.chip);
  const double bytes_per_s = std::max(setup.chip.dram_bytes_per_s, setup.chip.spill_bytes_per_s);
  job.kernels.resize(work.kernels.size());
  for (std::size_t i = 0; i < work.kernels.size(); ++i) {
    const ChipKernel& kernel = work.kernels[i];
    StageKernel& mine = job.kernels[static_cast<std::size_t>(mates[i])];
    mine.compute_s += kernel.flops / rate;
    mine.memory_s +=
        (kernel.dram_bytes + (rules.mapping.weight_traffic ? kernel.weight_bytes : 0)) /
        bytes_per_s;
    mine.network_s += kernel.network_s;
    mine.backward = kernel.backward && !folded;
  }
  const auto micro = static_cast<double>(setup.job.micro_batch);
  const std::vector<std::int32_t> places = places_of(work);
  job.message_s.resize(work.kernels.size(), 0);
  for (const ChipTensor& tensor : work.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    std::int32_t low = mates[from], high = mates[static_cast<std::size_t>(tensor.to)];
    job.kernels[static_cast<std::size_t>(high)].network_s += tensor.network_s;
    if (low == high) continue;
    // What goes back wants its reader no later than its writer.
    if (places[static_cast<std::size_t>(low)] > places[static_cast<std::size_t>(high)]) {
      std::swap(low, high);
    }
    job.tensors.push_back({low, high, tensor.from});
    // The published program sends whole tensors.
    const double bytes = rules.job.plain_pipeline
                             ? tensor.bytes
                             : output_elements(setup.graph.kernels[from]) * setup.graph.word_bytes;
    job.message_s[from] =
        pipeline_hop_s(bytes * micro, setup.fabric, rules.job.collectives) / micro;
  }
  return job;
}

/// The stage of each kernel: its mate's.
std::vector<std::int32_t> with_mates(const std::vector<std::int32_t>& stage_of,
                                     const std::vector<std::int32_t>& mates) {
  std::vector<std::int32_t> all;
  all.reserve(mates.size());
  for (const std::int32_t mate : mates) all.push_back(stage_of[static_cast<std::size_t>(mate)]);
  return all;
}

/// What the chips of one stage do, and which kernels of the model these are.
struct StageWork {
  ChipWork work;
  std::vector<std::size_t> kernels;
};

std::vector<StageWork> works_of(const DataflowSetup& setup, const JobRules& rules,
                                const ChipWork& whole, const std::vector<std::int32_t>& stage_of,
                                std::int64_t stages) {
  std::vector<StageWork> works(static_cast<std::size_t>(stages));
  std::vector<std::int32_t> number(whole.kernels.size());
  for (std::size_t i = 0; i < whole.kernels.size(); ++i) {
    StageWork& stage = works[static_cast<std::size_t>(stage_of[i])];
    number[i] = static_cast<std::int32_t>(stage.kernels.size());
    stage.kernels.push_back(i);
    stage.work.kernels.push_back(whole.kernels[i]);
  }
  for (const ChipTensor& tensor : whole.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    ChipWork& work = works[static_cast<std::size_t>(stage_of[to])].work;
    if (stage_of[from] == stage_of[to]) {
      work.tensors.push_back(tensor);
      work.tensors.back().from = number[from];
      work.tensors.back().to = number[to];
    } else {
      ChipKernel& reader = work.kernels[static_cast<std::size_t>(number[to])];
      reader.network_s += tensor.network_s;
      reader.network_bytes += tensor.network_bytes;
    }
  }
  for (StageWork& stage : works) add_state(setup, rules, stage.work);
  return works;
}

// Each kernel for its share of the time that its partition takes.
StageJob weighed_anew(const StageJob& job, const StageJob& alone, const DataflowPlan& plan,
                      const std::vector<std::int32_t>& mates) {
  const std::vector<std::int32_t>& partition_of = plan.outcome.mapping.partition_of;
  std::vector<double> own_s, sums_s(plan.outcome.cost.partitions.size(), 0);
  own_s.reserve(mates.size());
  for (std::size_t i = 0; i < mates.size(); ++i) {
    const StageKernel& kernel = alone.kernels[i];
    own_s.push_back(
        partition_time_s(kernel.compute_s, kernel.memory_s, kernel.network_s, job.overlap));
    sums_s[static_cast<std::size_t>(partition_of[i])] += own_s.back();
  }
  StageJob weighed = job;
  for (StageKernel& kernel : weighed.kernels) {
    kernel.compute_s = kernel.memory_s = kernel.network_s = 0;
  }
  for (std::size_t i = 0; i < mates.size(); ++i) {
    const auto p = static_cast<std::size_t>(partition_of[i]);
    if (sums_s[p] <= 0) continue;
    weighed.kernels[static_cast<std::size_t>(mates[i])].compute_s +=
        own_s[i] / sums_s[p] * plan.outcome.cost.partitions[p].time_s;
  }
  return weighed;
}

/// Maps each stage's kernels; without a mapping where one stage has none.
DataflowPlan map_stages(const DataflowSetup& setup, const DataflowPlanRules& rules,
                        const ChipWork& whole, const StageJob& job,
                        const std::vector<std::int32_t>& stage_of,
                        const std::vector<std::int32_t>& mates) {
  DataflowPlan plan;
  plan.setup = setup;
  plan.work = whole;
  plan.outcome.mapping.partition_of.resize(whole.kernels.size(), 0);
  if (rules.mapping.whole_tiles) plan.outcome.cost.tiles.resize(whole.kernels.size(), 0);
  const std::vector<StageTime> times = stage_times(job, stage_of);
  const std::vector<StageWork> works =
      works_of(setup, rules.job, whole, with_mates(stage_of, mates), job.stages);
  MapperBudget budget = rules.budget;
  budget.partitions = std::max<std::int64_t>(budget.partitions / (kMostRounds * job.stages), 1);
  for (std::size_t s = 0; s < works.size(); ++s) {
    PlannedStage stage;
    stage.first_partition = plan.outcome.cost.partitions.size();
    stage.message_s = times[s].message_s;
    const StageWork& own = works[s];
    if (!own.kernels.empty()) {
      const MappingOutcome mapped = map_work(own.work, setup.chip, rules, budget, {});
      plan.outcome.partitions += mapped.partitions;
      plan.outcome.downsets += mapped.downsets;
      if (mapped.mapping.partition_of.empty()) {
        // Another sharding among stages might fit.
        plan.outcome.status = MappingStatus::exhausted;
        plan.outcome.mapping = {};
        plan.outcome.cost = {};
        plan.outcome.cost.violation = fmt::format(
            "stage {}: {}", s + 1,
            mapped.cost.violation ? *mapped.cost.violation
                                  : std::string("DRAM is too small for what it keeps there"));
        return plan;
      }
      for (std::size_t i = 0; i < own.kernels.size(); ++i) {
        plan.outcome.mapping.partition_of[own.kernels[i]] =
            mapped.mapping.partition_of[i] + static_cast<std::int32_t>(stage.first_partition);
        if (!mapped.cost.tiles.empty()) {
          plan.outcome.cost.tiles[own.kernels[i]] = mapped.cost.tiles[i];
        }
      }
      std::vector<PartitionCost>& all = plan.outcome.cost.partitions;
      all.insert(all.end(), mapped.cost.partitions.begin(), mapped.cost.partitions.end());
      stage.mapped_s = mapped.cost.time_s;
    }
    stage.partitions = plan.outcome.cost.partitions.size() - stage.first_partition;
    // The published program charges messages once a batch.
    stage.time_s = !rules.job.plain_pipeline ? stage.mapped_s
                   : job.overlap == PartitionOverlap::all
                       ? std::max(stage.mapped_s, stage.message_s)
                       : stage.mapped_s + stage.message_s;
    plan.outcome.cost.time_s = std::max(plan.outcome.cost.time_s, stage.time_s);
    plan.stages.push_back(stage);
  }
  plan.time = job_time(setup, plan.outcome.cost.time_s, rules.job);
  return plan;
}

DataflowPlan plan_sharding(const DataflowSetup& setup, const DataflowPlanRules& rules,
                           const Sharding& dims) {
  const ChipWork whole = chip_work(setup, dims, rules.job);
  const std::vector<std::int32_t> mates = stage_mates(whole, rules.job.plain_pipeline);
  const StageJob job = stage_job(setup, rules, whole, mates);
  const StageJob alone = stage_job(setup, rules, whole, stage_mates(whole, false));
  KernelStages stages = find_stages(job);
  StageJob without = job;  // What the bound may count where messages come once a batch.
  for (double& message_s : without.message_s) message_s = 0;
  const double bound_s =
      rules.job.plain_pipeline ? stages.lower_bound_s : find_stages(without).lower_bound_s;
  std::int64_t sets = stages.sets;
  DataflowPlan best = map_stages(setup, rules, whole, job, stages.stage_of, mates);
  DataflowPlan latest = best;
  for (int round = 1; round < kMostRounds && is_whole(latest) && job.stages > 1; ++round) {
    if (best.outcome.cost.time_s <= bound_s * kAboveTolerance) break;
    std::vector<std::int32_t> before = std::move(stages.stage_of);
    stages = find_stages(weighed_anew(job, alone, latest, mates));
    sets += stages.sets;
    if (stages.stage_of == before) break;
    latest = map_stages(setup, rules, whole, job, stages.stage_of, mates);
    if (is_whole(latest) && latest.time.time_s < best.time.time_s) best = latest;
  }
  best.dims = dims;
  best.outcome.partitions += sets;
  if (is_whole(best)) {
    const double time_s = best.outcome.cost.time_s;
    best.outcome.lower_bound_s = std::min(bound_s, time_s);
    best.outcome.status =
        time_s <= bound_s * kAboveTolerance ? MappingStatus::optimal : MappingStatus::feasible;
  }
  return best;
}

}  // namespace

DataflowPlan plan_stages(const DataflowSetup& setup, const DataflowPlanRules& rules,
                         std::span<const Sharding> shardings) {
  assert(setup.job.whole_model && !shardings.empty());
  DataflowPlan best = plan_sharding(setup, rules, shardings[0]);
  for (const Sharding& dims : shardings.subspan(1)) {
    DataflowPlan plan = plan_sharding(setup, rules, dims);
    if (!is_whole(plan)) continue;
    if (!is_whole(best) || plan.time.time_s < best.time.time_s) best = std::move(plan);
  }
  return best;
}

}  // namespace braid
