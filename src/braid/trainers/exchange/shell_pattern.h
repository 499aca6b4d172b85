#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// Whether all of `text` is what a pattern of the shell stands for: * any text, ? any character,
/// [a-c] and [!a-c] one of a set. Cost: the product of the lengths at worst.
bool matches_shell_pattern(std::string_view pattern, std::string_view text);

/// What "${NAME…}" makes of a value: `sign` is one of # ## % %% / // /# /% ^ ^^ , ,,. nullopt for
/// other signs, and for values that are too long to be looked through.
///
///     transformed_value("A100", "/", "A", "H");  // "H100"
std::optional<std::string> transformed_value(const std::string& value, std::string_view sign,
                                             std::string_view pattern, std::string_view text);

}  // namespace braid
