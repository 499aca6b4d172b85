#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace braid {

enum class Dtype : std::uint8_t { f64, f32, tf32, f16, bf16, f8, f4, i64, i32, i16, i8, boolean };

/// Bits that one element takes in memory (tf32 is stored as 32).
int bits_per_element(Dtype dtype);
inline double bytes_per_element(Dtype dtype) { return bits_per_element(dtype) / 8.0; }
/// "bf16", "f8" …
std::string_view name_of(Dtype dtype);
/// Inverse of name_of; also accepts the names of the field (fp16, float16, bfloat16, half, fp8,
/// float8_e4m3fn, int8 …). nullopt when unknown.
std::optional<Dtype> parse_dtype(std::string_view name);

}  // namespace braid
