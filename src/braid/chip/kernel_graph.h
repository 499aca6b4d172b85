#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

/// The dimensions of a kernel: `outer` independent GEMMs of an M x K with a K x N matrix, giving
/// M x N. An elementwise kernel has K = 1. `none` stands for no dimension.
enum class KernelDim : std::uint8_t { outer, m, k, n, none };

/// What a kernel sends between chips besides what its sharding asks for.
enum class KernelTransfer : std::uint8_t {
  all_reduce,
  all_gather,
  all_to_all,
  all_reduce_per_batch,  ///< Gradients: once per global batch, over the data-parallel chips.
  broadcast,
  point_to_point
};

struct KernelMessage {
  KernelTransfer transfer = KernelTransfer::all_reduce;
  double bytes = 0;
  friend bool operator==(const KernelMessage&, const KernelMessage&) = default;
};

/// A unit of work of a dataflow graph, whole: before it is sharded over chips (DFModel, section
/// III).
struct Kernel {
  std::string name;
  bool matrix = true;     ///< A GEMM on systolic tiles; else elementwise on their lanes.
  bool backward = false;  ///< Of the backward pass.
  bool weights = false;   ///< The M x K operand is parameters.
  std::int64_t outer = 1, m = 1, k = 1, n = 1;
  double first_input_bytes = 0;       ///< Of a GEMM of two tensors: size of the one that is M x K.
  KernelDim tiled = KernelDim::none;  ///< The dimension that is streamed in tiles.
  double dram_bytes = 0;              ///< Further DRAM traffic per chip: table look-ups.
  std::vector<KernelMessage> messages;
  double gradient_bytes = 0;  ///< Gradients that it adds up on chip and then writes to DRAM.
  bool writes_out = false;    ///< What it makes goes to DRAM: its readers only wait for it.
  bool late = false;          ///< Runs right before its first reader, not as soon as it can.
  std::int32_t pinned_partition = -1;  ///< The partition that a given mapping puts it in, or -1.
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The output of kernel `from`, read by kernel `to`; indices into KernelGraph::kernels. An output
/// with several readers is several tensors.
struct KernelTensor {
  std::int32_t from = 0;
  std::int32_t to = 0;
  friend bool operator==(const KernelTensor&, const KernelTensor&) = default;
};

/// A directed acyclic graph of kernels: one layer of a model, say, for one micro-batch.
struct KernelGraph {
  std::vector<Kernel> kernels;
  std::vector<KernelTensor> tensors;
  double word_bytes = 2;
  friend bool operator==(const KernelGraph&, const KernelGraph&) = default;
};

/// For a >= 0 and b > 0.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Multiply and add count as two; an elementwise kernel does one operation per element.
double kernel_flops(const Kernel& kernel);
/// Elements of the output.
double output_elements(const Kernel& kernel);
/// Elements of the parameters, 0 without them. M counts `outer` times.
double weight_elements(const Kernel& kernel);

/// For each kernel the length of the longest path that leads to it; empty when the tensors form a
/// cycle. Linear time. Needs indices in range.
std::vector<std::int32_t> kernel_levels(std::size_t kernels,
                                        const std::vector<KernelTensor>& tensors);

/// The same for a graph without cycles, but that late kernels lie one before their first reader:
/// what tiles that wait between a writer and a reader are counted by.
std::vector<std::int32_t> waiting_levels(const KernelGraph& graph);

/// Throws Error that names the kernel, when there is none, one has a dimension below 1 or above
/// 2^40, more than 2^62 multiplications in all, a size that is negative or not finite; when a
/// tensor's ends are out of range, a forward kernel reads a backward one's, or the tensors form a
/// cycle.
void check_kernel_graph(const KernelGraph& graph, const std::string& file);

}  // namespace braid
