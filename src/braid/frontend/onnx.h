#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "braid/graph/graph.h"

namespace braid {

enum class OnnxOperators : std::uint8_t {
  as_written,  ///< One operator for each node that does something.
  fused,       ///< Then fuse_operators: attention, activations and norms put together again.
};

/// The graph of an ONNX file, with shapes worked out from its inputs'. `dims` gives sizes to
/// symbolic dimensions.
///
/// Initializers of real numbers with at least one dimension, and quantized ones (8 bits) with at
/// least two, are parameters; reshaped, transposed, cast or dequantized they stay the same
/// parameter. Statistics of batch normalisation, scales, scalars, whole numbers and all that is
/// computed from shapes and constants alone are constants: they are worked out while the file is
/// read and cost nothing. Weights are never read.
///
/// The graph's samples are the size of the symbolic dimension named batch, batch_size or N, else
/// the first dimension of the first input. It has no sequence length.
///
/// Throws Error, naming the node or value: no ONNX file, symbolic dimensions without a value or
/// unknown ones with one, inputs without shapes, shapes that depend on what is computed at run time
/// (unless the file declares them), shapes that do not fit each other, control flow, sequences,
/// operations without a rule, nodes out of order or on a cycle, values defined twice.
/// Linear in the number of nodes, as far as they are in order and small.
Graph graph_from_onnx(const std::string& path, const std::map<std::string, std::int64_t>& dims,
                      OnnxOperators operators = OnnxOperators::fused);

/// The same for the bytes of a file; `file` is for messages.
Graph graph_from_onnx_bytes(std::string_view bytes, const std::string& file,
                            const std::map<std::string, std::int64_t>& dims,
                            OnnxOperators operators = OnnxOperators::fused);

}  // namespace braid
