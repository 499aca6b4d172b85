#pragma once

#include <string>
#include <vector>

#include "braid/validate/accuracy.h"

namespace braid {

/// "7.2%".
std::string percent(double share);
/// "+7.2%".
std::string signed_percent(double share);

/// Heads of the columns that tables of accuracy have for each group: mean, median, bias … memory.
std::vector<std::string> accuracy_heads();
/// The group's figures under them; "-" for what it has none of.
std::vector<std::string> accuracy_figures(const Accuracy& accuracy);

/// What the columns mean, for people: sentences.
std::string accuracy_legend();

}  // namespace braid
