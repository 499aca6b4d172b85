#pragma once

#include <string>

#include "braid/trainers/exchange/export.h"

namespace braid {

/// A Python recipe for torchtitan's versions after 0.2 (its main branch of August 2026): a module
/// with a function that returns Trainer.Config, and the line that starts a run with it.
/// Precondition: the plan is uniform. Throws Error for what torchtitan cannot run, naming the
/// option that fixes it.
Export export_torchtitan_recipe(const Plan& plan, const std::string& file = "");

}  // namespace braid
