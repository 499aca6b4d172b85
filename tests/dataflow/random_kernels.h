#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "braid/chip/kernel_graph.h"
#include "braid/dataflow/fabric.h"

namespace braid {

/// So many dimensions of tensor parallelism and perhaps some of data parallelism between them.
inline Fabric random_fabric(std::mt19937_64& dice, std::size_t axes) {
  Fabric fabric;
  fabric.latency_s = 1e-7 * static_cast<double>(dice() % 20);
  for (std::size_t a = 0; a < axes; ++a) {
    const auto shape = static_cast<FabricShape>(dice() % 3);
    const auto size = static_cast<std::int64_t>(dice() % 3 + 2);
    const double rate = 1e9 * static_cast<double>(dice() % 40 + 1);
    fabric.dimensions.push_back({shape, size, rate, FabricRole::tensor});
    if (dice() % 4 == 0) {
      fabric.dimensions.push_back({FabricShape::ring, 2, 1e9, FabricRole::data});
    }
  }
  return fabric;
}

/// Products and elementwise kernels in a random order; each reads one or two of those before.
inline KernelGraph random_kernels(std::mt19937_64& dice, std::size_t count) {
  KernelGraph graph;
  for (std::size_t i = 0; i < count; ++i) {
    Kernel kernel;
    kernel.name = "kernel" + std::to_string(i);
    kernel.matrix = dice() % 3 != 0;
    kernel.outer = dice() % 4 == 0 ? 8 : 1;
    kernel.m = 64 << dice() % 5;
    kernel.n = 64 << dice() % 4;
    kernel.k = kernel.matrix ? 64 << dice() % 5 : 1;
    kernel.weights = kernel.matrix && dice() % 2 == 0;
    kernel.tiled = dice() % 2 == 0 ? KernelDim::n : KernelDim::none;
    kernel.first_input_bytes =
        static_cast<double>(kernel.outer * kernel.m) * static_cast<double>(kernel.k) * 2;
    graph.kernels.push_back(std::move(kernel));
    for (std::size_t reads = 0; i > 0 && reads < 1 + dice() % 2; ++reads) {
      graph.tensors.push_back(
          {static_cast<std::int32_t>(dice() % i), static_cast<std::int32_t>(i)});
    }
  }
  return graph;
}

}  // namespace braid
