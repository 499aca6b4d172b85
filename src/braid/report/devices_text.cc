#include "braid/report/devices_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/report/plan_text.h"
#include "braid/system/links.h"
#include "braid/system/part.h"

namespace braid {
namespace {

/// "0-3,12-15" of ascending numbers.
std::string numbers_text(const std::vector<std::int64_t>& numbers) {
  return ranges_text(std::vector<std::int32_t>(numbers.begin(), numbers.end()));
}

/// How many pods of TPUs the devices are, where they are several: what connects these is slower by
/// far than what is in them.
std::string pods_text(const DeviceGroup& group, std::int64_t count) {
  if (group.chip.kind != ChipKind::tpu || group.nodes < 2) return "";
  const bool is_full = count == group.nodes * group.devices_per_node;
  return fmt::format(" in {} pods of {}{}", group.nodes, is_full ? "" : "up to ",
                     group.devices_per_node);
}

std::vector<std::string> chips_of(const System& system, const std::vector<std::int64_t>& devices) {
  std::vector<std::string> chips;
  for (const std::int64_t device : devices) {
    const std::string& name = chip_at(system, device).name;
    if (std::find(chips.begin(), chips.end(), name) == chips.end()) chips.push_back(name);
  }
  return chips;
}

}  // namespace

std::string devices_text(const System& system) {
  std::string text;
  for (std::size_t g = 0; g < system.groups.size(); ++g) {
    std::int64_t count = 0;
    for (const DeviceRun& run : device_runs(system)) count += run.group == g ? run.count : 0;
    text += fmt::format("{}{} × {}{}", text.empty() ? "" : " + ", count, system.groups[g].chip.name,
                        pods_text(system.groups[g], count));
  }
  return text;
}

std::string stage_devices_text(const Plan& plan, std::size_t stage) {
  const std::vector<std::int64_t>& devices = plan.stages[stage].devices;
  if (is_uniform(plan) && devices.size() > 1) {
    return fmt::format("{} … {}", devices.front(), devices.back());
  }
  return numbers_text(devices);
}

std::vector<std::string> stage_chips(const Plan& plan, std::size_t stage) {
  return chips_of(plan.system, plan.stages[stage].devices);
}

std::string unused_text(const Plan& plan) {
  if (devices_used(plan) >= plan.system.device_count) return "";
  std::vector<bool> used(static_cast<std::size_t>(plan.system.device_count), false);
  for (const Stage& stage : plan.stages) {
    for (const std::int64_t device : stage.devices) used[static_cast<std::size_t>(device)] = true;
  }
  std::vector<std::int64_t> unused;
  for (std::size_t d = 0; d < used.size(); ++d) {
    if (!used[d]) unused.push_back(static_cast<std::int64_t>(d));
  }
  std::string chips;
  for (const std::string& chip : chips_of(plan.system, unused)) {
    chips += (chips.empty() ? "" : ", ") + chip;
  }
  return fmt::format("{} device{} stay{} unused: {} ({})", unused.size(),
                     unused.size() == 1 ? "" : "s", unused.size() == 1 ? "s" : "",
                     numbers_text(unused), chips);
}

}  // namespace braid
