#include "braid/chip/partition_sums.h"

#include <algorithm>
#include <cmath>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/chip/kernel_graph.h"
#include "braid/chip/partition_time.h"

namespace braid {
namespace {

/// Entries of MapperTables::tiles_at, 16 MB: chips have some thousand steps for some hundred
/// kernels; with more, curves are searched.
constexpr std::size_t kMostTilesAt = 4'000'000;

}  // namespace

MapperTables::MapperTables(const ChipWork& work, const DataflowChip& the_chip,
                           const MappingRules& the_rules, std::span<const TileCurve> known)
    : kernels(work.kernels.size()),
      chip(the_chip),
      rules(the_rules),
      resident_bytes(work.resident_bytes),
      live_copies(work.live_copies),
      most_bytes_per_s(std::max(the_chip.dram_bytes_per_s, the_chip.spill_bytes_per_s)),
      seconds_per_cycle(1 / (the_chip.clock_hz * the_rules.compute_fraction)) {
  const double rate = rules.compute_fraction * peak_flops_per_s(chip);
  std::vector<std::size_t> curve_of_shape;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const ChipKernel& kernel = work.kernels[i];
    kernels[i].compute_s = kernel.flops / rate;
    kernels[i].network_s = kernel.network_s;
    kernels[i].weight_bytes = kernel.weight_bytes;
    kernels[i].waits = rules.separate_passes && kernel.backward;
    if (!kernels[i].waits) ++first_to_run;
    kernels[i].traffic_bytes = kernel.dram_bytes + (rules.weight_traffic ? kernel.weight_bytes : 0);
    if (!rules.whole_tiles) continue;
    curves.push_back(known.empty() ? tile_curve(kernel, chip) : known[i]);
    const auto alike = std::find_if(curve_of_shape.begin(), curve_of_shape.end(),
                                    [&](std::size_t j) { return curves[j] == curves[i]; });
    kernels[i].shape = static_cast<std::uint32_t>(alike - curve_of_shape.begin());
    if (alike == curve_of_shape.end()) {
      curve_of_shape.push_back(i);
      for (const TileStep& step : curves[i]) cycles.push_back(step.cycles);
    }
    double least = kInfinity;
    for (const TileStep& step : curves.back()) {
      least = std::min(least, static_cast<double>(step.tiles) * step.cycles);
    }
    kernels[i].compute_s = least / static_cast<double>(chip.tiles) * seconds_per_cycle;
  }
  std::sort(cycles.begin(), cycles.end());
  cycles.erase(std::unique(cycles.begin(), cycles.end()), cycles.end());
  if (cycles.size() * curve_of_shape.size() <= kMostTilesAt) fill_tiles_at(curve_of_shape);
  std::vector<KernelTensor> edges;
  edges.reserve(work.tensors.size());
  for (const ChipTensor& tensor : work.tensors) {
    const auto from = static_cast<std::uint32_t>(tensor.from);
    const auto to = static_cast<std::uint32_t>(tensor.to);
    const double crossing = 2 * tensor.tile_bytes, inner = tensor.buffers * tensor.tile_bytes;
    kernels[from].outputs.push_back({to, tensor.bytes, crossing, inner});
    kernels[to].inputs.push_back({from, tensor.bytes, crossing, inner});
    kernels[from].crossing_bytes += crossing;
    kernels[from].output_bytes = std::max(kernels[from].output_bytes, tensor.bytes);
    kernels[to].network_s += tensor.network_s;
    edges.push_back({tensor.from, tensor.to});
  }
  const std::vector<std::int32_t> levels = kernel_levels(kernels.size(), edges);
  order.resize(kernels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const bool later = kernels[a].waits, other = kernels[b].waits;
    return later != other ? other : levels[a] < levels[b];
  });
}

void MapperTables::fill_tiles_at(std::span<const std::size_t> curve_of_shape) {
  shapes = curve_of_shape.size();
  tiles_at.assign(cycles.size() * shapes, static_cast<std::int32_t>(chip.tiles) + 1);
  for (std::size_t shape = 0; shape < shapes; ++shape) {
    std::size_t next = cycles.size();
    for (const TileStep& step : curves[curve_of_shape[shape]]) {
      // Cycles descend along the curve: each step is for the times from its own to the one before.
      for (; next > 0 && cycles[next - 1] >= step.cycles; --next) {
        tiles_at[(next - 1) * shapes + shape] = static_cast<std::int32_t>(step.tiles);
      }
    }
  }
}

PartitionSums::PartitionSums(const MapperTables& tables)
    : tables_(tables),
      before_(tables.kernels.size()),
      forward_done_(tables.first_to_run == 0),
      side_(tables.kernels.size(), Side::after),
      unread_(tables.kernels.size(), 0),
      read_(tables.kernels.size(), 0) {}

