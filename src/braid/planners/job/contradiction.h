#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/planners/job/space.h"

namespace braid {

/// A restriction as the user gave it, and how to take it back.
struct GivenRestriction {
  std::string option;  ///< "--tp"
  std::string text;    ///< "--tp 8"
  std::function<void(SpaceOptions&)> take_back;
};
/// All restrictions on what plans look like, those first that are taken back most readily.
std::vector<GivenRestriction> given_restrictions(const SpaceOptions& options);

/// What configurations of the space keep to.
enum class SpaceRule : std::uint8_t {
  heads,         ///< tp divides them, and widths.
  sequence,      ///< 2·cp divides it; tp under sequence parallelism.
  experts,       ///< ep divides them.
  expert_ranks,  ///< ep divides dp·cp, and ep and cp nest.
  devices,       ///< tp·cp·pp·dp at most, or all.
  batch,         ///< dp·micro-batch divides it.
  layers,        ///< pp·vp at most.
  interleaving,  ///< vp > 1 alone, with several stages and micro-batches a multiple of these.
  passes,        ///< kMostPlannedPasses at most.
  trainer,       ///< What it can be told.
  profile,       ///< What it lists, where layers come from one.
};
inline constexpr int kSpaceRules = 11;

/// Rules as a set of bits.
using SpaceRules = std::uint32_t;
inline constexpr SpaceRules kAllSpaceRules = (SpaceRules{1} << kSpaceRules) - 1;
constexpr SpaceRules without(SpaceRules rules, SpaceRule rule) {
  return rules & ~(SpaceRules{1} << static_cast<unsigned>(rule));
}

/// Whether some configuration keeps to these rules and the restrictions: with all rules, whether
/// base_configurations() has any. nullopt: not found out within `most_looked_at` combinations.
std::optional<bool> has_configuration(const SpaceLimits& limits, const SpaceOptions& options,
                                      SpaceRules rules, std::int64_t most_looked_at = 4'000'000);

/// A least set of restrictions that leaves no configuration (deletion filter: each is taken back if
/// there is still nothing); empty where nothing is left without any, nullopt where something is
/// left with all. `left` has these alone then.
std::optional<std::vector<GivenRestriction>> least_restrictions(const SpaceLimits& limits,
                                                                SpaceOptions& left);

/// Restrictions that leave no configuration together, and do without any one of them.
struct Contradiction {
  std::vector<GivenRestriction> given;
  /// A least set of rules that they break together.
  std::vector<SpaceRule> rules;
};
/// The least_restrictions(), and of the rules too what the same filter leaves; empty `given`:
/// nothing is left of the job without any. nullopt where something is left, or it was not found
/// out.
std::optional<Contradiction> contradiction(const SpaceLimits& limits, const SpaceOptions& options);

/// "--tp 8 and --ep 64 do not go together: experts are split over …".
std::string text_of(const Contradiction& contradiction, const SpaceLimits& limits,
                    const SpaceOptions& options);

}  // namespace braid
