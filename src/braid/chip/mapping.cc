#include "braid/chip/mapping.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/rounding.h"
#include "braid/base/text.h"
#include "braid/chip/kernel_graph.h"
#include "braid/chip/partition_time.h"
#include "braid/chip/tile_curve.h"

namespace braid {
namespace {

using Members = std::vector<std::vector<std::size_t>>;

void add_kernels(const ChipWork& work, const Members& members, const MappingRules& rules,
                 MappingCost& cost) {
  for (std::size_t p = 0; p < members.size(); ++p) {
    PartitionCost& partition = cost.partitions[p];
    for (const std::size_t i : members[p]) {
      const ChipKernel& kernel = work.kernels[i];
      partition.flops += kernel.flops;
      partition.dram_traffic_bytes += kernel.dram_bytes;
      if (rules.weight_traffic) partition.dram_traffic_bytes += kernel.weight_bytes;
      partition.network_s += kernel.network_s;
      partition.network_bytes += kernel.network_bytes;
      partition.sram_bytes += kernel.weight_bytes;
    }
  }
}

// What each partition reads, for kernels that are cut into parts.
std::vector<double> add_tensors(const ChipWork& work, const Mapping& mapping,
                                const MappingRules& rules, MappingCost& cost) {
  const std::size_t count = cost.partitions.size();
  std::vector<double> read_bytes(count, 0);
  // Tensors of one writer side by side, so that what they share is counted once.
  std::vector<const ChipTensor*> tensors;
  tensors.reserve(work.tensors.size());
  for (const ChipTensor& tensor : work.tensors) tensors.push_back(&tensor);
  const auto by_writer = [](const ChipTensor* a, const ChipTensor* b) { return a->from < b->from; };
  if (!std::is_sorted(tensors.begin(), tensors.end(), by_writer)) {
    std::stable_sort(tensors.begin(), tensors.end(), by_writer);
  }
  std::vector<std::int32_t> written_by(count, -1), read_of(count, -1);
  // In DRAM from its writer's partition to its reader's: what each adds to those before, and lets
  // go of. Those of one writer begin together, so that a longer one adds its end.
  std::vector<double> begins(count + 1, 0), ends(count + 1, 0);
  std::int32_t waiting = -1;
  std::size_t waits_to = 0;  // Of this writer's.
  const auto first_time = [&rules](std::vector<std::int32_t>& seen, std::size_t p,
                                   std::int32_t writer) {
    const bool first = seen[p] != writer;
    seen[p] = writer;
    return first || !rules.share_tensors;
  };
  for (const ChipTensor* tensor : tensors) {
    const auto from =
        static_cast<std::size_t>(mapping.partition_of[static_cast<std::size_t>(tensor->from)]);
    const auto to =
        static_cast<std::size_t>(mapping.partition_of[static_cast<std::size_t>(tensor->to)]);
    cost.partitions[to].network_s += tensor->network_s;
    cost.partitions[to].network_bytes += tensor->network_bytes;
    if (from == to) {
      cost.partitions[from].sram_bytes += tensor->buffers * tensor->tile_bytes;
      continue;
    }
    cost.partitions[from].sram_bytes += 2 * tensor->tile_bytes;
    cost.partitions[to].sram_bytes += 2 * tensor->tile_bytes;
    if (first_time(written_by, from, tensor->from)) {
      cost.partitions[from].dram_traffic_bytes += tensor->bytes;
    }
    if (first_time(read_of, to, tensor->from)) {
      cost.partitions[to].dram_traffic_bytes += tensor->bytes;
      read_bytes[to] += tensor->bytes;
    }
    const bool joins = rules.share_tensors && waiting == tensor->from;
    const std::size_t begin = joins ? waits_to : from;
    waiting = tensor->from;
    if (begin > to) continue;
    begins[begin] += tensor->bytes * work.live_copies;
    ends[to + 1] += tensor->bytes * work.live_copies;
    waits_to = to + 1;
  }
  double waiting_bytes = 0;
  for (std::size_t p = 0; p < count; ++p) {
    waiting_bytes += begins[p] - ends[p];
    cost.partitions[p].dram_bytes += waiting_bytes;
  }
  return read_bytes;
}

std::optional<std::string> order_violation(const ChipWork& work, const Mapping& mapping,
                                           const MappingRules& rules) {
  for (const ChipTensor& tensor : work.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    if (mapping.partition_of[from] > mapping.partition_of[to]) {
      return fmt::format("{} runs before {}, which it reads", in_quotes(work.kernels[to].name),
                         in_quotes(work.kernels[from].name));
    }
  }
  std::int32_t last_forward = -1;
  for (std::size_t i = 0; i < work.kernels.size(); ++i) {
    if (!work.kernels[i].backward) last_forward = std::max(last_forward, mapping.partition_of[i]);
  }
  for (std::size_t i = 0; i < work.kernels.size() && rules.separate_passes; ++i) {
    if (work.kernels[i].backward && mapping.partition_of[i] <= last_forward) {
      return fmt::format("{} of the backward pass runs before the forward pass is over",
                         in_quotes(work.kernels[i].name));
    }
  }
  return std::nullopt;
}

/// The tiles that a mapping states, and the cycles of the slowest kernel; nullopt where one has
/// none.
std::optional<TileAllocation> stated_tiles(std::span<const std::size_t> kernels,
                                           std::span<const std::int64_t> stated,
                                           std::span<const TileCurve* const> curves) {
  TileAllocation allocation;
  for (std::size_t at = 0; at < kernels.size(); ++at) {
    const std::int64_t tiles = stated[kernels[at]];
    const TileCurve& curve = *curves[at];
    const auto step = std::upper_bound(
        curve.begin(), curve.end(), tiles,
        [](std::int64_t have, const TileStep& entry) { return have < entry.tiles; });
    if (step == curve.begin()) return std::nullopt;
    allocation.cycles = std::max(allocation.cycles, std::prev(step)->cycles);
    allocation.tiles.push_back(tiles);
  }
  return allocation;
}

/// Sets the tiles of all kernels and the compute time of partitions; `stated` may be empty: the
/// best are found. Returns what is wrong with them. `curves` as in evaluate_mapping().
std::optional<std::string> set_tiles(const DataflowChip& chip, std::span<const std::int64_t> stated,
                                     const Members& members, std::span<const TileCurve> curves,
                                     double compute_fraction, MappingCost& cost) {
  cost.tiles.assign(curves.size(), 0);
  for (std::size_t p = 0; p < members.size(); ++p) {
    std::vector<const TileCurve*> own;
    own.reserve(members[p].size());
    for (const std::size_t i : members[p]) own.push_back(&curves[i]);
    const std::optional<TileAllocation> found =
        stated.empty() ? allocate_tiles(own, chip.tiles) : stated_tiles(members[p], stated, own);
    if (!found && !stated.empty()) return "a kernel has no tile";
    if (!found) return fmt::format("partition {} has more kernels than the chip has tiles", p + 1);
    const TileAllocation& allocation = *found;
    for (std::size_t at = 0; at < members[p].size(); ++at) {
      cost.tiles[members[p][at]] = allocation.tiles[at];
      cost.partitions[p].tiles += allocation.tiles[at];
    }
    if (cost.partitions[p].tiles > chip.tiles) {
      return fmt::format("partition {} uses {} tiles of {}", p + 1, cost.partitions[p].tiles,
                         chip.tiles);
    }
    cost.partitions[p].compute_s = allocation.cycles / (chip.clock_hz * compute_fraction);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(PartitionBound bound) {
  switch (bound) {
    case PartitionBound::compute:
      return "compute";
    case PartitionBound::memory:
      return "memory";
    case PartitionBound::network:
      return "network";
  }
  return "";
}

MappingRules dfmodel_rules(PartitionOverlap overlap) {
  MappingRules rules;
  rules.overlap = overlap;
  rules.whole_tiles = false;
  rules.weight_traffic = false;
  rules.share_tensors = false;
  return rules;
}

Mapping kernel_by_kernel(const ChipWork& work) {
  std::vector<KernelTensor> edges;
  edges.reserve(work.tensors.size());
  for (const ChipTensor& tensor : work.tensors) edges.push_back({tensor.from, tensor.to});
  const std::vector<std::int32_t> levels = kernel_levels(work.kernels.size(), edges);
  assert(levels.size() == work.kernels.size());
  std::vector<std::size_t> order(work.kernels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool later = work.kernels[a].backward, other = work.kernels[b].backward;
    return later != other ? other : levels[a] < levels[b];
  });
  Mapping mapping;
  mapping.partition_of.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    mapping.partition_of[order[i]] = static_cast<std::int32_t>(i);
  }
  return mapping;
}

MappingCost evaluate_mapping(const ChipWork& work, const DataflowChip& chip, const Mapping& mapping,
                             const MappingRules& rules, std::span<const TileCurve> curves) {
  assert(mapping.partition_of.size() == work.kernels.size());
  MappingCost cost;
  std::int32_t last = -1;
  for (const std::int32_t partition : mapping.partition_of) last = std::max(last, partition);
  Members members(static_cast<std::size_t>(last + 1));
  cost.partitions.resize(members.size());
  for (std::size_t i = 0; i < mapping.partition_of.size(); ++i) {
    members[static_cast<std::size_t>(mapping.partition_of[i])].push_back(i);
  }
  cost.violation = order_violation(work, mapping, rules);
  if (cost.violation) return cost;
  add_kernels(work, members, rules, cost);
  const std::vector<double> read_bytes = add_tensors(work, mapping, rules, cost);
  if (rules.whole_tiles) {
    std::vector<TileCurve> own;
    if (curves.empty()) {
      own.reserve(work.kernels.size());
      for (const ChipKernel& kernel : work.kernels) own.push_back(tile_curve(kernel, chip));
      curves = own;
    }
    cost.violation = set_tiles(chip, mapping.tiles, members, curves, rules.compute_fraction, cost);
    if (cost.violation) return cost;
  }
  for (std::size_t p = 0; p < members.size(); ++p) {
    PartitionCost& partition = cost.partitions[p];
    if (members[p].empty()) {
      cost.violation = fmt::format("partition {} is empty", p + 1);
      return cost;
    }
    if (!rules.whole_tiles) {
      partition.compute_s = partition.flops / (rules.compute_fraction * peak_flops_per_s(chip));
      partition.tiles = chip.tiles;
    }
    if (members[p].size() == 1 && partition.sram_bytes > chip.sram_bytes && rules.sram_limit) {
      partition.parts = std::ceil(partition.sram_bytes / chip.sram_bytes);
      partition.sram_bytes /= partition.parts;
      if (rules.weight_traffic && work.kernels[members[p][0]].weight_bytes > 0) {
        partition.dram_traffic_bytes += (partition.parts - 1) * read_bytes[p];
      }
    }
    if (rules.sram_limit && partition.sram_bytes > chip.sram_bytes * kAboveTolerance &&
        !cost.violation) {
      cost.violation = fmt::format("partition {} needs {:.0f} bytes of SRAM, there are {:.0f}",
                                   p + 1, partition.sram_bytes, chip.sram_bytes);
    }
    partition.dram_bytes += work.resident_bytes;
    if (partition.dram_bytes > (chip.dram_bytes + chip.spill_bytes) * kAboveTolerance &&
        !cost.violation) {
      cost.violation = fmt::format("partition {} needs {:.0f} bytes of DRAM, there are {:.0f}",
                                   p + 1, partition.dram_bytes, chip.dram_bytes + chip.spill_bytes);
    }
    partition.memory_s =
        partition.dram_traffic_bytes / memory_bytes_per_s(chip, partition.dram_bytes);
    partition.time_s = partition_time_s(partition.compute_s, partition.memory_s,
                                        partition.network_s, rules.overlap);
    partition.bound = partition.compute_s >= std::max(partition.memory_s, partition.network_s)
                          ? PartitionBound::compute
                      : partition.memory_s >= partition.network_s ? PartitionBound::memory
                                                                  : PartitionBound::network;
    cost.time_s += partition.time_s;
  }
  return cost;
}

}  // namespace braid
