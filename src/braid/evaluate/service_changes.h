#pragma once

#include <string>
#include <vector>

#include "braid/serve/stated_times.h"

namespace braid {

/// One step from a stated service to another, and what the service does after it.
struct ServiceChange {
  std::string what;  ///< "TP 2 -> 4"
  StatedTimes after;
};

/// What leads from `from` to `to`, both of the same job, with workers of the same kinds: the single
/// change that helps most first, then the next; where no single one gives a service, a pair or all
/// that is left. Better is to fit, then more requests a second and device within the targets, then
/// a request alone that is nearer to them. Cost: some ten stated_times() for each change.
std::vector<ServiceChange> service_changes(const ServingPlan& from, const ServingPlan& to,
                                           const ServingJob& job);

}  // namespace braid
