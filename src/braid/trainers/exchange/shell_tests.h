#pragma once

#include <span>
#include <string>

#include "braid/trainers/exchange/shell_branches.h"

namespace braid {

/// Whether a test holds, "[ 8 -gt 1 ]", "test 8 -gt 1", "[[ fp8 == fp* && -n x ]]", whose words are
/// what variables stand for, with marks where that is not known. Unknown: it depends on such marks,
/// on files or on what is not looked into.
///
///     value_of_test({{"[", "8", "-gt", "1", "]"}});  // Holds::yes
Holds value_of_test(std::span<const std::string> words);

}  // namespace braid
