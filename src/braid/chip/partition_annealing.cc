#include "braid/chip/partition_annealing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {
namespace {

constexpr double kHottest = 2, kColdest = 0.1;  // Mean tensors.
constexpr std::int64_t kCoolings = 1000;

/// Kernels in partitions, which run in ascending order; many of them are empty.
class Partitions {
 public:
  Partitions(const MapperTables& tables, std::span<const std::uint32_t> order,
             std::span<const std::uint32_t> ends)
      : tables_(tables),
        capacity_(tables.rules.sram_limit ? tables.chip.sram_bytes : kInfinity),
        most_(tables.rules.whole_tiles ? tables.chip.tiles
                                       : static_cast<std::int64_t>(order.size())),
        partition_(order.size()),
        sram_bytes_(2 * ends.size() + 1, 0),
        members_(2 * ends.size() + 1, 0) {
    std::uint32_t partition = 1;
    std::size_t end = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == ends[end]) {
        ++end;
        partition += 2;
      }
      if (tables.kernels[order[i]].waits && first_waiting_ == 0) first_waiting_ = partition;
      partition_[order[i]] = partition;
      ++members_[partition];
    }
    if (first_waiting_ == 0) first_waiting_ = static_cast<std::uint32_t>(sram_bytes_.size());
    for (const std::uint32_t kernel : order) {
      const MapperTables::Kernel& entry = tables.kernels[kernel];
      double& bytes = sram_bytes_[partition_[kernel]];
      bytes += entry.weight_bytes;
      for (const MapperTables::Tensor& tensor : entry.inputs) {
        bytes += is_in(tensor, partition_[kernel]) ? tensor.inner_bytes : tensor.crossing_bytes;
      }
      for (const MapperTables::Tensor& tensor : entry.outputs) {
        if (!is_in(tensor, partition_[kernel])) bytes += tensor.crossing_bytes;
      }
    }
  }

  std::uint32_t of(std::uint32_t kernel) const { return partition_[kernel]; }

  /// The first and last partition that a kernel can be in.
  std::pair<std::uint32_t, std::uint32_t> range(std::uint32_t kernel) const {
    const MapperTables::Kernel& entry = tables_.kernels[kernel];
    std::uint32_t first = entry.waits ? first_waiting_ : 0;
    auto last = static_cast<std::uint32_t>(entry.waits ? sram_bytes_.size() : first_waiting_) - 1;
    for (const MapperTables::Tensor& tensor : entry.inputs) {
      first = std::max(first, partition_[tensor.other]);
    }
    for (const MapperTables::Tensor& tensor : entry.outputs) {
      last = std::min(last, partition_[tensor.other]);
    }
    return {first, last};
  }

  bool has_room(std::uint32_t kernel, std::uint32_t partition) const {
    if (members_[partition] == 0) return true;
    return members_[partition] < most_ &&
           sram_bytes_[partition] + sram_bytes(kernel, partition) <= capacity_;
  }

  void move(std::uint32_t kernel, std::uint32_t partition) {
    std::uint32_t& from = partition_[kernel];
    sram_bytes_[from] -= sram_bytes(kernel, from);
    sram_bytes_[partition] += sram_bytes(kernel, partition);
    --members_[from];
    ++members_[partition];
    from = partition;
  }

  /// What more is read and written when the kernel moves.
  double added_bytes(std::uint32_t kernel, std::uint32_t to) {
    const std::uint32_t from = partition_[kernel];
    const MapperTables::Kernel& entry = tables_.kernels[kernel];
    double bytes = 0;
    if (!tables_.rules.share_tensors) {
      const auto add = [&](const MapperTables::Tensor& tensor) {
        if (is_in(tensor, from)) bytes += 2 * tensor.bytes;
        if (is_in(tensor, to)) bytes -= 2 * tensor.bytes;
      };
      for (const MapperTables::Tensor& tensor : entry.inputs) add(tensor);
      for (const MapperTables::Tensor& tensor : entry.outputs) add(tensor);
      return bytes;
    }
    bytes -= shared_bytes(kernel);
    for (const MapperTables::Tensor& tensor : entry.inputs) bytes -= shared_bytes(tensor.other);
    partition_[kernel] = to;
    bytes += shared_bytes(kernel);
    for (const MapperTables::Tensor& tensor : entry.inputs) bytes += shared_bytes(tensor.other);
    partition_[kernel] = from;
    return bytes;
  }

 private:
  bool is_in(const MapperTables::Tensor& tensor, std::uint32_t partition) const {
    return partition_[tensor.other] == partition;
  }

  /// What the kernel takes of a partition besides the others there.
  double sram_bytes(std::uint32_t kernel, std::uint32_t partition) const {
    const MapperTables::Kernel& entry = tables_.kernels[kernel];
    double bytes = entry.weight_bytes;
    const auto add = [&](const MapperTables::Tensor& tensor) {
      bytes += is_in(tensor, partition) ? tensor.inner_bytes - tensor.crossing_bytes
                                        : tensor.crossing_bytes;
    };
    for (const MapperTables::Tensor& tensor : entry.inputs) add(tensor);
    for (const MapperTables::Tensor& tensor : entry.outputs) add(tensor);
    return bytes;
  }

  /// Of the tensor that a kernel writes.
  double shared_bytes(std::uint32_t writer) {
    readers_.clear();
    for (const MapperTables::Tensor& tensor : tables_.kernels[writer].outputs) {
      const std::uint32_t reader = partition_[tensor.other];
      if (reader == partition_[writer]) continue;
      if (std::find(readers_.begin(), readers_.end(), reader) == readers_.end()) {
        readers_.push_back(reader);
      }
    }
    const double times = readers_.empty() ? 0 : static_cast<double>(readers_.size()) + 1;
    return times * tables_.kernels[writer].output_bytes;
  }

  const MapperTables& tables_;
  double capacity_;
  std::int64_t most_;
  std::vector<std::uint32_t> partition_;
  std::vector<double> sram_bytes_;
  std::vector<std::int64_t> members_;
  std::uint32_t first_waiting_ = 0;
  std::vector<std::uint32_t> readers_;
};

