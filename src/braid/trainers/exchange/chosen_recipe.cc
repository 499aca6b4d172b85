#include "braid/trainers/exchange/chosen_recipe.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + on_one_line(names[i]);
  }
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

}  // namespace

void refuse_recipe_choice(const std::string& file) {
  throw Error(Where{file, 0, ""}, "there are no recipes in it to choose from",
              "leave out --recipe");
}

std::string chosen_recipe(const std::vector<std::string>& recipes, const std::string& chosen,
                          const std::string& file) {
  if (!chosen.empty()) {
    if (recipes.empty()) refuse_recipe_choice(file);
    if (std::find(recipes.begin(), recipes.end(), chosen) == recipes.end()) {
      throw Error(Where{file, 0, ""}, "no recipe in it is called " + in_quotes(chosen),
                  "use one of " + listed(recipes));
    }
    return chosen;
  }
  if (recipes.empty()) return "";
  if (recipes.size() > 1) {
    throw Error(Where{file, 0, ""},
                fmt::format("{} recipes are in it: {}", recipes.size(), listed(recipes)),
                "choose one with --recipe");
  }
  return recipes.front();
}

}  // namespace braid
