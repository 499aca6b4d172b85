#include "braid/dataflow/sharding.h"

#include <algorithm>
#include <cmath>

#include "braid/chip/elimination.h"
#include "braid/dataflow/shard_messages.h"

namespace braid {
namespace {

double tensor_bytes(const Kernel& writer, double word_bytes) {
  return output_elements(writer) * word_bytes;
}

/// Published sizes are rounded to eight digits.
constexpr double kPublishedRounding = 1e-6;

bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= kPublishedRounding * std::max(a, b);
}

/// The costs that a ShardingGoal gives to kernels and tensors.
class Prices {
 public:
  Prices(const KernelGraph& graph, const Fabric& fabric, const CollectiveRules& rules,
         const ShardingGoal& goal)
      : graph_(graph), fabric_(fabric), rules_(rules), goal_(goal), axes_(shard_axes(fabric)) {}

  RankedCost of_kernel(const Kernel& kernel, const KernelDims& dims) const {
    const ShardMessage sum = reduction(kernel, dims, graph_.word_bytes, axes_, fabric_, rules_);
    const bool sharded_elementwise = !kernel.matrix && dims != KernelDim::none;
    if (goal_.bytes_only) return {sum.bytes, 0, sharded_elementwise ? 1.0 : 0.0};
    double parts = 1;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (dims.along[a] != KernelDim::none) parts *= static_cast<double>(axes_[a].size);
    }
    const double rate = kernel.matrix ? goal_.matrix_s_per_flop : goal_.elementwise_s_per_flop;
    return {sum.seconds + 1 / parts * rate * kernel_flops(kernel), 0, 0};
  }

  LayoutChanges changes_of(const Kernel& writer) const {
    return {tensor_bytes(writer, graph_.word_bytes), axes_, fabric_, rules_};
  }

  RankedCost of_tensor(const Kernel& writer, const KernelDims& out, const Kernel& reader,
                       const KernelDims& in, LayoutChanges& changes) const {
    const TensorLayout layout = output_layout(writer, out);
    const ShardMessage change =
        changes.of(layout, input_layout(reader, in, writer, graph_.word_bytes));
    if (goal_.bytes_only) return {change.bytes, change.bytes > 0 ? 1.0 : 0.0, 0};
    double parts = 1;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (layout[a] != ShardLayout::whole) parts *= static_cast<double>(axes_[a].size);
    }
    const double bytes = tensor_bytes(writer, graph_.word_bytes);
    return {change.seconds + goal_.s_per_byte * bytes * (1 / parts), 0, 0};
  }

 private:
  const KernelGraph& graph_;
  const Fabric& fabric_;
  const CollectiveRules& rules_;
  const ShardingGoal& goal_;
  std::vector<FabricDimension> axes_;
};

