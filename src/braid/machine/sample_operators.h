#pragma once

#include <string>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// An operator to be measured: a graph that has it alone, in f32.
struct SampleOperator {
  std::string name;  ///< "GEMM 256 x 1024 x 1024", "Gelu of 64 KiB".
  Graph graph;
};

/// The operators that a chip's figures are fitted to: GEMMs from 64 to 1024 wide that fill whole
/// tiles or do not, sums of two tensors from 4 KiB to `largest_bytes` each, Gelu, softmax and layer
/// normalisation of a few sizes, attention. Sizes grow by powers of four.
std::vector<SampleOperator> sample_operators(double largest_bytes);

}  // namespace braid