void PartitionSums::begin(const Bitset& before) {
  clear();
  if (before_.is_subset_of(before)) {
    // Most searches go on behind more kernels than they come from.
    for (const std::uint32_t kernel : tables_.order) {
      if (before.test(kernel) && !before_.test(kernel)) put_before(kernel);
    }
  } else {
    rebuild(before);
  }
  before_ = before;
  sums_ = {};
  sums_.passing = cut_before_;
}

void PartitionSums::rebuild(const Bitset& before) {
  std::fill(side_.begin(), side_.end(), Side::after);
  std::fill(read_.begin(), read_.end(), 0);
  run_before_ = 0;
  before.for_each([&](std::size_t i) {
    side_[i] = Side::before;
    if (!tables_.kernels[i].waits) ++run_before_;
  });
  forward_done_ = run_before_ == tables_.first_to_run;
  cut_before_ = 0;
  before.for_each([&](std::size_t i) {
    unread_[i] = 0;
    for (const MapperTables::Tensor& tensor : tables_.kernels[i].outputs) {
      if (side_[tensor.other] != Side::after) continue;
      ++unread_[i];
      if (!tables_.rules.share_tensors) cut_before_ += tensor.bytes;
    }
    if (tables_.rules.share_tensors && unread_[i] > 0) {
      cut_before_ += tables_.kernels[i].output_bytes;
    }
  });
}

void PartitionSums::clear() {
  while (!members_.empty()) undo({});
}

void PartitionSums::put_before(std::uint32_t kernel) {
  const MapperTables::Kernel& entry = tables_.kernels[kernel];
  const bool share = tables_.rules.share_tensors;
  for (const MapperTables::Tensor& tensor : entry.inputs) {
    const bool last = --unread_[tensor.other] == 0;
    if (!share) cut_before_ -= tensor.bytes;
    if (share && last) cut_before_ -= tables_.kernels[tensor.other].output_bytes;
  }
  side_[kernel] = Side::before;
  unread_[kernel] = static_cast<std::uint32_t>(entry.outputs.size());
  if (share) {
    if (!entry.outputs.empty()) cut_before_ += entry.output_bytes;
  } else {
    for (const MapperTables::Tensor& tensor : entry.outputs) cut_before_ += tensor.bytes;
  }
  if (!entry.waits && ++run_before_ == tables_.first_to_run) forward_done_ = true;
}

void PartitionSums::move_behind(std::uint32_t kernel) {
  clear();
  put_before(kernel);
  before_.set(kernel);
  sums_ = {};
  sums_.passing = cut_before_;
}

PartitionSums::Sums PartitionSums::add(std::uint32_t kernel) {
  const Sums earlier = sums_;
  const MapperTables::Kernel& entry = tables_.kernels[kernel];
  const bool share = tables_.rules.share_tensors;
  sums_.compute_s += entry.compute_s;
  sums_.network_s += entry.network_s;
  sums_.traffic_bytes += entry.traffic_bytes;
  sums_.weight_bytes += entry.weight_bytes;
  sums_.sram_bytes += entry.weight_bytes + entry.crossing_bytes;
  for (const MapperTables::Tensor& tensor : entry.inputs) {
    const std::uint32_t writer = tensor.other;
    const bool last = --unread_[writer] == 0;
    const double written = share ? tables_.kernels[writer].output_bytes : tensor.bytes;
    if (side_[writer] == Side::before) {
      sums_.sram_bytes += tensor.crossing_bytes;
      if (!share || read_[writer] == 0) sums_.reads += written;
      ++read_[writer];
      if (!share || last) sums_.passing -= written;
    } else {
      sums_.sram_bytes += tensor.inner_bytes - tensor.crossing_bytes;
      if (!share || last) sums_.writes -= written;
    }
  }
  unread_[kernel] = static_cast<std::uint32_t>(entry.outputs.size());
  if (share) {
    if (!entry.outputs.empty()) sums_.writes += entry.output_bytes;
  } else {
    for (const MapperTables::Tensor& tensor : entry.outputs) sums_.writes += tensor.bytes;
  }
  side_[kernel] = Side::inside;
  members_.push_back(kernel);
  return earlier;
}

void PartitionSums::undo(const Sums& earlier) {
  const std::uint32_t kernel = members_.back();
  members_.pop_back();
  side_[kernel] = Side::after;
  for (const MapperTables::Tensor& tensor : tables_.kernels[kernel].inputs) {
    ++unread_[tensor.other];
    if (side_[tensor.other] == Side::before) --read_[tensor.other];
  }
  sums_ = earlier;
}

