#include "braid/dataflow/sharding_tables.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {
namespace {

bool has(std::uint64_t allowed, std::size_t option) { return (allowed >> option & 1U) != 0; }

/// For each number of tiles the fewer cycles of two curves.
TileCurve faster_of(const TileCurve& a, const TileCurve& b) {
  TileCurve both;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both),
             [](const TileStep& one, const TileStep& other) {
               return std::pair(one.tiles, one.cycles) < std::pair(other.tiles, other.cycles);
             });
  TileCurve faster;
  for (const TileStep& step : both) {
    if (faster.empty() || step.cycles < faster.back().cycles) faster.push_back(step);
  }
  return faster;
}

/// Takes from `mine` what another option has less of.
void take_least(ChipKernel& mine, const ChipKernel& other) {
  mine.flops = std::min(mine.flops, other.flops);
  mine.weight_bytes = std::min(mine.weight_bytes, other.weight_bytes);
  mine.dram_bytes = std::min(mine.dram_bytes, other.dram_bytes);
}

}  // namespace

ShardingTables::ShardingTables(const DataflowSetup& setup, const JobRules& job,
                               const MappingRules& mapping)
    : options(setup.graph.kernels.size()) {
  const KernelGraph& graph = setup.graph;
  const ShardingJob sharding{graph,           setup.fabric,
                             job.collectives, job_time(setup, 0, job).micro_batches,
                             setup.job.tile,  shard_axes(setup.fabric)};
  const double rate = mapping.compute_fraction * peak_flops_per_s(setup.chip);
  const double seconds_per_cycle = 1 / (setup.chip.clock_hz * mapping.compute_fraction);
  std::map<std::tuple<bool, std::int64_t, std::int64_t, std::int64_t>, std::size_t> known;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Kernel& kernel = graph.kernels[i];
    const std::vector<KernelDims> shardings =
        option_dims(kernel, job.grid_sharding, sharding.axes.size());
    assert(shardings.size() <= 64);
    options[i].reserve(shardings.size());
    for (const KernelDims& dims : shardings) {
      Option option{dims, kernel_share(sharding, kernel, dims), 0, 0};
      const ChipKernel& share = option.share.kernel;
      option.alone_s = share.flops / rate;
      if (mapping.whole_tiles) {
        const auto [entry, is_new] = known.try_emplace(
            {share.matrix, share.rows, share.depth, share.columns}, curves.size());
        if (is_new) curves.push_back(tile_curve(share, setup.chip));
        option.curve = entry->second;
        option.alone_s = curves[option.curve].back().cycles * seconds_per_cycle;
      }
      options[i].push_back(std::move(option));
    }
  }
  const std::vector<std::int32_t> levels = waiting_levels(graph);
  tensors.reserve(graph.tensors.size());
  for (const KernelTensor& edge : graph.tensors) {
    Tensor tensor;
    tensor.from = static_cast<std::size_t>(edge.from);
    tensor.to = static_cast<std::size_t>(edge.to);
    tensor.buffers = levels[tensor.to] - levels[tensor.from] + 1;
    const Kernel& writer = graph.kernels[tensor.from];
    const Kernel& reader = graph.kernels[tensor.to];
    LayoutChanges changes(output_elements(writer) * graph.word_bytes, sharding.axes, setup.fabric,
                          job.collectives);
    tensor.changes.reserve(options[tensor.from].size() * options[tensor.to].size());
    for (const Option& out : options[tensor.from]) {
      for (const Option& in : options[tensor.to]) {
        tensor.changes.push_back(
            changes.of(output_layout(writer, out.dims),
                       input_layout(reader, in.dims, writer, graph.word_bytes)));
      }
    }
    tensors.push_back(std::move(tensor));
  }
}

std::size_t ShardingTables::option_of(std::size_t kernel, const KernelDims& dims) const {
  const auto found = std::find_if(options[kernel].begin(), options[kernel].end(),
                                  [&](const Option& option) { return option.dims == dims; });
  assert(found != options[kernel].end());
  return static_cast<std::size_t>(found - options[kernel].begin());
}

BoxWork box_work(const ShardingTables& tables, const ShardingBox& box, const DataflowSetup& setup,
                 const JobRules& job, const MappingRules& mapping) {
  BoxWork result;
  const std::size_t count = box.size();
  ChipWork& work = result.work;
  work.kernels.reserve(count);
  std::vector<double> bytes(count, kInfinity), tile_bytes(count, kInfinity);
  // Messages by kernel and option, its own and for what it reads.
  std::vector<std::vector<double>> message_s(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& options = tables.options[i];
    const auto first = static_cast<std::size_t>(std::countr_zero(box[i]));
    work.kernels.push_back(options[first].share.kernel);
    if (mapping.whole_tiles) result.curves.push_back(tables.curves[options[first].curve]);
    message_s[i].assign(options.size(), kInfinity);
    for (std::size_t o = first; o < options.size(); ++o) {
      if (!has(box[i], o)) continue;
      const KernelShare& share = options[o].share;
      take_least(work.kernels[i], share.kernel);
      bytes[i] = std::min(bytes[i], share.output.bytes);
      tile_bytes[i] = std::min(tile_bytes[i], share.output.tile_bytes);
      message_s[i][o] = share.kernel.network_s;
      if (mapping.whole_tiles && o != first) {
        result.curves[i] = faster_of(result.curves[i], tables.curves[options[o].curve]);
      }
    }
  }
  work.tensors.reserve(tables.tensors.size());
  for (const ShardingTables::Tensor& tensor : tables.tensors) {
    ChipTensor mine;
    mine.from = static_cast<std::int32_t>(tensor.from);
    mine.to = static_cast<std::int32_t>(tensor.to);
    mine.bytes = bytes[tensor.from];
    mine.tile_bytes = tile_bytes[tensor.from];
    mine.buffers = tensor.buffers;
    work.tensors.push_back(mine);
    for (std::size_t in = 0; in < message_s[tensor.to].size(); ++in) {
      if (!has(box[tensor.to], in)) continue;
      double least = kInfinity;
      for (std::size_t out = 0; out < tables.options[tensor.from].size(); ++out) {
        if (!has(box[tensor.from], out)) continue;
        least = std::min(least, tables.change(tensor, out, in).seconds);
      }
      message_s[tensor.to][in] += least;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    work.kernels[i].network_s = *std::min_element(message_s[i].begin(), message_s[i].end());
  }
  add_state(setup, job, work);
  return result;
}

}  // namespace braid
