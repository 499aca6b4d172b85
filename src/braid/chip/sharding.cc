#include "braid/chip/sharding.h"

#include <algorithm>
#include <cmath>

#include "braid/chip/elimination.h"

namespace braid {
namespace {

double tensor_bytes(const Kernel& writer, double word_bytes) {
  return output_elements(writer) * word_bytes;
}

// Published sizes are rounded to eight digits.
bool nearly_equal(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(a, b); }

/// What a change of layout sends.
struct Conversion {
  double bytes = 0;
  double seconds = 0;
};

Conversion conversion(ShardLayout from, ShardLayout to, double bytes, const Fabric& fabric,
                      const CollectiveRules& rules) {
  if (from == to || from == ShardLayout::whole) return {};
  const double seconds = to == ShardLayout::whole
                             ? all_gather_s(bytes, FabricRole::tensor, fabric, rules)
                             : all_to_all_s(bytes, FabricRole::tensor, fabric, rules);
  return {bytes, seconds};
}

/// The costs that a ShardingGoal gives to kernels and tensors.
class Prices {
 public:
  Prices(const KernelGraph& graph, const Fabric& fabric, const CollectiveRules& rules,
         const ShardingGoal& goal)
      : graph_(graph),
        fabric_(fabric),
        rules_(rules),
        goal_(goal),
        chips_(static_cast<double>(degree_of(fabric, FabricRole::tensor))) {}

  RankedCost of_kernel(const Kernel& kernel, KernelDim dim) const {
    const double bytes = dim == KernelDim::k ? tensor_bytes(kernel, graph_.word_bytes) : 0;
    const bool divided_elementwise = !kernel.matrix && dim != KernelDim::none;
    if (goal_.bytes_only) return {bytes, 0, divided_elementwise ? 1.0 : 0.0};
    const double share = dim == KernelDim::none ? 1 : 1 / chips_;
    const double rate = kernel.matrix ? 0 : goal_.elementwise_s_per_flop;
    return {all_reduce_s(bytes, FabricRole::tensor, fabric_, rules_) +
                share * rate * kernel_flops(kernel),
            0, 0};
  }

  RankedCost of_tensor(const Kernel& writer, KernelDim out, const Kernel& reader,
                       KernelDim in) const {
    const double bytes = tensor_bytes(writer, graph_.word_bytes);
    const ShardLayout layout = output_layout(writer, out);
    const Conversion change = conversion(
        layout, input_layout(reader, in, writer, graph_.word_bytes), bytes, fabric_, rules_);
    if (goal_.bytes_only) return {change.bytes, change.bytes > 0 ? 1.0 : 0.0, 0};
    const double share = layout == ShardLayout::whole ? 1 : 1 / chips_;
    return {change.seconds + goal_.s_per_byte * bytes * share, 0, 0};
  }

 private:
  const KernelGraph& graph_;
  const Fabric& fabric_;
  const CollectiveRules& rules_;
  const ShardingGoal& goal_;
  double chips_;
};

PairwiseProblem problem_of(const KernelGraph& graph, const Prices& prices,
                           const std::vector<std::vector<KernelDim>>& options) {
  PairwiseProblem problem;
  problem.costs.resize(graph.kernels.size());
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    for (const KernelDim dim : options[i]) {
      problem.costs[i].push_back(prices.of_kernel(graph.kernels[i], dim));
    }
  }
  problem.pairs.reserve(graph.tensors.size());
  for (const KernelTensor& tensor : graph.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    PairwiseProblem::Pair pair{from, to, {}};
    for (const KernelDim out : options[from]) {
      for (const KernelDim in : options[to]) {
        pair.costs.push_back(prices.of_tensor(graph.kernels[from], out, graph.kernels[to], in));
      }
    }
    problem.pairs.push_back(std::move(pair));
  }
  return problem;
}

double messages_s(const Kernel& kernel, const ShardShape& shape, double word_bytes,
                  const Fabric& fabric, const CollectiveRules& rules, double micro_batches) {
  double total = 0;
  for (const KernelMessage& message : kernel.messages) {
    if (message.transfer == KernelTransfer::all_reduce_per_batch) {
      const double elements = static_cast<double>(shape.outer) * static_cast<double>(shape.m) *
                              static_cast<double>(shape.n);
      total += all_reduce_s(elements * word_bytes, FabricRole::data, fabric, rules) / micro_batches;
    } else if (message.transfer == KernelTransfer::all_reduce) {
      total += all_reduce_s(message.bytes, FabricRole::tensor, fabric, rules);
    } else if (message.transfer == KernelTransfer::all_gather) {
      total += all_gather_s(message.bytes, FabricRole::tensor, fabric, rules);
    } else if (message.transfer == KernelTransfer::all_to_all) {
      total += all_to_all_s(message.bytes, FabricRole::tensor, fabric, rules);
    }
  }
  return total;
}

}  // namespace

