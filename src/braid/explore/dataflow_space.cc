#include "braid/explore/dataflow_space.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid {
namespace {

template <typename T>
const T& or_last(const std::vector<T>& values, std::size_t index) {
  return values[std::min(index, values.size() - 1)];
}

std::string text_of(const KernelGraph& graph) {
  std::string text = fmt::format("word {}\n", graph.word_bytes);
  for (const Kernel& kernel : graph.kernels) {
    text +=
        fmt::format("kernel {} {} {} {} {} {} {} {} {} {} {}", kernel.name.size(), kernel.name,
                    kernel.matrix, kernel.backward, kernel.weights, kernel.outer, kernel.m,
                    kernel.k, kernel.n, kernel.first_input_bytes, static_cast<int>(kernel.tiled));
    text += fmt::format(" {}", kernel.dram_bytes);
    for (const KernelMessage& message : kernel.messages) {
      text += fmt::format(" {}:{}", static_cast<int>(message.transfer), message.bytes);
    }
    text += "\n";
  }
  for (const KernelTensor& tensor : graph.tensors) {
    text += fmt::format("tensor {} {}\n", tensor.from, tensor.to);
  }
  return text;
}

std::string text_of(const DataflowSpaceWorkload& workload) {
  const DataflowJob& job = workload.job;
  return fmt::format("workload {} {} {} {} {} {} {} {} {}{}\n", workload.name,
                     static_cast<int>(job.workload), job.layers, job.hidden, job.seq_len,
                     job.global_batch, job.micro_batch, job.tile, job.resident_bytes,
                     job.whole_model ? " whole" : "") +
         text_of(workload.graph);
}

}  // namespace

std::string_view name_of(FabricParallelism parallelism) {
  static constexpr std::string_view kNames[] = {"given", "roles", "shapes"};
  return kNames[static_cast<std::size_t>(parallelism)];
}

std::vector<SpaceAxis> axes_of(const DataflowSpace& space) {
  std::vector<std::string> ways;
  for (const FabricParallelism way : space.parallelisms) ways.emplace_back(name_of(way));
  return {{"workload", AxisPlace::page, names_of(space.workloads)},
          {"parallelism", AxisPlace::page, std::move(ways)},
          {"chip", AxisPlace::row, names_of(space.chips)},
          {"memory", AxisPlace::row, names_of(space.memories)},
          {"topology", AxisPlace::column, names_of(space.topologies)},
          {"links", AxisPlace::column, names_of(space.links)}};
}

DataflowSetup setup_of(const DataflowSpace& space, const SpacePoint& point) {
  const DataflowSpaceWorkload& workload = space.workloads[point[0]];
  const DataflowSpaceChip& chip = space.chips[point[2]];
  const PricedMemory& memory = space.memories[point[3]];
  const DataflowTopology& topology = space.topologies[point[4]];
  const DataflowLinks& links = space.links[point[5]];
  DataflowSetup setup;
  setup.graph = workload.graph;
  setup.job = workload.job;
  setup.chips = space.devices;
  setup.chip = chip.chip;
  setup.chip.dram_bytes = memory.bytes;
  setup.chip.dram_bytes_per_s = memory.bytes_per_s;
  for (std::size_t i = 0; i < topology.shapes.size(); ++i) {
    setup.fabric.dimensions.push_back(
        {topology.shapes[i], topology.sizes.empty() ? 1 : topology.sizes[i],
         or_last(links.bytes_per_s, i),
         topology.roles.empty() ? FabricRole::none : topology.roles[i]});
  }
  setup.fabric.latency_s = links.latency_s;
  setup.fabric.switch_bisection = space.switch_bisection;
  setup.prices = {links.usd_per_gb_per_s,
                  links.port_usd_per_gb_per_s,
                  memory.usd_per_gb_per_s,
                  chip.usd.value_or(0),
                  {or_last(links.w_per_gb_per_s, 0), or_last(links.w_per_gb_per_s, 1),
                   or_last(links.w_per_gb_per_s, 2)},
                  links.port_w_per_gb_per_s,
                  memory.w_per_gb_per_s,
                  chip.watts.value_or(0)};
  setup.kernel_by_kernel = chip.kernel_by_kernel;
  setup.rules = dfmodel_rules(space.overlap);
  setup.rules.compute_fraction = space.compute_fraction;
  setup.rules.separate_passes = !chip.joint_passes;
  setup.rules.sram_limit = workload.job.workload == DataflowWorkload::layers ||
                           workload.job.workload == DataflowWorkload::recommendation;
  setup.all_reduce_passes = space.all_reduce_passes;
  const bool all_rows = chip.rows_at_once == 0 && chip.kernel_by_kernel;
  setup.job.tile = all_rows ? std::max<std::int64_t>(1, workload.job.seq_len)
                            : std::max<std::int64_t>(1, chip.rows_at_once);
  return setup;
}

std::string canonical_text(const DataflowSpace& space) {
  std::string text =
      fmt::format("{} devices, {}, overlap {}, fraction {}, passes {}, bisection {}, budget {}\n",
                  space.devices, space.published_rules ? "published" : "charged",
                  static_cast<int>(space.overlap), space.compute_fraction, space.all_reduce_passes,
                  space.switch_bisection, space.budget);
  for (const DataflowSpaceWorkload& workload : space.workloads) text += text_of(workload);
  for (const FabricParallelism parallelism : space.parallelisms) {
    text += fmt::format("parallelism {}\n", name_of(parallelism));
  }
  for (const DataflowSpaceChip& chip : space.chips) {
    text += fmt::format("chip {} {} {} {} {} {} {} {} {} {} {}\n", chip.name, chip.chip.tiles,
                        chip.chip.lanes, chip.chip.stages, chip.chip.clock_hz, chip.chip.sram_bytes,
                        chip.usd.value_or(-1), chip.watts.value_or(-1), chip.kernel_by_kernel,
                        chip.joint_passes, chip.rows_at_once);
  }
  for (const PricedMemory& memory : space.memories) {
    text += fmt::format("memory {} {} {} {} {}\n", memory.name, memory.bytes, memory.bytes_per_s,
                        memory.usd_per_gb_per_s, memory.w_per_gb_per_s);
  }
  for (const DataflowTopology& topology : space.topologies) {
    text += fmt::format("topology {}", topology.name);
    for (std::size_t i = 0; i < topology.shapes.size(); ++i) {
      text += fmt::format(" {}:{}:{}", static_cast<int>(topology.shapes[i]),
                          topology.sizes.empty() ? 0 : topology.sizes[i],
                          topology.roles.empty() ? -1 : static_cast<int>(topology.roles[i]));
    }
    text += "\n";
  }
  for (const DataflowLinks& links : space.links) {
    text += fmt::format("links {} {} {} {} {}", links.name, links.usd_per_gb_per_s,
                        links.port_usd_per_gb_per_s, links.port_w_per_gb_per_s, links.latency_s);
    for (const double rate : links.bytes_per_s) text += fmt::format(" {}", rate);
    text += " ;";
    for (const double watts : links.w_per_gb_per_s) text += fmt::format(" {}", watts);
    text += "\n";
  }
  return text;
}

}  // namespace braid
