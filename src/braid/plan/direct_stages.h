#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// Fills in the stages of `plan`, whose profile, parallel form and system are there: each where the
/// form's order of axes puts it, chunk after chunk with so many layers as `counts` [pp · vp] says,
/// in their order. The profile has an option for each group of devices, in their order, or one for
/// all; a stage on several groups runs each layer with the one that takes longest
/// (docs/cost-model.md, "Heterogeneous devices"). Cost: linear in layers and devices.
///
///     plan.parallel = {.tp = 2, .pp = 4, .dp = 2, .num_micro_batches = 8};
///     fill_direct_stages(plan, counts);
///     double time_s = measure(plan).iteration_time_s;
void fill_direct_stages(Plan& plan, std::span<const std::int32_t> counts);

/// Layers of each chunk of a plan in model order: what fill_direct_stages was given.
std::vector<std::int32_t> layer_counts(const Plan& plan);

}  // namespace braid
