#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// What plans are written for: trainers by their names in the catalogue.
std::vector<std::string> export_targets();

/// `target` is one of export_targets(). Throws Error for others, and for plans that
/// are not uniform.
Export export_plan(const Plan& plan, const std::string& target);

/// What to write a plan for: its own trainer, else the first of Megatron-LM and DeepSpeed that
/// takes it; empty where none does.
std::string export_target_of(const Plan& plan);

/// Reads what a trainer is started with, whichever of them it is: a command line, a launch script
/// or a configuration file. Throws Error where none of them takes it, and as their readers do.
Import import_run(const std::string& text, const std::string& file);

}  // namespace braid
