#pragma once

#include <span>

#include "braid/explore/point_result.h"
#include "braid/explore/system_space.h"

namespace braid {

/// The figure that the space is searched for, of a system that takes so much for a batch of each
/// workload: joules where it is searched for energy, else seconds. Infinite for an amount of 0, 0
/// for an infinite one.
double search_value(const SystemSpace& space, std::span<const double> amounts,
                    const SystemCost& cost);

/// Tokens of a batch, or samples where the model has no sequence.
double units_in(const SystemWorkload& workload);

/// What a batch takes by which a search goes: the planner's objective, or the energy meanwhile.
double searched_amount(const SystemSpace& space, const PointResult& result);
/// The planner's objective.
double searched_time_s(const PointResult& result);
/// What no plan of the planner on that system stays below, by its objective.
double searched_bound_s(const PointResult& result);

}  // namespace braid
