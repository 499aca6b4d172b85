#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/plan/plan.h"

namespace braid {

// Names of enumerators as users and files write them, and back (nullopt: unknown).
std::string_view name_of(ScheduleKind schedule);  ///< "gpipe", "1f1b", "interleaved"
std::string_view name_of(Recompute recompute);    ///< "none", "selective", "full"
std::string_view name_of(Zero zero);              ///< "0" … "3"
std::string_view name_of(Axis axis);              ///< "tp", "cp", "dp", "pp"
std::optional<ScheduleKind> parse_schedule(std::string_view name);
std::optional<Recompute> parse_recompute(std::string_view name);
std::optional<Axis> parse_axis(std::string_view name);

/// For people: the name of the plan's schedule, "own order" where a stage has passes of its own,
/// "one stage" where there is nothing to order; "1f1b+" where stages begin with more micro-batches
/// in flight than 1F1B has.
std::string schedule_text(const Plan& plan);

/// For people: "3 in flight", with the passes where the stage has an order of its own; empty where
/// it runs as the plan's schedule has it.
std::string own_order_text(const Stage& stage);

}  // namespace braid
