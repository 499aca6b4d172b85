#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "braid/graph/graph.h"

namespace braid {

// Names of enumerators in the graph's JSON form.

inline constexpr std::array<std::pair<Split, std::string_view>, 8> split_names{{
    {Split::replicated, "replicated"},
    {Split::sequence, "sequence"},
    {Split::column, "column"},
    {Split::row, "row"},
    {Split::heads, "heads"},
    {Split::features, "features"},
    {Split::vocab, "vocab"},
    {Split::expert, "expert"},
}};

inline constexpr std::array<std::pair<Pass, std::string_view>, 3> pass_names{{
    {Pass::forward, "forward"},
    {Pass::input_gradient, "input_gradient"},
    {Pass::weight_gradient, "weight_gradient"},
}};

inline constexpr std::array<std::pair<Elementwise::Keeps, std::string_view>, 3> keeps_names{{
    {Elementwise::Keeps::nothing, "nothing"},
    {Elementwise::Keeps::inputs, "inputs"},
    {Elementwise::Keeps::mask, "mask"},
}};

template <typename Enum, std::size_t count>
std::string_view name_in(const std::array<std::pair<Enum, std::string_view>, count>& names,
                         Enum value) {
  for (const auto& [each, name] : names) {
    if (each == value) return name;
  }
  return {};
}

}  // namespace braid
