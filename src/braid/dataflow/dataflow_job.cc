#include "braid/dataflow/dataflow_job.h"

#include <algorithm>
#include <cmath>

#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

bool is_training(const KernelGraph& graph) {
  return std::any_of(graph.kernels.begin(), graph.kernels.end(),
                     [](const Kernel& kernel) { return kernel.backward; });
}

/// A kernel's sizes on one chip where the workload, not a search, divides it.
ShardShape fixed_shape(const Kernel& kernel, const DataflowSetup& setup) {
  ShardShape shape{kernel.outer, kernel.m, kernel.k, kernel.n};
  if (setup.job.workload == DataflowWorkload::linpack) {
    const std::int64_t lines = setup.fabric.dimensions[0].size;
    shape.m = ceil_div(shape.m, lines);
    shape.k = ceil_div(shape.k, setup.chips / lines);
  } else if (setup.job.workload == DataflowWorkload::fourier) {
    shape.n = ceil_div(shape.n, setup.chips);
  }
  return shape;
}

double message_s(const KernelMessage& message, const DataflowSetup& setup, const JobRules& rules,
                 double micro_batches) {
  const auto chips = static_cast<double>(setup.chips);
  switch (message.transfer) {
    case KernelTransfer::all_to_all: {
      const double pairs = setup.job.workload == DataflowWorkload::fourier ? chips * chips : 1;
      return exchange_s(message.bytes / pairs, setup.fabric);
    }
    case KernelTransfer::all_reduce_per_batch:
      if (!rules.plain_pipeline) {
        return rules.collectives.all_reduce_passes * message.bytes / micro_batches * 1e-9;
      }
      return all_reduce_s(message.bytes, setup.fabric, rules.collectives) / micro_batches;
    case KernelTransfer::all_reduce:
      return all_reduce_s(message.bytes, setup.fabric, rules.collectives);
    case KernelTransfer::all_gather:
      return all_reduce_s(message.bytes, setup.fabric, rules.collectives) / 2;
    case KernelTransfer::broadcast: {
      // Across x's lines, each with its share, over the slowest of the other dimensions.
      const std::vector<FabricDimension>& dimensions = setup.fabric.dimensions;
      double slowest = 0;
      for (std::size_t i = 1; i < dimensions.size(); ++i) {
        slowest = std::max(slowest, message.bytes / static_cast<double>(dimensions[0].size) /
                                        dimensions[i].bytes_per_s);
      }
      return slowest;
    }
    case KernelTransfer::point_to_point: {
      const FabricDimension& links = setup.fabric.dimensions[0];
      const double lines = chips / static_cast<double>(links.size);
      return message.bytes / lines / links.bytes_per_s;
    }
  }
  return 0;
}

// Messages of different kinds use different links at once, except that gradients come on top.
double messages_s(const Kernel& kernel, const DataflowSetup& setup, const JobRules& rules,
                  double micro_batches) {
  double longest = 0, further = 0;
  for (const KernelMessage& message : kernel.messages) {
    const double seconds = message_s(message, setup, rules, micro_batches);
    if (message.transfer == KernelTransfer::all_reduce_per_batch) {
      further += seconds;
    } else {
      longest = std::max(longest, seconds);
    }
  }
  return longest + further;
}

ChipWork fixed_work(const DataflowSetup& setup, const JobRules& rules) {
  const double micro_batches = job_time(setup, 0, rules).micro_batches;
  const KernelGraph& graph = setup.graph;
  ChipWork work;
  work.kernels.reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) {
    ChipKernel mine = chip_kernel(kernel, fixed_shape(kernel, setup), graph.word_bytes);
    // The matrix and the signal are counted whole, in the machine's memory.
    if (setup.job.workload != DataflowWorkload::recommendation) mine.weight_bytes = 0;
    mine.network_s = messages_s(kernel, setup, rules, micro_batches);
    for (const KernelMessage& message : kernel.messages) mine.network_bytes += message.bytes;
    work.kernels.push_back(std::move(mine));
  }
  const std::vector<std::int32_t> levels = kernel_levels(graph.kernels.size(), graph.tensors);
  work.tensors.reserve(graph.tensors.size());
  for (const KernelTensor& tensor : graph.tensors) {
    const ChipKernel& writer = work.kernels[static_cast<std::size_t>(tensor.from)];
    ChipTensor mine;
    mine.from = tensor.from;
    mine.to = tensor.to;
    mine.bytes =
        static_cast<double>(writer.rows) * static_cast<double>(writer.columns) * graph.word_bytes;
    mine.tile_bytes = mine.bytes;
    mine.buffers = levels[static_cast<std::size_t>(tensor.to)] -
                   levels[static_cast<std::size_t>(tensor.from)] + 1;
    work.tensors.push_back(mine);
  }
  return work;
}

}  // namespace

