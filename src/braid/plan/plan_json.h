#pragma once

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/plan/outcome.h"
#include "braid/plan/plan.h"

namespace braid {

Json to_json(const Parallelism& parallel);
Json to_json(const MemoryBreakdown& memory);
Json to_json(const Plan& plan);
/// Reads and checks a plan: ids, coverage is left to verify. Throws Error.
Plan plan_from_json(const Value& value);
Plan read_plan(const std::string& path);

std::string_view name_of(ScheduleKind schedule);
std::string_view name_of(Recompute recompute);
std::string_view name_of(Zero zero);

}  // namespace braid
