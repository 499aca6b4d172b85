#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/processes.h"

namespace braid {

/// Names of the modules of each virtual stage in pipeline order, as torchtitan's decoders have
/// them; the head is "output" in 0.2 and "lm_head" later. Precondition: the plan has a shape.
std::vector<std::vector<std::string>> torchtitan_modules(const Plan& plan, std::string_view head);

/// torchtitan's name of the schedule.
std::string_view torchtitan_schedule(ScheduleKind schedule);

/// "torchrun … -m torchtitan.train ARGUMENTS", with the variable that lets GEMMs of FP32 run in
/// TF32 where the plan's do (PyTorch's own default is that they do not).
std::string torchtitan_launch(const Plan& plan, const Processes& processes,
                              std::string_view arguments);

/// A comment of how one GPU runs a step of the whole job alone (comm.mode = fake_backend).
std::string torchtitan_dry_run(const Plan& plan, std::string_view arguments);

}  // namespace braid
