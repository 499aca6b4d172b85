#include "braid/plan/totals.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "braid/plan/memory_form.h"
#include "braid/system/named_groups.h"

namespace braid {

void ChunkTotals::add(const LayerCost& cost, int count) {
  const auto add_scaled = [count](PassTime& sum, const PassTime& pass) {
    sum.compute_s += pass.compute_s * count;
    sum.tp_comm_s += pass.tp_comm_s * count;
    sum.cp_comm_s += pass.cp_comm_s * count;
    sum.ep_comm_s += pass.ep_comm_s * count;
    sum.offload_s += pass.offload_s * count;
  };
  add_scaled(forward, cost.forward);
  add_scaled(recompute, cost.recompute);
  add_scaled(backward_input, cost.backward_input);
  add_scaled(backward_weight, cost.backward_weight);
  hidden_tp_s += cost.hidden_tp_s * count;
  model_flops += cost.model_flops * count;
  dense_parameters += cost.dense_parameters * count;
  expert_parameters += cost.expert_parameters * count;
  stash_bytes += cost.stash_bytes * count;
  offloaded_bytes += cost.offloaded_bytes * count;
  working_bytes = std::max(working_bytes, cost.working_bytes);
  largest_layer_parameters =
      std::max(largest_layer_parameters, cost.dense_parameters + cost.expert_parameters);
  fixed_bytes += std::max(0.0, cost.fixed_bytes) * count;
  weight_shapes |= cost.weight_shapes;
  gradient_bytes += std::max(0.0, cost.gradient_bytes) * count;
  layers += count;
}

ChunkTotals totals_of(const Profile& profile, const Chunk& chunk) {
  ChunkTotals totals;
  for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
    const Option& option =
        options_of(profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])];
    totals.add(option.cost, 1);
  }
  return totals;
}

std::int64_t stride_of(const Parallelism& parallel, Axis axis) {
  std::int64_t stride = 1;
  for (const Axis inner : parallel.order) {
    if (inner == axis) return stride;
    switch (inner) {
      case Axis::tp:
        stride *= parallel.tp;
        break;
      case Axis::cp:
        stride *= parallel.cp;
        break;
      case Axis::dp:
        stride *= parallel.dp;
        break;
      case Axis::pp:
        stride *= parallel.pp;
        break;
    }
  }
  assert(false && "axis missing from the order");
  return stride;
}

std::int64_t first_device(const Parallelism& parallel, int stage) {
  return stage * stride_of(parallel, Axis::pp);
}

