#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/program/dense_tensor.h"

namespace braid {

struct NamedTensor {
  std::string name;
  DenseTensor tensor;  ///< f64, f32 or f16, bf16, or whole numbers.
};

/// Writes tensors as safetensors: a header's length (8 bytes, little-endian), a JSON header with
/// each tensor's type, shape and place, and their bytes. Source: the format's description in
/// github.com/huggingface/safetensors, README.md. A whole file or none (write_file). `metadata`
/// stands in the header under "__metadata__".
void write_safetensors(const std::string& file, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The tensors of such a file's content, as read_safetensors(); `file` is for messages.
std::vector<NamedTensor> tensors_of(std::string_view content, const std::string& file,
                                    std::map<std::string, std::string>* metadata = nullptr);

/// Reads such a file, in the order in which the tensors lie, and its metadata where they are asked
/// for. Throws Error.
std::vector<NamedTensor> read_safetensors(const std::string& file,
                                          std::map<std::string, std::string>* metadata = nullptr);

}  // namespace braid
