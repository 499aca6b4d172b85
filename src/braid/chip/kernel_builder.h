#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "braid/chip/kernel_graph.h"
#include "braid/graph/graph.h"

namespace braid {

/// `outer` GEMMs of M x K with K x N on matrix tiles; rows N are streamed. Sizes below 1 count
/// as 1.
Kernel gemm_kernel(std::string name, std::int64_t outer, std::int64_t m, std::int64_t k,
                   std::int64_t n, bool weights);
/// One operation on each of outer x width x rows elements.
Kernel elementwise_kernel(std::string name, std::int64_t outer, std::int64_t width,
                          std::int64_t rows);

/// The tensors that an attention operator's GEMMs read; one tensor may be several of them.
struct AttentionOperands {
  TensorId queries = -1, keys = -1, values = -1;
};
AttentionOperands attention_operands(const Graph& graph, const Operator& op, const Attention& kind);

/// A kernel graph under construction, which knows what kernel makes which tensor of a graph of
/// operators. What no kernel makes comes from DRAM.
class KernelBuilder {
 public:
  KernelBuilder(const Graph& graph, double word_bytes);

  const Graph& graph() const { return graph_; }
  KernelGraph& kernels() { return kernels_; }

  /// Adds a kernel and returns its number.
  std::int32_t push(Kernel kernel);
  Kernel& kernel(std::int32_t number) { return kernels_.kernels[static_cast<std::size_t>(number)]; }
  /// A tensor from one kernel to another; twice is once.
  void connect(std::int32_t from, std::int32_t to);

  /// `view` shows the same numbers as `tensor`.
  void show(TensorId view, TensorId tensor);
  /// The tensor that this one shows, itself if it is no view.
  TensorId shown(TensorId tensor) const { return shown_[static_cast<std::size_t>(tensor)]; }

  void set_writer(TensorId tensor, std::int32_t kernel);
  /// The kernel that makes a tensor, -1 for none.
  std::int32_t writer(TensorId tensor) const;
  /// `kernel` reads a tensor, from its writer or from DRAM.
  void read(TensorId tensor, std::int32_t kernel);

  double bytes(TensorId tensor) const;
  /// Elementwise over a tensor, rows of its last dimension.
  Kernel over(std::string name, TensorId tensor) const;

 private:
  const Graph& graph_;
  KernelGraph kernels_;
  std::vector<TensorId> shown_;
  std::vector<std::int32_t> writer_;  ///< By tensor that is shown.
  std::set<std::pair<std::int32_t, std::int32_t>> connected_;
};

}  // namespace braid
