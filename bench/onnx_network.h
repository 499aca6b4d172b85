#pragma once

#include <cstdint>
#include <string>

namespace braid {

/// An ONNX file of `blocks` blocks of four operators over [batch × width]: a product with a weight,
/// a bias, an activation and a skip. Every tenth block has another activation, so that not all are
/// equal. The weights are in no file.
std::string onnx_network(std::int64_t blocks, std::int64_t width);

}  // namespace braid
