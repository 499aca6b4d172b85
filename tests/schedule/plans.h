#pragma once

#include "braid/plan/plan.h"

namespace braid {

/// A plan that stands by itself, on one node of devices of 1e12 flop/s: pp stages of vp chunks of
/// one layer each, data-parallel over 2 devices. Every layer takes 1 s forward (of which 0.25 s
/// tensor-parallel communication) and 2.5 s backward (of which 0.5 s recomputation), and keeps 8
/// bytes for each micro-batch in flight. No parameters, so nothing is synchronised or updated.
Plan small_plan(ScheduleKind schedule, int pp, int vp, std::int64_t num_micro_batches);

/// Gives every layer this many elements, replicated over data-parallel ranks.
void set_parameters(Plan& plan, double parameters);

/// Sets the bytes that each boundary between layers carries per sample.
void set_boundary_bytes(Plan& plan, double bytes);

}  // namespace braid
