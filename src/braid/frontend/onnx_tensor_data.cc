#include "braid/frontend/onnx_tensor_data.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

void OnnxTensorData::add_dim(std::int64_t size) {
  too_many_dims_ = dims.size() >= most_dimensions;
  if (!too_many_dims_) dims.push_back(size);
}

void OnnxTensorData::add(std::int64_t value) {
  ++added_;
  if (integers_.size() < most_bytes / sizeof(value)) integers_.push_back(value);
}

void OnnxTensorData::add(double value) {
  ++added_;
  if (reals_.size() < most_reals) reals_.push_back(value);
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

OnnxTensor OnnxTensorData::tensor() const {
  OnnxTensor tensor{.type = type, .dims = dims, .values = nullptr};
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  if (is_external) return tensor;
  const auto size = static_cast<std::size_t>(count);
  if (is_integer(type)) {
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
