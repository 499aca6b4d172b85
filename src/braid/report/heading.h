#pragma once

#include <span>
#include <string>

#include "braid/plan/outcome.h"

namespace braid {

/// Plan::planner of a configuration that was given to braid evaluate.
inline constexpr const char* kStatedPlanner = "stated";

/// Who planned: "planner braid", or that the configuration was given.
std::string planner_words(const Plan& plan);

/// What to know of the figures of a plan that does not fit.
inline constexpr const char* kTimeOfMisfit = "Its time is what it would be with the memory.";

/// What a plan is of, a line: "gpt2-xl (1.56 B parameters) on p3.8xlarge: 16 × v100-sxm-16gb, run
/// by megatron". Below it, a line each, the notes on its trainer; an empty line ends it.
std::string heading_text(const Plan& plan, std::span<const std::string> trainer_notes);

/// What stands above the terms of an iteration's time (time_terms()): "Where the time goes", or of
/// several stages "Where the time goes in the busiest stage, 3 of 8", whose terms these are.
std::string time_heading(const Plan& plan, const Metrics& metrics);

/// Lines that follow a heading of any kind: the notes, and an empty one.
std::string notes_text(std::span<const std::string> trainer_notes);

}  // namespace braid
