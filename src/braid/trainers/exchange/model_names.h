#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace braid {

/// What a trainer calls a model of the catalogue.
struct NamedModel {
  std::string_view ours, theirs;
};

/// Its name of the model; empty: it has none that is known.
inline std::string_view their_name(std::span<const NamedModel> models, std::string_view ours) {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const NamedModel& each) { return each.ours == ours; });
  return found == models.end() ? std::string_view() : found->theirs;
}

/// The catalogue's name of what a trainer calls so; empty: none is known.
inline std::string_view our_name(std::span<const NamedModel> models, std::string_view theirs) {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const NamedModel& each) { return each.theirs == theirs; });
  return found == models.end() ? std::string_view() : found->ours;
}

}  // namespace braid