ShardLayout output_layout(const Kernel& /*kernel*/, KernelDim dim) {
  switch (dim) {
    case KernelDim::outer:
    case KernelDim::m:
      return ShardLayout::rows;
    case KernelDim::n:
      return ShardLayout::columns;
    case KernelDim::k:
    case KernelDim::none:
      return ShardLayout::whole;
  }
  return ShardLayout::whole;
}

ShardLayout input_layout(const Kernel& reader, KernelDim dim, const Kernel& writer,
                         double word_bytes) {
  if (dim == KernelDim::none) return ShardLayout::whole;
  if (!reader.matrix) return output_layout(reader, dim);
  if (dim == KernelDim::outer) return ShardLayout::rows;
  if (reader.tiled == KernelDim::k) {
    return dim == KernelDim::k ? ShardLayout::columns : ShardLayout::rows;
  }
  const bool columns_operand =
      reader.weights || nearly_equal(tensor_bytes(writer, word_bytes), reader.first_input_bytes);
  if (columns_operand) {
    return dim == KernelDim::m   ? ShardLayout::whole
           : dim == KernelDim::k ? ShardLayout::rows
                                 : ShardLayout::columns;
  }
  return dim == KernelDim::m   ? ShardLayout::rows
         : dim == KernelDim::k ? ShardLayout::columns
                               : ShardLayout::whole;
}

std::vector<KernelDim> sharding_options(const Kernel& kernel) {
  if (kernel.outer > 1 && kernel.tiled != KernelDim::outer) return {KernelDim::outer};
  std::vector<KernelDim> options;
  if (!kernel.weights) options.push_back(KernelDim::none);
  if (kernel.m > 1 && kernel.tiled != KernelDim::m) options.push_back(KernelDim::m);
  if (kernel.k > 1 && kernel.tiled != KernelDim::k) options.push_back(KernelDim::k);
  if (kernel.n > 1 && kernel.tiled != KernelDim::n) options.push_back(KernelDim::n);
  if (options.empty()) options.push_back(KernelDim::none);
  return options;
}

ShardingResult find_sharding(const KernelGraph& graph, const Fabric& fabric,
                             const CollectiveRules& rules, const ShardingGoal& goal,
                             std::size_t most_entries) {
  const bool alone = degree_of(fabric, FabricRole::tensor) == 1;
  std::vector<std::vector<KernelDim>> options;
  options.reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) {
    options.push_back(alone ? std::vector{KernelDim::none} : sharding_options(kernel));
  }
  const PairwiseProblem problem = problem_of(graph, Prices(graph, fabric, rules, goal), options);
  std::optional<std::vector<std::size_t>> values = minimise(problem, most_entries);
  ShardingResult result;
  result.optimal = values.has_value();
  if (!values) values = descend(problem);
  result.cost = cost_of(problem, *values)[0];
  result.dims.reserve(values->size());
  for (std::size_t i = 0; i < values->size(); ++i) result.dims.push_back(options[i][(*values)[i]]);
  return result;
}

double sharding_cost(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                     const CollectiveRules& rules, const ShardingGoal& goal) {
  const Prices prices(graph, fabric, rules, goal);
  double total = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    total += prices.of_kernel(graph.kernels[i], dims[i])[0];
  }
  for (const KernelTensor& tensor : graph.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    total += prices.of_tensor(graph.kernels[from], dims[from], graph.kernels[to], dims[to])[0];
  }
  return total;
}