double mean_tensor_bytes(const MapperTables& tables) {
  double bytes = 0;
  std::size_t count = 0;
  for (const MapperTables::Kernel& kernel : tables.kernels) {
    for (const MapperTables::Tensor& tensor : kernel.outputs) bytes += tensor.bytes;
    count += kernel.outputs.size();
  }
  return count == 0 ? 0 : bytes / static_cast<double>(count);
}

}  // namespace

std::vector<std::uint32_t> anneal_partitions(const MapperTables& tables,
                                             std::span<const std::uint32_t> order,
                                             std::span<const std::uint32_t> ends,
                                             const AnnealingBudget& budget) {
  const auto count = static_cast<std::uint32_t>(order.size());
  Partitions partitions(tables, order, ends);
  std::vector<std::uint32_t> best(count), place(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    place[order[i]] = i;
    best[i] = partitions.of(i);
  }
  const double mean = mean_tensor_bytes(tables);
  double bytes = 0, least_bytes = -mean / 1000;
  std::mt19937_64 random(1);
  const std::int64_t moves = std::min(budget.most_moves, budget.moves_per_kernel * count);
  for (std::int64_t cooling = 0; cooling < kCoolings; ++cooling) {
    const double temperature =
        mean * kHottest *
        std::pow(kColdest / kHottest, static_cast<double>(cooling) / (kCoolings - 1));
    for (std::int64_t move = 0; move < moves / kCoolings; ++move) {
      const auto kernel = static_cast<std::uint32_t>(random() % count);
      const auto [first, last] = partitions.range(kernel);
      if (first == last) continue;
      const auto to = first + static_cast<std::uint32_t>(random() % (last - first + 1));
      if (to == partitions.of(kernel)) continue;
      const double added = partitions.added_bytes(kernel, to);
      if (added > 0) {
        const double chance = static_cast<double>(random() >> 11U) * 0x1p-53;
        if (chance >= std::exp(-added / temperature)) continue;
      }
      if (!partitions.has_room(kernel, to)) continue;
      partitions.move(kernel, to);
      bytes += added;
      if (bytes >= least_bytes) continue;
      least_bytes = bytes - mean / 1000;
      for (std::uint32_t i = 0; i < count; ++i) best[i] = partitions.of(i);
    }
  }
  std::vector<std::uint32_t> result(order.begin(), order.end());
  std::stable_sort(result.begin(), result.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return best[a] < best[b]; });
  return result;
}

}  // namespace braid
