#pragma once

#include <optional>
#include <string>

#include "braid/planners/job/job.h"
#include "braid/system/system.h"

namespace braid {

/// What is left of a mixed system when the groups that a job cannot run on are taken away.
struct UsableGroups {
  System system;
  std::string note;  ///< What was left out and why, for the user.
};

/// The groups whose chips list a matrix peak for the job's precision (part_with_peak). Nullopt when
/// all do, or when the system has one group only. Throws Error, naming the chips, when none does.
std::optional<UsableGroups> usable_groups(const Job& job, const System& system);

}  // namespace braid
