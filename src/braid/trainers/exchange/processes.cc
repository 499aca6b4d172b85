#include "braid/trainers/exchange/processes.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace braid {
namespace {

/// The most processes up to `limit` that divide the devices and are a multiple of `whole`; 0: none.
std::int64_t largest_share(std::int64_t devices, std::int64_t limit, std::int64_t whole) {
  for (std::int64_t share = limit; share > 0; --share) {
    if (devices % share == 0 && share % whole == 0) return share;
  }
  return 0;
}

}  // namespace

std::int64_t devices_of_computer(const DeviceGroup& group) {
  return group.devices_per_host > 0 ? group.devices_per_host : group.devices_per_node;
}

Processes processes_of(const Plan& plan) {
  const std::int64_t devices = plan.parallel.devices();
  const std::vector<DeviceGroup>& groups = plan.system.groups;
  std::int64_t computer = devices_of_computer(groups.front());
  std::int64_t largest = computer;
  for (const DeviceGroup& group : groups) {
    computer = std::gcd(computer, devices_of_computer(group));
    largest = std::max(largest, devices_of_computer(group));
  }
  Processes processes;
  if (devices <= computer) {
    processes.per_node = devices;
    return processes;
  }
  processes.per_node = devices % computer == 0 ? computer : 0;
  for (const std::int64_t whole : {std::int64_t{plan.parallel.tp}, std::int64_t{1}}) {
    if (processes.per_node == 0) processes.per_node = largest_share(devices, computer, whole);
  }
  processes.per_node = std::max<std::int64_t>(1, processes.per_node);
  processes.nodes = devices / processes.per_node;
  if (largest != computer) {
    processes.note = fmt::format(
        "computers of different sizes: run the script once for every {} GPUs of one, each with its "
        "own NODE_RANK and CUDA_VISIBLE_DEVICES",
        processes.per_node);
  } else if (processes.per_node != computer) {
    processes.note = fmt::format(
        "{} GPUs do not fill computers of {}: {} computers with {} processes each are started, and "
        "the plan's time is for filled ones",
        devices, computer, processes.nodes, processes.per_node);
  }
  return processes;
}

}  // namespace braid