std::vector<std::int64_t> stage_devices(const Parallelism& parallel, int stage) {
  const std::int64_t first = first_device(parallel, stage);
  const std::int64_t tp = stride_of(parallel, Axis::tp);
  const std::int64_t cp = stride_of(parallel, Axis::cp);
  const std::int64_t dp = stride_of(parallel, Axis::dp);
  std::vector<std::int64_t> devices;
  devices.reserve(static_cast<std::size_t>(parallel.devices() / parallel.pp));
  for (int d = 0; d < parallel.dp; ++d) {
    for (int c = 0; c < parallel.cp; ++c) {
      for (int t = 0; t < parallel.tp; ++t) devices.push_back(first + d * dp + c * cp + t * tp);
    }
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

namespace {

/// Distance between the members of a group of `size` ranks of the cp and dp axes, taken from the
/// innermost end. The two axes are neighbours unless the pipeline lies between them; then the group
/// is taken as evenly strided by the wider gap, which no real placement of it beats.
std::int64_t replica_stride(const Parallelism& parallel, std::int64_t size) {
  if (size <= parallel.cp || parallel.dp == 1) return stride_of(parallel, Axis::cp);
  const std::int64_t dp_stride = stride_of(parallel, Axis::dp);
  if (parallel.cp == 1) return dp_stride;
  const std::int64_t cp_stride = stride_of(parallel, Axis::cp);
  const auto [inner, outer] = std::minmax(cp_stride, dp_stride);
  const std::int64_t ranks = cp_stride < dp_stride ? parallel.cp : parallel.dp;
  return outer == inner * ranks ? inner : outer / ranks;
}

/// The same of a group of ranks that experts are spread over: those of tp first where it does not
/// divide them.
std::int64_t expert_stride(const Parallelism& parallel, std::int64_t size) {
  if (!parallel.whole_experts || parallel.tp == 1) return replica_stride(parallel, size);
  const std::int64_t tp_stride = stride_of(parallel, Axis::tp);
  if (size <= parallel.tp) return tp_stride;
  const std::int64_t outer = replica_stride(parallel, size / parallel.tp);
  return outer == tp_stride * parallel.tp ? tp_stride
                                          : std::max<std::int64_t>(1, outer / parallel.tp);
}

}  // namespace

LayerGroups layer_groups(const Parallelism& parallel, std::int64_t devices, const System& system) {
  LayerGroups groups;
  groups.tp = span_of(system, stride_of(parallel, Axis::tp), parallel.tp, devices);
  groups.cp = span_of(system, stride_of(parallel, Axis::cp), parallel.cp, devices);
  groups.ep = span_of(system, expert_stride(parallel, parallel.ep), parallel.ep, devices);
  return groups;
}

bool layer_groups_lie_evenly(const Parallelism& parallel, const System& system) {
  return lies_evenly(system, stride_of(parallel, Axis::tp), parallel.tp) &&
         lies_evenly(system, stride_of(parallel, Axis::cp), parallel.cp) &&
         lies_evenly(system, expert_stride(parallel, parallel.ep), parallel.ep);
}

DataParallelContext data_parallel_context(const Parallelism& parallel, const Precision& precision,
                                          const System& system, const TrainerBehaviour& does) {
  DataParallelContext context;
  context.precision = precision;
  context.zero = parallel.zero;
  context.offload_optimizer = parallel.offload_optimizer;
  context.offload_weights = parallel.offload_weights;
  context.overlap_gradients = does.overlapped_gradients;
  // Of one copy of the state; strides are those of all.
  const std::int64_t replicas =
      std::int64_t{parallel.dp} * parallel.cp / std::int64_t{parallel.replicate};
  context.dense_ranks = static_cast<double>(replicas);
  context.dense_group =
      span_of(system, replica_stride(parallel, replicas), replicas, parallel.devices());
  context.copies = parallel.replicate;
  context.copy_group =
      span_of(system, stride_of(parallel, Axis::dp) * (parallel.dp / parallel.replicate),
              parallel.replicate, parallel.devices());
  const std::int64_t expert_replicas =
      parallel.expert_axis() / parallel.ep / std::int64_t{parallel.replicate};
  context.expert_ranks = static_cast<double>(expert_replicas);
  if (parallel.whole_experts && parallel.tp > 1) {
    const std::int64_t stride =
        expert_stride(parallel, parallel.expert_axis() / parallel.replicate) * parallel.ep;
    context.expert_group = span_of(system, stride, expert_replicas, parallel.devices());
  } else if (parallel.ep == 1) {
    context.expert_group = context.dense_group;
  } else {
    // Members that hold the same experts are ep ranks apart.
    const std::int64_t inner =
        parallel.cp > 1 ? stride_of(parallel, Axis::cp) : stride_of(parallel, Axis::dp);
    context.expert_group =
        span_of(system, inner * parallel.ep, expert_replicas, parallel.devices());
  }
  context.system = &system;
  context.chip = &system.groups.front().chip;
  return context;
}

MemoryBreakdown memory_of(const ChunkTotals& chunk, std::int64_t in_flight,
                          const DataParallelContext& context) {
  return memory_of(std::span(&chunk, 1), stash_peak(chunk.stash(), in_flight), context);
}

MemoryBreakdown memory_of(std::span<const ChunkTotals> chunks, const StashPeak& stashes,
                          const DataParallelContext& context) {
  double dense = 0;
  double expert = 0;
  double fixed = 0;
  double largest_layer = 0;
  MemoryBreakdown memory;
  for (const ChunkTotals& chunk : chunks) {
    dense += chunk.dense_parameters;
    expert += chunk.expert_parameters;
    fixed += chunk.fixed_bytes;
    largest_layer = std::max(largest_layer, chunk.largest_layer_parameters);
    memory.working = std::max(memory.working, chunk.working_bytes);
  }
  const StateBytes state = state_bytes_of(context);
  memory.weights = state.weights.of(dense, expert) + fixed;
  memory.gradients = state.gradients.of(dense, expert);
  memory.optimizer = state.optimizer.of(dense, expert);
  memory.working += largest_layer * state.per_largest_layer_parameter;
  if (state.optimizer_on_host) memory.host += std::exchange(memory.optimizer, 0);
  if (state.weights_on_host) memory.host += std::exchange(memory.weights, 0);
  memory.activations = stashes.device_bytes();
  memory.host += stashes.offloaded_bytes;
  return memory;
}

namespace {

double group_time_s(Collective collective, double dense_bytes, double expert_bytes,
                    const DataParallelContext& context) {
  const auto compute = [&] {
    double time_s = 0;
    if (context.named != nullptr) {
      return named_groups_time_s(collective, dense_bytes, context.named->dense, *context.system) +
             named_groups_time_s(collective, expert_bytes, context.named->expert, *context.system);
    }
    if (dense_bytes > 0 && context.dense_ranks > 1) {
      time_s +=
          collective_time(collective, dense_bytes, context.dense_group, *context.system).time_s;
    }
    if (expert_bytes > 0 && context.expert_ranks > 1) {
      time_s +=
          collective_time(collective, expert_bytes, context.expert_group, *context.system).time_s;
    }
    return time_s;
  };
  if (context.memo == nullptr) return compute();
  return context.memo->time_s(collective, dense_bytes, expert_bytes, compute);
}

}  // namespace

double optimizer_time_s(double parameters, const Precision& precision, const Chip& chip,
                        bool offloaded) {
  if (parameters <= 0 || chip.memory.bytes_per_s <= 0) return 0;
  const double state_bytes = parameters * precision.optimizer_bytes_per_parameter;
  const double gradient_bytes = parameters * bytes_per_element(precision.gradient);
  const double weight_bytes = parameters * bytes_per_element(precision.weight);
  const double traffic = 2 * state_bytes + gradient_bytes + weight_bytes;
  const double device_s =
      chip.efficiency.kernel_launch_s +
      traffic / (chip.memory.bytes_per_s * chip.efficiency.memory_peak_fraction);
  if (!offloaded || !chip.host) return device_s;
  // Gradients go down while weights come up (full duplex); the state is read and written there. No
  // host is taken to update faster than the device would.
  const double host_s =
      (std::max(gradient_bytes, weight_bytes) + 2 * state_bytes) / chip.host->bytes_per_s;
  return std::max(device_s, host_s);
}

ChunkLoad chunk_load(const ChunkTotals& chunk, const DataParallelContext& context) {
  const Precision& precision = context.precision;
  ChunkLoad load;
  load.forward = chunk.forward;
  load.recompute = chunk.recompute;
  load.backward_input = chunk.backward_input;
  load.backward_weight = chunk.backward_weight;
  load.hidden_tp_s = chunk.hidden_tp_s;
  load.model_flops = chunk.model_flops;
  if (context.zero < Zero::gradients) return load;
  const int layers = std::max(1, chunk.layers);
  const double backward_s = chunk.time_s() - chunk.forward.total_s();
  const double loss = context.chip->efficiency.overlap_loss;
  // Layer by layer, one ahead: what does not fit behind the layers' compute is exposed.
  const auto by_layer_s = [&](Collective collective, double bytes_per_parameter) {
    return layers * group_time_s(collective, chunk.dense_parameters / layers * bytes_per_parameter,
                                 chunk.expert_parameters / layers * bytes_per_parameter, context);
  };
  if (context.zero == Zero::parameters) {
    const double gather_s = by_layer_s(Collective::all_gather, bytes_per_element(precision.weight));
    load.dp_forward_s = pass_sync_s(gather_s, chunk.forward.total_s(), layers, loss);
    load.dp_backward_s = pass_sync_s(gather_s, backward_s, layers, loss);
  }
  const double scatter_s =
      by_layer_s(Collective::reduce_scatter, bytes_per_element(precision.gradient));
  load.dp_backward_s += pass_sync_s(scatter_s, backward_s, layers, loss);
  return load;
}

void StageParameters::add(const ChunkTotals& chunk, int chunks) {
  dense += chunks * chunk.dense_parameters;
  expert += chunks * chunk.expert_parameters;
  stated_gradient_bytes += chunks * chunk.gradient_bytes;
  layers += chunks * chunk.layers;
}

namespace {

/// Synchronisation of gradients around the iteration, in so many equal buckets.
double gradients_s(const StageParameters& parameters, double buckets,
                   const DataParallelContext& context) {
  const double gradient_bytes = bytes_per_element(context.precision.gradient);
  if (context.copies > 1) {
    const double shard =
        parameters.dense / context.dense_ranks + parameters.expert / context.expert_ranks;
    return collective_time(Collective::all_reduce, shard * gradient_bytes, context.copy_group,
                           *context.system)
        .time_s;
  }
  if (context.zero > Zero::optimizer) return 0;
  const double dense_bytes = parameters.dense * gradient_bytes;
  const double expert_bytes = parameters.expert * gradient_bytes;
  if (context.zero == Zero::optimizer) {
    return buckets * group_time_s(Collective::reduce_scatter, dense_bytes / buckets,
                                  expert_bytes / buckets, context);
  }
  return buckets * group_time_s(Collective::all_reduce,
                                (dense_bytes + parameters.stated_gradient_bytes) / buckets,
                                expert_bytes / buckets, context);
}

}  // namespace

StageSync stage_sync(const StageParameters& parameters, const DataParallelContext& context) {
  const double weight_bytes = bytes_per_element(context.precision.weight);
  const double dense = parameters.dense;
  const double expert = parameters.expert;
  StageSync sync;
  // Copies sum their shards' gradients when all are there.
  sync.buckets =
      context.overlap_gradients && context.copies == 1 ? std::max(1, parameters.layers) : 1;
  const double buckets = sync.buckets;
  sync.gradient_sync_s = gradients_s(parameters, buckets, context);
  if (context.zero == Zero::optimizer || context.zero == Zero::gradients) {
    sync.parameter_sync_s =
        buckets * group_time_s(Collective::all_gather, dense * weight_bytes / buckets,
                               expert * weight_bytes / buckets, context);
  }
  const bool shard_optimizer = context.zero >= Zero::optimizer;
  sync.optimizer_s =
      optimizer_time_s(shard_optimizer ? dense / context.dense_ranks + expert / context.expert_ranks
                                       : dense + expert,
                       context.precision, *context.chip, context.offload_optimizer);
  return sync;
}

void sync_by_chunk(std::span<const ChunkGradients> chunks, std::int64_t last_passes,
                   const DataParallelContext& context, StageSync& sync) {
  const bool is_one = chunks.size() == 1 && chunks.front().chunks == 1;
  if (chunks.empty() || is_one || !context.overlap_gradients || sync.gradient_sync_s <= 0) return;
  sync.gradient_sync_s = 0;
  sync.earlier_gradient_sync_s = 0;
  sync.earlier_buckets = 0;
  // By how much the gradients so far outlast the last pass of the chunk looked at.
  double late_s = 0;
  for (std::size_t c = chunks.size(); c-- > 0;) {
    const ChunkGradients& alike = chunks[c];
    const int count = c > 0 ? alike.chunks : alike.chunks - 1;  // All but the stage's first.
    if (count == 0) continue;
    const int buckets = std::max(1, alike.parameters.layers);
    const double chunk_s = gradients_s(alike.parameters, buckets, context);
    // Each chunk's gradients follow those before, or their own last pass.
    const double step_s = chunk_s - static_cast<double>(last_passes) * alike.backward_s;
    const double own_s = std::max(0.0, exposed_gradient_sync_s(chunk_s, alike.backward_s, buckets));
    late_s = std::max(late_s + count * step_s, own_s + std::max(0.0, (count - 1) * step_s));
    sync.earlier_gradient_sync_s += count * chunk_s;
    sync.earlier_buckets += count * buckets;
  }
  const ChunkGradients& last = chunks.front();
  const int buckets = std::max(1, last.parameters.layers);
  const double hidden_s = static_cast<double>(last_passes - 1) * last.backward_s;
  sync.earlier_late_s = std::max(0.0, late_s - hidden_s);
  sync.gradient_sync_s =
      sync.earlier_gradient_sync_s + gradients_s(last.parameters, buckets, context);
}

std::int64_t last_passes_of(ScheduleKind schedule, int pp, std::int64_t num_micro_batches) {
  if (schedule == ScheduleKind::gpipe) return num_micro_batches;
  return std::min<std::int64_t>(pp, num_micro_batches);
}

StageLoad load_of(std::span<const ChunkTotals> chunks, const DataParallelContext& context,
                  std::int64_t last_passes) {
  StageLoad load;
  load.chunks.reserve(chunks.size());
  StageParameters parameters;
  std::vector<ChunkGradients> gradients;
  gradients.reserve(chunks.size());
  for (const ChunkTotals& chunk : chunks) {
    load.chunks.push_back(chunk_load(chunk, context));
    parameters.add(chunk);
    gradients.push_back({{}, load.chunks.back().backward_s()});
    gradients.back().parameters.add(chunk);
  }
  load.sync = stage_sync(parameters, context);
  sync_by_chunk(gradients, last_passes, context, load.sync);
  return load;
}

double exposed_gradient_sync_s(double sync_s, double backward_s, int buckets) {
  if (sync_s <= 0) return 0;
  const double n = buckets;
  return std::max(sync_s / n, sync_s - backward_s * (n - 1) / n);
}

double exposed_gradient_sync_s(const StageSync& sync, double backward_s) {
  const double last_s = sync.gradient_sync_s - sync.earlier_gradient_sync_s;
  const double own_s =
      exposed_gradient_sync_s(last_s, backward_s, sync.buckets - sync.earlier_buckets);
  if (sync.earlier_buckets == 0) return own_s;
  return std::max(own_s, sync.earlier_late_s - backward_s + last_s);
}

}  // namespace braid