JobRules published_job_rules(const DataflowSetup& setup) {
  JobRules rules;
  rules.collectives = {setup.all_reduce_passes, setup.fabric.latency_s > 0};
  rules.time_sharding = false;
  rules.joint_sharding = false;
  rules.training_state = false;
  rules.plain_pipeline = false;
  return rules;
}

JobRules default_job_rules() { return {}; }

MappingRules default_mapping_rules(const DataflowSetup& setup) {
  MappingRules rules;
  rules.overlap = setup.rules.overlap;
  rules.compute_fraction = setup.rules.compute_fraction;
  rules.sram_limit = setup.rules.sram_limit;
  return rules;
}

Sharding choose_sharding(const DataflowSetup& setup, const JobRules& rules) {
  // Where no dimension divides kernels there is nothing to choose, but much to look at.
  if (setup.job.workload != DataflowWorkload::layers || shard_axes(setup.fabric).empty()) {
    return Sharding(setup.graph.kernels.size(), KernelDim::none);
  }
  ShardingGoal goal;
  goal.bytes_only = !rules.time_sharding && !rules.grid_sharding;
  goal.elementwise_s_per_flop = 1 / (setup.rules.compute_fraction * peak_flops_per_s(setup.chip));
  goal.by_axis = rules.grid_sharding;
  if (goal.by_axis) goal.matrix_s_per_flop = goal.elementwise_s_per_flop;
  goal.s_per_byte = 0;
  return find_sharding(setup.graph, setup.fabric, rules.collectives, goal).dims;
}

void add_state(const DataflowSetup& setup, const JobRules& rules, ChipWork& work) {
  const auto chips = static_cast<double>(setup.chips);
  const DataflowJob& job = setup.job;
  work.resident_bytes = job.resident_bytes / chips;
  if (job.workload == DataflowWorkload::linpack || job.workload == DataflowWorkload::fourier) {
    return;
  }
  const std::int64_t stages = degree_of(setup.fabric, FabricRole::pipeline);
  const auto layers = static_cast<double>(job.whole_model ? 1 : ceil_div(job.layers, stages));
  double passes[2] = {0, 0};
  for (const ChipKernel& kernel : work.kernels) passes[kernel.backward] += kernel.weight_bytes;
  // Backward kernels multiply by the forward ones' parameters; of a whole model a stage may have
  // the backward kernel alone.
  const double weights = !rules.training_state ? passes[0] + passes[1]
                         : job.whole_model     ? std::max(passes[0], passes[1])
                                               : passes[0];
  work.live_copies = static_cast<double>(job.micro_batch);
  if (!rules.training_state || !is_training(setup.graph)) {
    work.resident_bytes += weights * layers;
    return;
  }
  work.resident_bytes +=
      weights / setup.graph.word_bytes * layers * (2 * setup.graph.word_bytes + kAdamStateBytes);
  std::vector<double> stash(work.kernels.size(), 0);
  for (const ChipTensor& tensor : work.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    if (!work.kernels[from].backward &&
        work.kernels[static_cast<std::size_t>(tensor.to)].backward) {
      stash[from] = tensor.bytes;
    }
  }
  double stashed = 0;
  for (const double bytes : stash) stashed += bytes;
  const double data = static_cast<double>(degree_of(setup.fabric, FabricRole::data));
  const double micro_batches =
      static_cast<double>(job.global_batch) / data / static_cast<double>(job.micro_batch);
  const double in_flight = std::min(static_cast<double>(stages), micro_batches) * layers - 1;
  work.resident_bytes += stashed * work.live_copies * std::max(0.0, in_flight);
}

ChipWork chip_work(const DataflowSetup& setup, const Sharding& dims, const JobRules& rules) {
  ChipWork work;
  if (setup.job.workload == DataflowWorkload::layers) {
    const double micro_batches = job_time(setup, 0, rules).micro_batches;
    work = shard_kernels(setup.graph, dims, setup.fabric, rules.collectives, micro_batches,
                         setup.job.tile);
  } else {
    work = fixed_work(setup, rules);
  }
  add_state(setup, rules, work);
  return work;
}

