#include "braid/frontend/onnx_tensor_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/frontend/onnx_types.h"

namespace braid {
namespace {

constexpr std::size_t most_reals = 16;

template <typename Stored, typename Value>
std::vector<Value> decode(std::string_view raw) {
  std::vector<Value> values(raw.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored{};
    std::memcpy(&stored, raw.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<Value>(stored);
  }
  return values;
}

std::vector<std::int64_t> decode_integers(OnnxType type, std::string_view raw) {
  switch (type) {
    case OnnxType::i64:
    case OnnxType::u64:
      return decode<std::int64_t, std::int64_t>(raw);
    case OnnxType::i32:
      return decode<std::int32_t, std::int64_t>(raw);
    case OnnxType::u32:
      return decode<std::uint32_t, std::int64_t>(raw);
    case OnnxType::i16:
      return decode<std::int16_t, std::int64_t>(raw);
    case OnnxType::u16:
      return decode<std::uint16_t, std::int64_t>(raw);
    case OnnxType::u8:
    case OnnxType::boolean:
      return decode<std::uint8_t, std::int64_t>(raw);
    default:
      return {};
  }
}

template <typename Stored, typename Value>
void append_as(std::string& bytes, const std::vector<Value>& values) {
  bytes.resize(values.size() * sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto stored = static_cast<Stored>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

/// Numbers that the file lists one by one; halves are listed by their bits.
std::string packed(OnnxType type, const std::vector<std::int64_t>& integers,
                   const std::vector<double>& reals) {
  std::string bytes;
  if (type == OnnxType::f64) {
    append_as<double>(bytes, reals);
  } else if (type == OnnxType::f32) {
    append_as<float>(bytes, reals);
  } else if (bits_of(type) == 64) {
    append_as<std::int64_t>(bytes, integers);
  } else if (bits_of(type) == 32) {
    append_as<std::int32_t>(bytes, integers);
  } else if (bits_of(type) == 16) {
    append_as<std::int16_t>(bytes, integers);
  } else if (bits_of(type) == 8) {
    append_as<std::int8_t>(bytes, integers);
  }
  return bytes;
}

/// Part of a file beside the model. Throws Error.
std::string read_part(const std::string& path, std::int64_t offset_bytes, std::int64_t size_bytes) {
  std::error_code error;
  const std::uintmax_t in_file = std::filesystem::file_size(path, error);
  const auto offset = static_cast<std::uintmax_t>(offset_bytes);
  if (!error && (in_file < offset || in_file - offset < static_cast<std::uintmax_t>(size_bytes))) {
    throw Error(Where{path, 0, ""},
                fmt::format("has {} bytes, and a model has {} of its weights there from byte {}",
                            in_file, size_bytes, offset_bytes),
                "export or copy it again");
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  if (!error && file) bytes.resize(static_cast<std::size_t>(size_bytes));
  file.seekg(offset_bytes);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (error || !file) {
    throw Error(Where{path, 0, ""}, "cannot be read, and a model has its weights there",
                "copy it beside the model");
  }
  return bytes;
}

std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  return count;
}

bool leads_outside(std::string_view location) {
  if (location.find('\0') != std::string_view::npos) return true;
  // Both separators, wherever the file was written.
  if (location.starts_with('/') || location.starts_with('\\')) return true;
  if (location.size() >= 2 && location[1] == ':') return true;
  std::size_t at = 0;
  while (at <= location.size()) {
    const std::size_t end = std::min(location.find_first_of("/\\", at), location.size());
    if (location.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::uint32_t OnnxTensorData::most_raw_bytes() const {
  return tensors == OnnxTensors::whole ? std::numeric_limits<std::uint32_t>::max() : most_bytes;
}

void OnnxTensorData::add_dim(std::int64_t size) {
  too_many_dims_ = dims.size() >= most_dimensions;
  if (!too_many_dims_) dims.push_back(size);
}

void OnnxTensorData::add(std::int64_t value) {
  ++added_;
  const bool all = tensors == OnnxTensors::whole;
  if (all || integers_.size() < most_bytes / sizeof(value)) integers_.push_back(value);
}

void OnnxTensorData::add(double value) {
  ++added_;
  if (tensors == OnnxTensors::whole || reals_.size() < most_reals) reals_.push_back(value);
}

std::string OnnxTensorData::problem() const {
  if (too_many_dims_) return "has too many dimensions";
  std::int64_t count = 1;
  for (const std::int64_t size : dims) {
    if (size < 0) return fmt::format("has the size {}", size);
    if (__builtin_mul_overflow(count, size, &count)) return "has a size that overflows 64 bits";
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(count, bits_of(type), &bits)) {
    return "has a size that overflows 64 bits";
  }
  if (is_external) {
    if (leads_outside(location)) {
      return "has its data in " + in_quotes(location) + ", which points outside its folder";
    }
    if (offset_bytes < 0) return fmt::format("begins at byte {}", offset_bytes);
    return "";
  }
  if (raw_size && bits > 0 && *raw_size != static_cast<std::uint64_t>((bits + 7) / 8)) {
    return fmt::format("has {} bytes of data where its dimensions say {}", *raw_size,
                       (bits + 7) / 8);
  }
  // Without any data the weights have been taken out, which is as good here.
  const bool one_number_each = bits_of(type) >= 8 && is_integer(type);
  const bool plain_real = type == OnnxType::f32 || type == OnnxType::f64;
  if (!raw_size && added_ > 0 && (one_number_each || plain_real) && added_ != count) {
    return fmt::format("has {} numbers where its dimensions say {}", added_, count);
  }
  return "";
}

std::shared_ptr<const std::string> OnnxTensorData::bytes(const std::string& folder) const {
  if (tensors == OnnxTensors::small || bits_of(type) < 8) return nullptr;
  const std::int64_t size = count_of(dims) * (bits_of(type) / 8);
  if (is_external) {
    const std::string path = (std::filesystem::path(folder) / location).string();
    return std::make_shared<const std::string>(read_part(path, offset_bytes, size));
  }
  if (raw_size) return std::make_shared<const std::string>(raw);
  std::string listed = packed(type, integers_, reals_);
  if (listed.size() != static_cast<std::size_t>(size)) return nullptr;
  return std::make_shared<const std::string>(std::move(listed));
}

OnnxTensor OnnxTensorData::tensor(const std::string& folder) const {
  OnnxTensor tensor{.type = type, .dims = dims, .values = nullptr, .bytes = bytes(folder)};
  if (is_external) return tensor;
  const auto size = static_cast<std::size_t>(count_of(dims));
  // What was read whole is decoded where it is small, as if only that had been read.
  const bool is_small =
      raw_size ? *raw_size <= most_bytes : integers_.size() <= most_bytes / sizeof(std::int64_t);
  if (is_integer(type) && is_small) {
    std::vector<std::int64_t> values = raw_size ? decode_integers(type, raw) : integers_;
    if (values.size() == size) tensor.values = std::make_shared<OnnxConstant>(std::move(values));
  } else if (size <= most_reals) {
    std::vector<double> values = reals_;
    if (raw_size && type == OnnxType::f32) values = decode<float, double>(raw);
    if (raw_size && type == OnnxType::f64) values = decode<double, double>(raw);
    if (values.size() == size) tensor.values = std::make_shared<OnnxConstant>(std::move(values));
  }
  return tensor;
}

}  // namespace braid
