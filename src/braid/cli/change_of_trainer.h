#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// What a plan that was made for another trainer takes under this one of the catalogue, in a
/// sentence: by how much its time changes, or why that is not known (the trainer cannot be told the
/// plan, or the model is not where it was). Empty where it was made for this one. The plan runs
/// in_one_form(), whose Error it throws. Estimates the model's layers again.
std::string change_of_trainer(const Plan& plan, const std::string& trainer);

}  // namespace braid