JobTime job_time(const DataflowSetup& setup, double layer_s, const JobRules& rules) {
  const DataflowJob& job = setup.job;
  JobTime time;
  for (const Kernel& kernel : setup.graph.kernels) time.flops += kernel_flops(kernel);
  const auto batch = static_cast<double>(job.global_batch);
  const auto micro = static_cast<double>(job.micro_batch);
  const double rate = peak_flops_per_s(setup.chip) * static_cast<double>(setup.chips);
  switch (job.workload) {
    case DataflowWorkload::linpack:
    case DataflowWorkload::fourier:
      time.time_s = layer_s;
      break;
    case DataflowWorkload::recommendation:
      time.data = static_cast<double>(setup.chips);
      time.micro_batches = batch / time.data / micro;
      time.time_s = layer_s * batch / time.data;
      time.flops *= batch;
      break;
    case DataflowWorkload::layers: {
      time.tensor = static_cast<double>(degree_of(setup.fabric, FabricRole::tensor));
      time.pipeline = static_cast<double>(degree_of(setup.fabric, FabricRole::pipeline));
      time.data = static_cast<double>(degree_of(setup.fabric, FabricRole::data));
      // Stages of a whole model are as if of one layer each.
      const double layers = job.whole_model ? time.pipeline : static_cast<double>(job.layers);
      time.layers_per_stage = std::ceil(layers / time.pipeline);
      time.micro_batches = batch / time.data / micro;
      time.flops *= (job.whole_model ? 1 : layers) * batch;
      const bool interleaved = !rules.plain_pipeline && time.layers_per_stage >= 2;
      const double chunks = interleaved ? time.layers_per_stage - 1 : 1;
      time.bubble = (time.pipeline - 1) / (time.micro_batches * chunks);
      const double sample_bytes = static_cast<double>(job.hidden) *
                                  static_cast<double>(job.seq_len) * setup.graph.word_bytes;
      const double ways = is_training(setup.graph) ? 2 : 1;
      if (rules.plain_pipeline && job.whole_model) {
        time.message_s = 0;  // In the stages' times.
      } else if (rules.plain_pipeline) {
        time.message_s =
            (time.micro_batches + time.pipeline - 1) *
            pipeline_hop_s(ways * sample_bytes * micro, setup.fabric, rules.collectives);
      } else if (ways == 2) {
        time.message_s = pipeline_hop_s(ways * sample_bytes * layers, setup.fabric,
                                        {rules.collectives.all_reduce_passes, false});
      }
      time.time_s =
          layer_s * (1 + time.bubble) * time.layers_per_stage * batch / time.data + time.message_s;
      break;
    }
  }
  if (time.time_s > 0) time.utilisation = time.flops / (time.time_s * rate);
  return time;
}

MachineCost machine_cost(const DataflowSetup& setup) {
  const DataflowPrices& prices = setup.prices;
  const auto chips = static_cast<double>(setup.chips);
  const double dram_gb = setup.chip.dram_bytes_per_s / 1e9;
  MachineCost cost{chips * (prices.chip_usd + dram_gb * prices.dram_usd),
                   chips * (prices.chip_w + dram_gb * prices.dram_w)};
  const std::vector<FabricDimension>& dimensions = setup.fabric.dimensions;
  const bool torus = std::all_of(dimensions.begin(), dimensions.end(), [](const auto& dimension) {
    return dimension.shape == FabricShape::ring;
  });
  const bool one = dimensions.size() == 1;
  double beyond = chips;  // Chips that one unit of this dimension stands for.
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const FabricDimension& dimension = dimensions[i];
    const double bandwidth = dimension.bytes_per_s / 1e9;
    const auto size = static_cast<double>(dimension.size);
    const double others = chips / size;
    beyond /= size;
    const bool inner = i + 1 < dimensions.size();
    // Lines of this dimension: those of a torus are everywhere, of others only beyond it.
    const double lines = torus ? others : beyond;
    double links = 0, ports = 0;
    switch (dimension.shape) {
      case FabricShape::ring:
        links = lines * size * bandwidth;
        ports = 2 * lines * bandwidth;
        break;
      case FabricShape::switched:
        links = lines * size * bandwidth;
        ports = links;
        break;
      case FabricShape::fully_connected:
        links = lines * size * (size - 1) * bandwidth;
        ports = inner || one ? 0 : size * size * bandwidth;
        break;
    }
    if (setup.chips > 1) {
      cost.usd += prices.link_usd * links;
      cost.watts += prices.link_w[std::min<std::size_t>(i, 2)] * links;
    }
    if (setup.chips > 4) {
      cost.usd += prices.switch_usd * ports;
      cost.watts += prices.switch_w * ports;
    }
  }
  return cost;
}

}  // namespace braid
