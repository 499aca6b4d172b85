#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"

namespace braid {

/// The trainers that plans are written for, by their names in the catalogue.
std::vector<std::string> export_targets();

/// `target` is one of export_targets(). Throws Error for others, and for plans that
/// are not uniform.
Export export_plan(const Plan& plan, const std::string& target);

}  // namespace braid
