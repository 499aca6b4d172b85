#include "braid/explore/space.h"

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

std::string text_of(const SpaceWorkload& workload) {
  const DataflowJob& job = workload.job;
  return fmt::format("workload {} {} {} {} {} {} {} {} {}{}\n", workload.name,
                     static_cast<int>(job.workload), job.layers, job.hidden, job.seq_len,
                     job.global_batch, job.micro_batch, job.tile, job.resident_bytes,
                     job.whole_model ? " whole" : "") +
         text_of(workload.graph);
}

}  // namespace

std::string_view name_of(SpaceParallelism parallelism) {
  static constexpr std::string_view kNames[] = {"given", "roles", "shapes"};
  return kNames[static_cast<std::size_t>(parallelism)];
}

std::string_view name_of(SpaceAxis axis) {
  static constexpr std::string_view kNames[] = {"workload", "parallelism", "chip",
                                                "memory",   "topology",    "links"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(SpaceFigure figure) {
  static constexpr std::string_view kNames[] = {"utilisation", "throughput", "per_usd", "per_w"};
  return kNames[static_cast<std::size_t>(figure)];
}

std::size_t size_of(const Space& space, SpaceAxis axis) {
  switch (axis) {
    case SpaceAxis::workload:
      return space.workloads.size();
    case SpaceAxis::parallelism:
      return space.parallelisms.size();
    case SpaceAxis::chip:
      return space.chips.size();
    case SpaceAxis::memory:
      return space.memories.size();
    case SpaceAxis::topology:
      return space.topologies.size();
    case SpaceAxis::links:
      return space.links.size();
  }
  return 0;
}

std::string_view value_name(const Space& space, SpaceAxis axis, std::size_t index) {
  switch (axis) {
    case SpaceAxis::workload:
      return space.workloads[index].name;
    case SpaceAxis::parallelism:
      return name_of(space.parallelisms[index]);
    case SpaceAxis::chip:
      return space.chips[index].name;
    case SpaceAxis::memory:
      return space.memories[index].name;
    case SpaceAxis::topology:
      return space.topologies[index].name;
    case SpaceAxis::links:
      return space.links[index].name;
  }
  return {};
}

std::size_t point_count(const Space& space) {
  std::size_t count = 1;
  for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
    count *= size_of(space, static_cast<SpaceAxis>(axis));
  }
  return count;
}

SpacePoint point_of(const Space& space, std::size_t number) {
  SpacePoint point{};
  for (std::size_t axis = kSpaceAxes; axis-- > 0;) {
    const std::size_t size = size_of(space, static_cast<SpaceAxis>(axis));
    point[axis] = number % size;
    number /= size;
  }
  return point;
}

DataflowSetup setup_of(const Space& space, const SpacePoint& point) {
  const auto at = [&](SpaceAxis axis) { return point[static_cast<std::size_t>(axis)]; };
  const SpaceWorkload& workload = space.workloads[at(SpaceAxis::workload)];
  const SpaceChip& chip = space.chips[at(SpaceAxis::chip)];
  const SpaceMemory& memory = space.memories[at(SpaceAxis::memory)];
  const SpaceTopology& topology = space.topologies[at(SpaceAxis::topology)];
  const SpaceLinks& links = space.links[at(SpaceAxis::links)];
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
                  chip.usd,
                  {or_last(links.w_per_gb_per_s, 0), or_last(links.w_per_gb_per_s, 1),
                   or_last(links.w_per_gb_per_s, 2)},
                  links.port_w_per_gb_per_s,
                  memory.w_per_gb_per_s,
                  chip.watts};
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

std::string canonical_text(const Space& space) {
  std::string text =
      fmt::format("{} devices, {}, overlap {}, fraction {}, passes {}, bisection {}, budget {}\n",
                  space.devices, space.published_rules ? "published" : "charged",
                  static_cast<int>(space.overlap), space.compute_fraction, space.all_reduce_passes,
                  space.switch_bisection, space.budget);
  for (const SpaceWorkload& workload : space.workloads) text += text_of(workload);
  for (const SpaceParallelism parallelism : space.parallelisms) {
    text += fmt::format("parallelism {}\n", name_of(parallelism));
  }
  for (const SpaceChip& chip : space.chips) {
    text += fmt::format("chip {} {} {} {} {} {} {} {} {} {} {}\n", chip.name, chip.chip.tiles,
                        chip.chip.lanes, chip.chip.stages, chip.chip.clock_hz, chip.chip.sram_bytes,
                        chip.usd, chip.watts, chip.kernel_by_kernel, chip.joint_passes,
                        chip.rows_at_once);
  }
  for (const SpaceMemory& memory : space.memories) {
    text += fmt::format("memory {} {} {} {} {}\n", memory.name, memory.bytes, memory.bytes_per_s,
                        memory.usd_per_gb_per_s, memory.w_per_gb_per_s);
  }
  for (const SpaceTopology& topology : space.topologies) {
    text += fmt::format("topology {}", topology.name);
    for (std::size_t i = 0; i < topology.shapes.size(); ++i) {
      text += fmt::format(" {}:{}:{}", static_cast<int>(topology.shapes[i]),
                          topology.sizes.empty() ? 0 : topology.sizes[i],
                          topology.roles.empty() ? -1 : static_cast<int>(topology.roles[i]));
    }
    text += "\n";
  }
  for (const SpaceLinks& links : space.links) {
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