bool PartitionSums::is_full() const {
  if (members_.empty()) return false;
  if (tables_.rules.whole_tiles &&
      static_cast<std::int64_t>(members_.size()) >= tables_.chip.tiles) {
    return true;
  }
  return tables_.rules.sram_limit &&
         sums_.weight_bytes > tables_.chip.sram_bytes * kAboveRunningSums;
}

bool PartitionSums::fits_in(std::size_t step) const {
  std::int64_t left = tables_.chip.tiles;
  if (!tables_.tiles_at.empty()) {
    const std::int32_t* const tiles = &tables_.tiles_at[step * tables_.shapes];
    for (const std::uint32_t kernel : members_) {
      left -= tiles[tables_.kernels[kernel].shape];
      if (left < 0) return false;
    }
    return true;
  }
  for (const std::uint32_t kernel : members_) {
    left -= tiles_for(tables_.curves[kernel], tables_.cycles[step]).value_or(left + 1);
    if (left < 0) return false;
  }
  return true;
}

double PartitionSums::compute_s(double hidden_s, double enough_s) const {
  const double per_cycle_s = tables_.seconds_per_cycle;
  const std::vector<double>& cycles = tables_.cycles;
  const auto steps_where = [&](auto&& is_less) {
    return static_cast<std::size_t>(std::partition_point(cycles.begin(), cycles.end(), is_less) -
                                    cycles.begin());
  };
  // No step before the first is enough, and the last is or there is none.
  const double least = sums_.compute_s / per_cycle_s * kBelowRounding;
  std::size_t first = steps_where([&](double step) { return step < least; });
  std::size_t last = cycles.size();
  const std::size_t hidden =
      steps_where([&](double step) { return step * per_cycle_s <= hidden_s; });
  if (hidden > first) {
    if (fits_in(hidden - 1)) return cycles[hidden - 1] * per_cycle_s;
    first = hidden;
  }
  const std::size_t enough =
      steps_where([&](double step) { return step * per_cycle_s < enough_s; });
  if (enough > first && enough < last) {
    if (!fits_in(enough - 1)) return cycles[enough] * per_cycle_s;
    last = enough - 1;
  } else if (enough <= first && first < last) {
    return cycles[first] * per_cycle_s;
  }
  first = first_where(first, last, [&](std::size_t step) { return fits_in(step); });
  return first == cycles.size() ? kImpossible : cycles[first] * per_cycle_s;
}

double PartitionSums::time_s(double enough) const {
  const MappingRules& rules = tables_.rules;
  const DataflowChip& chip = tables_.chip;
  double traffic = sums_.traffic_bytes + sums_.reads + sums_.writes;
  if (rules.sram_limit && sums_.sram_bytes > chip.sram_bytes * kAboveRunningSums) {
    if (members_.size() > 1) return kImpossible;
    // As evaluate_mapping has it, with its own rounding.
    const double parts = std::ceil(sums_.sram_bytes / chip.sram_bytes);
    if (rules.weight_traffic && sums_.weight_bytes > 0) traffic += (parts - 1) * sums_.reads;
  }
  const double dram_bytes =
      tables_.resident_bytes + (cut_before_ + sums_.writes) * tables_.live_copies;
  if (dram_bytes > (chip.dram_bytes + chip.spill_bytes) * kAboveRunningSums) return kImpossible;
  const double memory_s = traffic / memory_bytes_per_s(chip, dram_bytes);
  const double bound = partition_time_s(sums_.compute_s, memory_s, sums_.network_s, rules.overlap);
  if (!rules.whole_tiles || bound >= enough) return bound;
  // What hides behind the rest takes no time, whatever it is.
  const double rest_s = partition_time_s(0, memory_s, sums_.network_s, rules.overlap);
  switch (rules.overlap) {
    case PartitionOverlap::all:
      return std::max(rest_s, compute_s(rest_s, enough));
    case PartitionOverlap::compute_memory:
      return partition_time_s(compute_s(memory_s, kInfinity), memory_s, sums_.network_s,
                              rules.overlap);
    case PartitionOverlap::none:
      break;
  }
  return partition_time_s(compute_s(0, kInfinity), memory_s, sums_.network_s, rules.overlap);
}

double remaining_bound_s(const MapperTables& tables, double compute_s, double network_s,
                         double traffic_bytes, double cut_bytes) {
  // A little less than the sums, which were rounded.
  return kBelowRounding * partition_time_s(compute_s,
                                           (traffic_bytes + cut_bytes) / tables.most_bytes_per_s,
                                           network_s, tables.rules.overlap);
}

}  // namespace braid
