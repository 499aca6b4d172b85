#include <algorithm>
#include <utility>

#include "braid/base/pareto_front.h"
#include "braid/planners/piper/threshold.h"

namespace braid {

/// Least devices for the layers before each suffix, as far as the suffix is of any use.
void PiperThreshold::bound_before(double limit) {
  const std::size_t sets = tables_.size();
  devices_before_.assign(sets, kTooMany);
  devices_before_[sets - 1] = 0;
  for (std::size_t inner = sets - 1; inner-- > 0;) {
    if (least_devices_[inner] >= kTooMany) continue;
    const std::int64_t most = problem_.devices - least_devices_[inner];
    for (std::size_t outer = inner + 1; outer < sets; ++outer) {
      if (devices_before_[outer] >= std::min(most, devices_before_[inner]) ||
          !tables_.is_subset(inner, outer)) {
        continue;
      }
      for (std::int32_t degree = 0; degree < static_cast<std::int32_t>(tables_.degrees().size());
           ++degree) {
        const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(degree)];
        const std::int64_t most_dp =
            (std::min(most, devices_before_[inner] - 1) - devices_before_[outer]) / tp;
        if (most_dp < 1) continue;
        PiperStageSums& stage = stage_of(inner, outer, degree);
        if (!stage.possible) continue;
        const std::int32_t dp = first_dp(stage, first_fast_dp(stage, limit), least_suffix_[inner],
                                         limit, most_dp, false);
        if (dp < 0) continue;
        devices_before_[inner] =
            devices_before_[outer] + tp * tables_.dp_degrees()[static_cast<std::size_t>(dp)];
      }
    }
  }
}

void PiperThreshold::extend(const State& inner, std::int32_t number, PiperStageSums& stage,
                            std::size_t fast, double limit) {
  const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(stage.degree)];
  const auto dps = tables_.dp_degrees();
  const std::int64_t least_devices = inner.devices + dps[fast] * tp;
  const std::int64_t least_suffix = inner.replicas + dps[fast];
  if (least_devices > most_devices_here_ || least_suffix > most_suffix_here_ ||
      is_dominated(front_, PiperUse{least_devices, least_suffix}, PiperUse::no_worse)) {
    return;
  }
  const std::int64_t most_dp =
      std::min((most_devices_here_ - inner.devices) / tp, most_suffix_here_ - inner.replicas);
  const std::int32_t dp = first_dp(stage, fast, inner.replicas, limit, most_dp, true);
  if (dp < 0) return;
  const std::int64_t replicas = dps[static_cast<std::size_t>(dp)];
  const std::int64_t devices = inner.devices + replicas * tp, suffix = inner.replicas + replicas;
  if (is_dominated(front_, PiperUse{devices, suffix}, PiperUse::no_worse)) return;
  put_in_front(front_,
               State{{devices, suffix},
                     number,
                     stage.outer,
                     stage.degree,
                     dp,
                     1 + (inner.replicas + replicas - 1) / replicas},
               PiperUse::no_worse);
}

/// With the heuristic knapsack a stage may be faster when more are in flight than there are, which
/// the published program may pretend.
void PiperThreshold::extend_heuristically(const State& inner, std::int32_t number,
                                          PiperStageSums& stage, std::size_t fast, double limit) {
  const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(stage.degree)];
  const auto dps = tables_.dp_degrees();
  for (std::size_t dp = fast; dp < dps.size(); ++dp) {
    const std::int64_t devices = inner.devices + dps[dp] * tp, suffix = inner.replicas + dps[dp];
    if (devices > most_devices_here_ || suffix > most_suffix_here_ ||
        is_dominated(front_, PiperUse{devices, suffix}, PiperUse::no_worse)) {
      return;
    }
    ++work_;
    if (tables_.share(dp) * stage.time + tables_.sync_factor(dp) * stage.sync_time > limit) {
      continue;
    }
    const std::int64_t least = 1 + (inner.replicas + dps[dp] - 1) / dps[dp];
    const std::int64_t most = (most_suffix_here_ + dps[dp] - 1) / dps[dp];
    for (std::int64_t in_flight = least; in_flight <= most; ++in_flight) {
      if (in_flight > tables_.most_in_flight(stage)) break;
      if (tables_.fits(stage, dp, in_flight, limit) != KnapsackAnswer::yes) continue;
      const std::int64_t pretended = std::max(suffix, (in_flight - 1) * dps[dp] + 1);
      if (!is_dominated(front_, PiperUse{devices, pretended}, PiperUse::no_worse)) {
        put_in_front(front_,
                     State{{devices, pretended},
                           number,
                           stage.outer,
                           stage.degree,
                           static_cast<std::int32_t>(dp),
                           in_flight},
                     PiperUse::no_worse);
      }
      if (in_flight == least) return;
      break;
    }
  }
}

