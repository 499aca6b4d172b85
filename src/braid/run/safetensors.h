#pragma once

#include <string>
#include <vector>

#include "braid/program/dense_tensor.h"

namespace braid {

struct NamedTensor {
  std::string name;
  DenseTensor tensor;  ///< f64, f32 or f16, bf16, or whole numbers.
};

/// Writes tensors as safetensors: a header's length (8 bytes, little-endian), a JSON header with
/// each tensor's type, shape and place, and their bytes. Source: the format's description in
/// github.com/huggingface/safetensors, README.md. A whole file or none (write_file).
void write_safetensors(const std::string& file, const std::vector<NamedTensor>& tensors);

/// Reads such a file, in the order in which the tensors lie. Throws Error.
std::vector<NamedTensor> read_safetensors(const std::string& file);

}  // namespace braid