PairwiseProblem problem_of(const KernelGraph& graph, const Prices& prices,
                           const std::vector<std::vector<KernelDims>>& options) {
  PairwiseProblem problem;
  problem.costs.resize(graph.kernels.size());
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    for (const KernelDims& dim : options[i]) {
      problem.costs[i].push_back(prices.of_kernel(graph.kernels[i], dim));
    }
  }
  problem.pairs.reserve(graph.tensors.size());
  for (const KernelTensor& tensor : graph.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    PairwiseProblem::Pair pair{from, to, {}};
    const Kernel& writer = graph.kernels[from];
    LayoutChanges changes = prices.changes_of(writer);
    for (const KernelDims& out : options[from]) {
      for (const KernelDims& in : options[to]) {
        pair.costs.push_back(prices.of_tensor(writer, out, graph.kernels[to], in, changes));
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
  const std::size_t axes = shard_axes(fabric).size();
  std::vector<std::vector<KernelDims>> options;
  options.reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) {
    options.push_back(option_dims(kernel, goal.by_axis, axes));
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

std::vector<KernelDims> grid_options(const Kernel& kernel, std::size_t axes) {
  const bool gemms = kernel.outer > 1 && kernel.tiled != KernelDim::outer;
  Kernel one = kernel;
  one.outer = 1;
  std::vector<KernelDim> dims = sharding_options(one);
  if (gemms) {
    // Where nothing else could be sharded, GEMMs still can.
    if (kernel.weights) std::erase(dims, KernelDim::none);
    std::erase(dims, KernelDim::m);
    dims.insert(dims.begin(), KernelDim::outer);
  }
  std::vector<KernelDims> options;
  std::vector<std::size_t> choice(axes, 0);
  for (bool more = true; more;) {
    KernelDims option;
    for (std::size_t a = 0; a < option.along.size(); ++a) {
      option.along[a] = dims[choice[std::min(a, axes - 1)]];
    }
    const auto& along = option.along;
    if (!gemms || std::find(along.begin(), along.end(), KernelDim::outer) != along.end()) {
      options.push_back(option);
    }
    more = false;
    for (std::size_t a = 0; a < axes && !more; ++a) {
      more = ++choice[a] < dims.size();
      if (!more) choice[a] = 0;
    }
  }
  return options;
}

std::vector<FabricDimension> shard_axes(const Fabric& fabric) {
  std::vector<FabricDimension> axes;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (dimension.role == FabricRole::tensor && dimension.size > 1) axes.push_back(dimension);
  }
  if (!axes.empty() && (axes.size() > 3 || fabric.domain_size > 0)) {
    axes.resize(1);
    axes.front().size = degree_of(fabric, FabricRole::tensor);
  }
  return axes;
}

ShardShape shard_shape(const Kernel& kernel, const KernelDims& dims,
                       std::span<const FabricDimension> axes) {
  ShardShape shape{kernel.outer, kernel.m, kernel.k, kernel.n};
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const KernelDim dim = dims.along[a];
    if (dim == KernelDim::outer) shape.outer = ceil_div(shape.outer, axes[a].size);
    if (dim == KernelDim::m) shape.m = ceil_div(shape.m, axes[a].size);
    if (dim == KernelDim::k) shape.k = ceil_div(shape.k, axes[a].size);
    if (dim == KernelDim::n) shape.n = ceil_div(shape.n, axes[a].size);
  }
  return shape;
}

std::vector<KernelDims> option_dims(const Kernel& kernel, bool by_axis, std::size_t axes) {
  if (axes == 0) return {KernelDim::none};
  if (by_axis && axes > 1) return grid_options(kernel, axes);
  const std::vector<KernelDim> dims = sharding_options(kernel);
  return {dims.begin(), dims.end()};
}

KernelShare kernel_share(const ShardingJob& job, const Kernel& kernel, const KernelDims& dims) {
  const double word_bytes = job.graph.word_bytes;
  const ShardShape shape = shard_shape(kernel, dims, job.axes);
  KernelShare share;
  share.kernel = chip_kernel(kernel, shape, word_bytes);
  ChipKernel& mine = share.kernel;
  share.message_s = messages_s(kernel, shape, word_bytes, job.fabric, job.rules, job.micro_batches);
  mine.network_s = share.message_s;
  for (const KernelMessage& message : kernel.messages) mine.network_bytes += message.bytes;
  const ShardMessage sum = reduction(kernel, dims, word_bytes, job.axes, job.fabric, job.rules);
  mine.network_s += sum.seconds;
  mine.network_bytes += sum.bytes;
  share.output = share_output(kernel, shape, word_bytes, job.tile);
  return share;
}

ChipWork shard_kernels(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                       const CollectiveRules& rules, double micro_batches, std::int64_t tile) {
  const ShardingJob job{graph, fabric, rules, micro_batches, tile, shard_axes(fabric)};
  ChipWork work;
  std::vector<ShareOutput> outputs;
  work.kernels.reserve(graph.kernels.size());
  outputs.reserve(graph.kernels.size());
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    KernelShare share = kernel_share(job, graph.kernels[i], dims[i]);
    outputs.push_back(share.output);
    work.kernels.push_back(std::move(share.kernel));
  }
  work.tensors = chip_tensors(graph, outputs);
  for (ChipTensor& mine : work.tensors) {
    const auto from = static_cast<std::size_t>(mine.from);
    const auto to = static_cast<std::size_t>(mine.to);
    const Kernel& writer = graph.kernels[from];
    LayoutChanges changes(tensor_bytes(writer, graph.word_bytes), job.axes, fabric, rules);
    const ShardMessage change =
        changes.of(output_layout(writer, dims[from]),
                   input_layout(graph.kernels[to], dims[to], writer, graph.word_bytes));
    mine.network_s = change.seconds;
    mine.network_bytes = change.bytes;
  }
  return work;
}

}  // namespace braid
