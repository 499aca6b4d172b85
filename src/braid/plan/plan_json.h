#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/plan/plan.h"

namespace braid {

Json to_json(const Parallelism& parallel);
Json to_json(const MemoryBreakdown& memory);
/// [[forwards, backwards, times], …]
Json to_json(const std::vector<PassRun>& passes);

/// The `"braid": "plan", "version": 1` form: complete, reads back equal.
Json to_json(const Plan& plan);

/// Reads a plan, checking kinds, ranges and ids (layers, options, devices); whether the plan is a
/// good one is for verify() to say. What a file has under "alternatives" is for who looks at it
/// (report/alternatives.h). Throws Error.
Plan plan_from_json(const Value& value);
Plan read_plan(const std::string& path);

}  // namespace braid
