#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

/// What an operator runs on: cores of one kind, or a tensor core together with a vector core, to
/// which it hands its results on (Phaze, section 4: "fused"). `none`: it takes no time and no core,
/// as a view of a tensor.
enum class CoreKind : std::uint8_t { none, tensor, vector, fused };

constexpr std::string_view name_of(CoreKind kind) {
  constexpr std::string_view kNames[] = {"none", "tensor", "vector", "fused"};
  return kNames[static_cast<std::size_t>(kind)];
}

constexpr bool needs_tensor_core(CoreKind kind) {
  return kind == CoreKind::tensor || kind == CoreKind::fused;
}
constexpr bool needs_vector_core(CoreKind kind) {
  return kind == CoreKind::vector || kind == CoreKind::fused;
}

}  // namespace braid
