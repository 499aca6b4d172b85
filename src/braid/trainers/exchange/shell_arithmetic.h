#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/trainers/exchange/shell_values.h"

namespace braid {

/// What an expression of $((…)) gives, and what it sets on the way.
struct ArithmeticValue {
  std::int64_t value = 0;
  std::vector<std::pair<std::string, std::int64_t>> assigned;  ///< In their order.
};

/// Whole-number arithmetic of the shell: operators of C, ** and assignments, on numbers (decimal,
/// 0x…, 0…) and variables, whose values may be expressions. nullopt for anything else, and where a
/// variable is not known, numbers grow beyond 64 bits or something is divided by nothing. Cost:
/// linear in the text for each level of brackets and variables.
///
///     value_of_arithmetic("G * (2 + 2)", {{"G", {"8"}}})->value;  // 32
std::optional<ArithmeticValue> value_of_arithmetic(std::string_view text,
                                                   const ShellVariables& variables);

}  // namespace braid