ShardShape shard_shape(const Kernel& kernel, KernelDim dim, std::int64_t chips) {
  ShardShape shape{kernel.outer, kernel.m, kernel.k, kernel.n};
  if (dim == KernelDim::outer) shape.outer = ceil_div(shape.outer, chips);
  if (dim == KernelDim::m) shape.m = ceil_div(shape.m, chips);
  if (dim == KernelDim::k) shape.k = ceil_div(shape.k, chips);
  if (dim == KernelDim::n) shape.n = ceil_div(shape.n, chips);
  return shape;
}

ChipKernel chip_kernel(const Kernel& kernel, const ShardShape& shape, double word_bytes) {
  ChipKernel mine;
  mine.name = kernel.name;
  mine.matrix = kernel.matrix;
  mine.backward = kernel.backward;
  mine.rows = shape.outer * shape.m;
  mine.depth = shape.k;
  mine.columns = shape.n;
  const double products = static_cast<double>(mine.rows) * static_cast<double>(shape.k);
  mine.flops = products * static_cast<double>(shape.n) * (kernel.matrix ? 2 : 1);
  if (kernel.weights) mine.weight_bytes = products * word_bytes;
  mine.dram_bytes = kernel.dram_bytes;
  mine.pinned_partition = kernel.pinned_partition;
  return mine;
}

ChipWork shard_kernels(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                       const CollectiveRules& rules, double micro_batches, std::int64_t tile) {
  const std::int64_t chips = degree_of(fabric, FabricRole::tensor);
  ChipWork work;
  std::vector<double> out_bytes, out_tile_bytes;
  work.kernels.reserve(graph.kernels.size());
  out_bytes.reserve(graph.kernels.size());
  out_tile_bytes.reserve(graph.kernels.size());
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const Kernel& kernel = graph.kernels[i];
    const ShardShape shape = shard_shape(kernel, dims[i], chips);
    ChipKernel mine = chip_kernel(kernel, shape, graph.word_bytes);
    mine.network_s = messages_s(kernel, shape, graph.word_bytes, fabric, rules, micro_batches);
    for (const KernelMessage& message : kernel.messages) mine.network_bytes += message.bytes;
    if (dims[i] == KernelDim::k && chips > 1) {
      const double bytes = tensor_bytes(kernel, graph.word_bytes);
      mine.network_s += all_reduce_s(bytes, FabricRole::tensor, fabric, rules);
      mine.network_bytes += bytes;
    }
    out_bytes.push_back(static_cast<double>(mine.rows) * static_cast<double>(mine.columns) *
                        graph.word_bytes);
    double tiles = 1;
    if (tile > 0 && kernel.tiled == KernelDim::n) {
      tiles = static_cast<double>(ceil_div(shape.n, std::min(tile, shape.n)));
    }
    if (tile > 0 && kernel.tiled == KernelDim::m) {
      tiles = static_cast<double>(ceil_div(shape.m, std::min(tile, shape.m)));
    }
    out_tile_bytes.push_back(out_bytes.back() / tiles);
    work.kernels.push_back(std::move(mine));
  }
  const std::vector<std::int32_t> levels = kernel_levels(graph.kernels.size(), graph.tensors);
  work.tensors.reserve(graph.tensors.size());
  for (const KernelTensor& tensor : graph.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    ChipTensor mine;
    mine.from = tensor.from;
    mine.to = tensor.to;
    mine.bytes = out_bytes[from];
    mine.tile_bytes = out_tile_bytes[from];
    mine.buffers = levels.empty() ? 2 : levels[to] - levels[from] + 1;
    if (chips > 1) {
      const Kernel& writer = graph.kernels[from];
      const Conversion change =
          conversion(output_layout(writer, dims[from]),
                     input_layout(graph.kernels[to], dims[to], writer, graph.word_bytes),
                     tensor_bytes(writer, graph.word_bytes), fabric, rules);
      mine.network_s = change.seconds;
      mine.network_bytes = change.bytes;
    }
    work.tensors.push_back(mine);
  }
  return work;
}

}  // namespace braid
