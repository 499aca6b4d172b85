#include "braid/base/dtype.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

namespace braid {
namespace {

struct Entry {
  Dtype dtype;
  int bits;
  std::string_view name;
};

constexpr std::array<Entry, 12> kEntries = {{
    {Dtype::f64, 64, "f64"},
    {Dtype::f32, 32, "f32"},
    {Dtype::tf32, 32, "tf32"},
    {Dtype::f16, 16, "f16"},
    {Dtype::bf16, 16, "bf16"},
    {Dtype::f8, 8, "f8"},
    {Dtype::f4, 4, "f4"},
    {Dtype::i64, 64, "i64"},
    {Dtype::i32, 32, "i32"},
    {Dtype::i16, 16, "i16"},
    {Dtype::i8, 8, "i8"},
    {Dtype::boolean, 8, "bool"},
}};

struct Alias {
  std::string_view name;
  Dtype dtype;
};

constexpr Alias kAliases[] = {
    {"fp64", Dtype::f64},
    {"float64", Dtype::f64},
    {"double", Dtype::f64},
    {"fp32", Dtype::f32},
    {"float32", Dtype::f32},
    {"float", Dtype::f32},
    {"single", Dtype::f32},
    {"tensorfloat32", Dtype::tf32},
    {"fp16", Dtype::f16},
    {"float16", Dtype::f16},
    {"half", Dtype::f16},
    {"bfloat16", Dtype::bf16},
    {"fp8", Dtype::f8},
    {"float8", Dtype::f8},
    {"fp8_e4m3", Dtype::f8},
    {"fp8_e5m2", Dtype::f8},
    {"float8_e4m3", Dtype::f8},
    {"float8_e4m3fn", Dtype::f8},
    {"float8_e4m3fnuz", Dtype::f8},
    {"float8_e5m2", Dtype::f8},
    {"float8_e5m2fnuz", Dtype::f8},
    {"e4m3", Dtype::f8},
    {"e5m2", Dtype::f8},
    {"mxfp8", Dtype::f8},
    {"fp4", Dtype::f4},
    {"float4", Dtype::f4},
    {"float4_e2m1", Dtype::f4},
    {"float4_e2m1fn", Dtype::f4},
    {"fp4_e2m1", Dtype::f4},
    {"e2m1", Dtype::f4},
    {"nvfp4", Dtype::f4},
    {"mxfp4", Dtype::f4},
    {"int64", Dtype::i64},
    {"long", Dtype::i64},
    {"uint64", Dtype::i64},
    {"u64", Dtype::i64},
    {"int32", Dtype::i32},
    {"int", Dtype::i32},
    {"uint32", Dtype::i32},
    {"u32", Dtype::i32},
    {"int16", Dtype::i16},
    {"short", Dtype::i16},
    {"uint16", Dtype::i16},
    {"u16", Dtype::i16},
    {"int8", Dtype::i8},
    {"uint8", Dtype::i8},
    {"u8", Dtype::i8},
    {"boolean", Dtype::boolean},
};

const Entry& entry_of(Dtype dtype) {
  const Entry& entry = kEntries.at(static_cast<std::size_t>(dtype));
  assert(entry.dtype == dtype);
  return entry;
}

}  // namespace

int bits_per_element(Dtype dtype) { return entry_of(dtype).bits; }

std::string_view name_of(Dtype dtype) { return entry_of(dtype).name; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string_view wanted = lower;
  if (wanted.starts_with("torch.")) wanted.remove_prefix(6);
  const auto* entry = std::ranges::find(kEntries, wanted, &Entry::name);
  if (entry != kEntries.end()) return entry->dtype;
  const auto* alias = std::ranges::find(kAliases, wanted, &Alias::name);
  if (alias != std::end(kAliases)) return alias->dtype;
  return std::nullopt;
}

}  // namespace braid
