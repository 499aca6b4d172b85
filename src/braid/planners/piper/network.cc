#include "braid/planners/piper/network.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/plan/totals.h"

namespace braid {
namespace {

/// Of a unit of the level below `level`, whichever of its devices send.
double unit_rate(const System& system, std::size_t level) {
  const NetworkLevel& network = system.levels[level];
  double rate = network.unit_bytes_per_s;
  if (level == 0 && system.groups.front().node_bytes_per_s > 0) {
    rate = std::min(rate, system.groups.front().node_bytes_per_s);
  }
  return rate / std::max(1.0, network.oversubscription);
}

std::vector<std::vector<std::int64_t>> on_flat_network(const std::vector<PiperStage>& stages) {
  std::vector<std::size_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&stages](std::size_t a, std::size_t b) { return stages[a].tp > stages[b].tp; });
  std::vector<std::vector<std::int64_t>> devices(stages.size());
  std::int64_t next = 0;
  for (const std::size_t s : order) {
    devices[s].resize(at(stages[s].dp * stages[s].tp));
    std::iota(devices[s].begin(), devices[s].end(), next);
    next += stages[s].dp * stages[s].tp;
  }
  return devices;
}

/// Gives the stages of one unit their devices, again for each unit that holds a copy.
class RankPlacement {
 public:
  RankPlacement(const PiperSolution& solution, const std::vector<PiperLevel>& levels)
      : solution_(solution), devices_(solution.stages.size()) {
    for (const PiperLevel& level : levels) {
      unit_devices_.push_back(unit_devices_.empty() ? 1 : unit_devices_.back() * below_);
      below_ = level.devices;
    }
  }

  /// The superstages from `next` on that lie within stages [first, last), on the level's units from
  /// device `device` on. Returns the first superstage behind them.
  std::size_t place(std::size_t level, std::int32_t first, std::int32_t last, std::size_t next,
                    std::int64_t device) {
    if (level == 0) {
      place_stages(first, last, device);
      return next;
    }
    while (first < last) {
      const PiperSuperstage& superstage = solution_.superstages[next];
      std::size_t behind = next + 1;
      for (std::int64_t copy = 0; copy < superstage.dp; ++copy) {
        behind = place(level - 1, first, first + superstage.count, next + 1, device);
        device += unit_devices_[level];
      }
      first += superstage.count;
      next = behind;
    }
    return next;
  }

  std::vector<std::vector<std::int64_t>> take() { return std::move(devices_); }

 private:
  void place_stages(std::int32_t first, std::int32_t last, std::int64_t device) {
    for (std::int32_t s = first; s < last; ++s) {
      const PiperStage& stage = solution_.stages[at(s)];
      const std::int64_t local = (stage.local_dp > 0 ? stage.local_dp : stage.dp) * stage.tp;
      for (std::int64_t d = 0; d < local; ++d) devices_[at(s)].push_back(device++);
    }
  }

  const PiperSolution& solution_;
  std::vector<std::int64_t> unit_devices_;  ///< Of a unit that the level joins.
  std::int64_t below_ = 1;
  std::vector<std::vector<std::int64_t>> devices_;
};

}  // namespace

std::vector<PiperLevel> piper_levels_of(const System& system) {
  const DeviceGroup& group = system.groups.front();
  const std::int64_t per_node = std::min(group.devices_per_node, system.device_count);
  std::vector<PiperLevel> levels = {{per_node, group.intra_node.bytes_per_s}};
  std::int64_t units = system.device_count / per_node;
  double rate = kInfinity;
  for (std::size_t l = 0; l < system.levels.size() && units > 1; ++l) {
    rate = std::min(rate, unit_rate(system, l));
    const bool is_last = l + 1 == system.levels.size();
    const std::int64_t joined = is_last ? units : std::min(units, system.levels[l].size);
    if (joined <= 1 || units % joined != 0) continue;
    levels.push_back({joined, rate});
    units /= joined;
    rate = kInfinity;
  }
  return levels;
}

std::int64_t device_count(const std::vector<PiperLevel>& levels) {
  std::int64_t devices = 1;
  for (const PiperLevel& level : levels) devices *= level.devices;
  return devices;
}

std::vector<std::vector<std::int64_t>> devices_of_stages(const PiperSolution& solution,
                                                         const std::vector<PiperLevel>& levels) {
  if (levels.empty()) return on_flat_network(solution.stages);
  RankPlacement placement(solution, levels);
  placement.place(levels.size() - 1, 0, static_cast<std::int32_t>(solution.stages.size()), 0, 0);
  return placement.take();
}

std::optional<std::vector<Axis>> order_of_axes(
    Parallelism parallel, const std::vector<std::vector<std::int64_t>>& devices) {
  for (const auto& order : {std::vector{Axis::tp, Axis::cp, Axis::dp, Axis::pp},
                            std::vector{Axis::tp, Axis::cp, Axis::pp, Axis::dp}}) {
    parallel.order = order;
    bool lie_so = true;
    for (std::size_t s = 0; s < devices.size() && lie_so; ++s) {
      lie_so = stage_devices(parallel, static_cast<int>(s)) == devices[s];
    }
    if (lie_so) return order;
  }
  return std::nullopt;
}

}  // namespace braid