/// Raises the first degree to consider to what memory takes with the fewest replicas behind the
/// stage; false when no state behind it can have the stage in front.
bool PiperThreshold::raise_fast_dp(std::size_t inner, PiperStageSums& stage, std::size_t& fast,
                                   double limit) {
  // States go up in devices and down in replicas.
  const State& fewest_devices = states_[begin_[inner]];
  const State& fewest_replicas = states_[begin_[inner + 1] - 1];
  const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(stage.degree)];
  const std::int64_t most_dp = std::min((most_devices_here_ - fewest_devices.devices) / tp,
                                        most_suffix_here_ - fewest_replicas.replicas);
  const std::int32_t dp = first_dp(stage, fast, fewest_replicas.replicas, limit, most_dp, false);
  if (dp < 0) return false;
  fast = static_cast<std::size_t>(dp);
  return true;
}

std::optional<std::vector<PiperStage>> PiperThreshold::followed_stages(double limit) {
  bound_before(limit);
  const std::size_t sets = tables_.size();
  const auto degrees = static_cast<std::int32_t>(tables_.degrees().size());
  states_.assign(1, State{});
  begin_.assign({0, 1});
  const double all_time = tables_.least_time(sets - 1);
  for (std::size_t outer = 1; outer < sets; ++outer) {
    front_.clear();
    most_devices_here_ = problem_.devices - devices_before_[outer];
    most_suffix_here_ = most_suffix_ - ceil_of((all_time - tables_.least_time(outer)) / limit);
    const bool useful = least_devices_[outer] <= most_devices_here_;
    for (std::size_t inner = outer; useful && inner-- > 0 && !exhausted();) {
      if (begin_[inner] == begin_[inner + 1] || !tables_.is_subset(inner, outer)) continue;
      for (std::int32_t degree = 0; degree < degrees; ++degree) {
        PiperStageSums& stage = stage_of(inner, outer, degree);
        if (!stage.possible) continue;
        std::size_t fast = first_fast_dp(stage, limit);
        if (fast >= tables_.dp_degrees().size()) continue;
        if (!exact_knapsack_) {
          for (std::size_t s = begin_[inner]; s < begin_[inner + 1]; ++s) {
            extend_heuristically(states_[s], static_cast<std::int32_t>(s), stage, fast, limit);
          }
          continue;
        }
        if (!raise_fast_dp(inner, stage, fast, limit)) continue;
        for (std::size_t s = begin_[inner]; s < begin_[inner + 1]; ++s) {
          extend(states_[s], static_cast<std::int32_t>(s), stage, fast, limit);
        }
      }
    }
    std::sort(front_.begin(), front_.end(),
              [](const State& a, const State& b) { return a.devices < b.devices; });
    states_.insert(states_.end(), front_.begin(), front_.end());
    begin_.push_back(states_.size());
  }
  if (begin_[sets - 1] == begin_[sets]) return std::nullopt;
  std::vector<PiperStage> stages;
  for (auto number = static_cast<std::int32_t>(begin_[sets - 1]); number != 0;) {
    const State& state = states_[static_cast<std::size_t>(number)];
    const State& inner = states_[static_cast<std::size_t>(state.inner)];
    const PiperStageSums sums = stage_of(static_cast<std::size_t>(inner.set),
                                         static_cast<std::size_t>(state.set), state.degree);
    stages.push_back(tables_.choose(sums, static_cast<std::size_t>(state.dp), state.in_flight));
    number = state.inner;
  }
  return price(std::move(stages));
}

}  // namespace braid
