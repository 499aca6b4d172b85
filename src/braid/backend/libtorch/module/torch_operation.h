#pragma once

#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include "braid/backend/libtorch/module/torch_node.h"

namespace braid {

/// In the order of a node's operands; undefined where one is left out.
using TorchOperands = std::span<const at::Tensor>;

/// What libtorch is called for a node.
struct TorchOperation {
  /// A tensor for each output.
  std::function<std::vector<at::Tensor>(TorchOperands)> compute;
  /// The same into memory that is there; empty where the library has no such function.
  std::function<void(TorchOperands, at::Tensor& out)> into = {};
};

/// Of one output.
TorchOperation torch_operation(std::function<at::Tensor(TorchOperands)> compute,
                               std::function<void(TorchOperands, at::Tensor&)> into = {});

struct TorchEntry {
  /// Reads attributes and constants. Throws Error for what is not done.
  TorchOperation (*make)(const TorchNode&);
  bool is_elementwise = false;  ///< As BackendPattern says.
};
using TorchEntries = std::map<std::string_view, TorchEntry>;

/// All operations of ONNX's own domain that are done, by name.
const TorchEntries& torch_entries();

// Its parts.
TorchEntries torch_pointwise_entries();  ///< Arithmetic, comparisons, activations.
TorchEntries torch_movement_entries();   ///< What moves, joins and looks up numbers.
TorchEntries torch_window_entries();     ///< Convolutions, pooling, resizing.
TorchEntries torch_row_entries();        ///< GEMMs, normalisations, reductions.

/// x · weightᵀ + bias as frameworks do it: rows of `x` by a matrix [outputs × k].
TorchOperation torch_linear(const at::Tensor& weight, const at::Tensor& bias);

}  // namespace braid
