#include "braid/planners/job/usable_groups.h"

#include <algorithm>

#include "braid/base/error.h"
#include "braid/system/part.h"

namespace braid {

std::optional<UsableGroups> usable_groups(const Job& job, const System& system) {
  if (system.groups.size() < 2) return std::nullopt;
  std::string lacking;
  for (const DeviceGroup& group : system.groups) {
    if (matmul_peak(group.chip, job.precision.matmul)) continue;
    if (lacking.find(group.chip.name) != std::string::npos) continue;
    lacking += (lacking.empty() ? "" : ", ") + group.chip.name;
  }
  if (lacking.empty()) return std::nullopt;
  const std::string precision = name_of(job.precision);
  auto part = part_with_peak(system, job.precision.matmul);
  if (!part) {
    throw Error("no chip of " + system.name + " lists a " + precision + " peak (" + lacking + ")",
                "choose another --precision");
  }
  UsableGroups usable;
  usable.note = system.name + ": " + std::to_string(system.device_count - part->device_count) +
                " devices are left out, as they list no " + precision + " peak (" + lacking +
                "); the others are numbered from 0";
  usable.system = std::move(*part);
  return usable;
}

}  // namespace braid
