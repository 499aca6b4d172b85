#pragma once

#include <string>
#include <vector>

namespace braid {

/// The recipe of a file that is meant, of those that it has: the one that was chosen, or the only
/// one; empty where it has none. Throws Error where several are left, which lists them, and where
/// none is called so.
std::string chosen_recipe(const std::vector<std::string>& recipes, const std::string& chosen,
                          const std::string& file);

/// Throws the Error that a file has no recipes to choose from.
[[noreturn]] void refuse_recipe_choice(const std::string& file);

}  // namespace braid
