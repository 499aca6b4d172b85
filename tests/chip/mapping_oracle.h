#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "braid/chip/chip_work.h"
#include "braid/chip/dataflow_chip.h"
#include "braid/chip/mapping.h"
#include "braid/chip/tile_curve.h"

namespace braid {

/// The least time over all sequences of partitions, by sets as bit masks and formulas of its own.
class MappingOracle {
 public:
  MappingOracle(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules)
      : work_(work), chip_(chip), rules_(rules) {}

  double best() { return from(0); }

 private:
  static bool in(unsigned set, std::int32_t kernel) { return (set >> kernel & 1U) != 0; }

  bool mixes_passes(unsigned before, unsigned part) const {
    if (!rules_.separate_passes) return false;
    bool backward = false, forward_left = false;
    for (std::size_t i = 0; i < work_.kernels.size(); ++i) {
      const auto kernel = static_cast<std::int32_t>(i);
      backward = backward || (in(part, kernel) && work_.kernels[i].backward);
      forward_left = forward_left || (!in(before, kernel) && !work_.kernels[i].backward);
    }
    return backward && forward_left;
  }

  double from(unsigned before) {
    const unsigned all = (1U << work_.kernels.size()) - 1;
    if (before == all) return 0;
    const auto known = memo_.find(before);
    if (known != memo_.end()) return known->second;
    double best = 1e300;
    const unsigned rest = all & ~before;
    for (unsigned part = rest; part != 0; part = (part - 1) & rest) {
      const bool ordered =
          std::none_of(work_.tensors.begin(), work_.tensors.end(), [&](const ChipTensor& tensor) {
            return in(part, tensor.to) && !in(part | before, tensor.from);
          });
      if (ordered && !mixes_passes(before, part))
        best = std::min(best, time(before, part) + from(before | part));
    }
    memo_[before] = best;
    return best;
  }

  double time(unsigned before, unsigned part) const {
    double weights = 0, sram = 0, flops = 0, traffic = 0, network = 0, read = 0, waiting = 0;
    int count = 0;
    for (std::size_t i = 0; i < work_.kernels.size(); ++i) {
      if (!in(part, static_cast<std::int32_t>(i))) continue;
      ++count;
      weights += work_.kernels[i].weight_bytes;
      flops += work_.kernels[i].flops;
      network += work_.kernels[i].network_s;
      traffic += work_.kernels[i].dram_bytes;
      if (rules_.weight_traffic) traffic += work_.kernels[i].weight_bytes;
    }
    sram += weights;
    std::map<std::int32_t, double> reads, writes, waits;
    for (const ChipTensor& tensor : work_.tensors) {
      const bool from_here = in(part, tensor.from), to_here = in(part, tensor.to);
      if (to_here) network += tensor.network_s;
      if (from_here && to_here) sram += tensor.buffers * tensor.tile_bytes;
      if (from_here != to_here) sram += 2 * tensor.tile_bytes;
      const auto note = [&](std::map<std::int32_t, double>& sums) {
        double& sum = sums[tensor.from];
        sum = rules_.share_tensors ? tensor.bytes : sum + tensor.bytes;
      };
      if (from_here && !to_here) note(writes);
      if (!from_here && to_here) note(reads);
      const bool begun = in(before | part, tensor.from), ended = in(before, tensor.to);
      if (begun && !ended && !(from_here && to_here)) note(waits);
    }
    for (const auto& [writer, bytes] : reads) read += bytes;
    for (const auto& [writer, bytes] : writes) traffic += bytes;
    for (const auto& [writer, bytes] : waits) waiting += bytes * work_.live_copies;
    traffic += read;
    if (rules_.sram_limit && sram > chip_.sram_bytes) {
      if (count > 1) return 1e300;
      if (rules_.weight_traffic && weights > 0)
        traffic += (std::ceil(sram / chip_.sram_bytes) - 1) * read;
    }
    const double dram = waiting + work_.resident_bytes;
    if (dram > chip_.dram_bytes + chip_.spill_bytes) return 1e300;
    const double memory = traffic / memory_bytes_per_s(chip_, dram);
    double compute = flops / (rules_.compute_fraction * peak_flops_per_s(chip_));
    if (rules_.whole_tiles) {
      std::vector<TileCurve> curves;
      std::vector<const TileCurve*> pointers;
      for (std::size_t i = 0; i < work_.kernels.size(); ++i) {
        if (in(part, static_cast<std::int32_t>(i))) {
          curves.push_back(tile_curve(work_.kernels[i], chip_));
        }
      }
      for (const TileCurve& curve : curves) pointers.push_back(&curve);
      const auto allocation = allocate_tiles(pointers, chip_.tiles);
      if (!allocation) return 1e300;
      compute = allocation->cycles / (chip_.clock_hz * rules_.compute_fraction);
    }
    switch (rules_.overlap) {
      case PartitionOverlap::all:
        return std::max({compute, memory, network});
      case PartitionOverlap::compute_memory:
        return std::max(compute, memory) + network;
      case PartitionOverlap::none:
        break;
    }
    return compute + memory + network;
  }

  const ChipWork& work_;
  const DataflowChip& chip_;
  const MappingRules& rules_;
  std::map<unsigned, double> memo_;
};

}  // namespace braid
