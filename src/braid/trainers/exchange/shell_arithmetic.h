#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "braid/trainers/exchange/shell_values.h"

namespace braid {

/// Whole-number arithmetic of $((…)), with + - * / and brackets; nullopt for anything else, and
/// where a variable is not known, numbers grow beyond 64 bits or something is divided by nothing.
///
///     value_of_arithmetic("G * (2 + 2)", {{"G", {"8"}}});  // 32
std::optional<std::int64_t> value_of_arithmetic(std::string_view text,
                                                const ShellVariables& variables);

}  // namespace braid
