#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "braid/explore/system_family.h"

namespace braid {

/// A family with what planning on its envelope shows, and why there is no plan on that, if so.
struct BoundedFamily {
  SystemFamily family;
  std::string refusal;
};

/// Plans each workload on a system that is nowhere worse than any member (envelope()), by that
/// planner. Throws Error as plan_workload(). Cost: a plan for each workload.
BoundedFamily bounded_family(const SystemSpace& systems, const SystemFamily& family,
                             std::size_t planner, const std::shared_ptr<NestMemo>& nests);

}  // namespace braid
