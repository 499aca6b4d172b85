#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/trained_job.h"

namespace braid {

/// What plans are written for: exported_trainers(), and `pytorch`, a program of its own for plans
/// of any form.
std::vector<std::string> export_targets();

/// Trainers that plans are written for, by their names in the catalogue.
std::vector<std::string> exported_trainers();

/// Why the trainer of that name has not the job at all, such as "has no precision fp16": what its
/// exporter says of any plan of it. Empty where it has, and for trainers that no plan is written
/// for.
std::string job_refusal(const std::string& trainer, const TrainedJob& job);

/// `target` is one of export_targets(); `file` is what the text and its command call the file,
/// empty: by a name of its own. Throws Error for others, and for plans that are not uniform.
Export export_plan(const Plan& plan, const std::string& target, const std::string& file = "");

/// What to write a plan for: its own trainer, or where it is for none that there is (ideal), the
/// first of Megatron-LM, DeepSpeed and the PyTorch program that takes it; empty where none does.
std::string export_target_of(const Plan& plan);

/// Reads what a trainer is started with, whichever of them it is: a command line, a launch script
/// or a configuration file. Throws Error where none of them takes it, where a recipe is chosen and
/// there are none, and as their readers do.
Import import_run(const std::string& text, const std::string& file,
                  const ImportChoice& choice = {});

}  // namespace braid
