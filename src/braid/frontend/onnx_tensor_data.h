#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/frontend/onnx_model.h"

namespace braid {

/// Gathers the fields of a TensorProto and turns the small ones' data into numbers, and where all
/// are asked for everybody's into bytes.
struct OnnxTensorData {
  explicit OnnxTensorData(OnnxTensors which) : tensors(which) {}

  /// Of data that is looked at: shapes, axes, indices.
  static constexpr std::uint32_t most_bytes = 8192;

  OnnxType type = OnnxType::undefined;
  std::vector<std::int64_t> dims;
  std::string raw;  ///< The raw data, if at most `most_raw_bytes()`.
  std::optional<std::uint32_t> raw_size;
  bool is_external = false;
  std::string location;
  std::int64_t offset_bytes = 0;  ///< In the file at `location`.
  OnnxTensors tensors = OnnxTensors::small;

  std::uint32_t most_raw_bytes() const;
  static constexpr std::size_t most_dimensions = 64;

  void add_dim(std::int64_t size);
  void add(std::int64_t value);
  void add(double value);

  /// What is wrong, or "".
  std::string problem() const;
  /// `folder` is that of the model.
  OnnxTensor tensor(const std::string& folder) const;

 private:
  std::shared_ptr<const std::string> bytes(const std::string& folder) const;

  std::vector<std::int64_t> integers_;  ///< The first of them, or all.
  std::vector<double> reals_;
  std::int64_t added_ = 0;
  bool too_many_dims_ = false;
};

}  // namespace braid
