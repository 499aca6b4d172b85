#include "braid/planners/mixed/passes.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <tuple>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/pareto_front.h"
#include "braid/plan/plan.h"
#include "braid/planners/mixed/suffix_bound.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {
namespace {

/// Complete pipelines that a pass shows.
constexpr std::size_t kMostOthers = 24;

}  // namespace

/// One pass: its limits, what it has reached, and the best end so far.
struct MixedPasses::Pass {
  double excess_s = 0, cutoff_s = 0;
  std::int64_t most_steps = 0;
  std::int64_t depth = 1;  ///< Of the stage to be added, from the end.
  std::vector<Level> levels;
  MixedPass result;
  /// Complete pipelines, the best for each number of stages, devices used and first config.
  struct End {
    double base_s = kInfinity;
    std::int64_t depth = 0, number = 0;
    std::size_t config = 0;
    friend bool operator<(const End& a, const End& b) {
      return std::tie(a.base_s, a.depth, a.number, a.config) <
             std::tie(b.base_s, b.depth, b.number, b.config);
    }
  };
  std::vector<End> ends;
  std::vector<Start> starts;           ///< Of one cut, in grow().
  std::vector<std::int32_t> too_long;  ///< See take_from_all.
};

struct MixedPasses::Extension {
  std::size_t config, variant;
  std::int32_t right;
  MixedCostCache::At& cached;
  State& to;
  Pass& pass;
};

MixedPasses::MixedPasses(const MixedProblem& problem, std::vector<std::uint8_t> last_configs)
    : problem_(problem),
      times_(problem),
      work_(problem),
      cache_(problem),
      end_exchange_(problem, std::move(last_configs)),
      counted_work_(problem.costs->work()),
      layers_(times_.layers()) {
  for (const MixedConfig& config : problem.configs) {
    variants_ = std::max(variants_, config.variants.size());
    std::int32_t takes = 0;
    for (const std::int32_t of_kind : config.takes) takes += of_kind;
    fewest_devices_ = std::min(fewest_devices_, takes);
  }
}

bool MixedPasses::no_worse(const Start& a, const Start& b) {
  return a.below_s <= b.below_s && a.next_s <= b.next_s && a.late_s <= b.late_s &&
         a.rise_s <= b.rise_s && a.peak_s <= b.peak_s;
}

/// `with`: the devices used with the stage's own.
double MixedPasses::least_exchange_s(MixedCostCache::At& cached, std::size_t config,
                                     std::size_t variant, const State& with) {
  double& known_s = cached.exchange_s[config * variants_ + variant];
  if (known_s >= 0) return known_s;
  std::vector<std::int32_t> used = with.used;
  for (std::size_t k = 0; k < used.size(); ++k) used[k] -= problem_.configs[config].takes[k];
  const std::vector<std::int32_t> none(used.size(), 0);
  MixedCostCache::At& last = cache_.at(none);
  double least_s = kInfinity;
  for (std::size_t below = 0; below < problem_.configs.size(); ++below) {
    if (!end_exchange_.may_be_last(below) || !cache_.allows(last, none, below)) continue;
    least_s = std::min(least_s, problem_.costs->exchange_s(used, static_cast<std::int32_t>(config),
                                                           static_cast<std::int32_t>(variant),
                                                           static_cast<std::int32_t>(below)));
  }
  known_s = least_s;
  return known_s;
}

/// Stages that there may be yet before layer `left`.
std::int64_t MixedPasses::most_stages(std::int32_t left, const State& state) const {
  return std::min<std::int64_t>(left, state.devices_left / fewest_devices_);
}

/// All variants to put the stage in front of `start`, each with `first_left` as its last first
/// layer. Returns the first such layer at which the excess was too long.
std::int32_t MixedPasses::take(const Extension& stage, std::int32_t first_left,
                               const Start& start) {
  const auto& [config, variant, right, cached, to, pass] = stage;
  const std::int64_t m = problem_.micro_batches;
  const std::int32_t least_left =
      times_.first_fitting(config, variant, one_f_one_b_in_flight(pass.depth, m))[at(right)];
  if (least_left > 0 && first_left >= 0) pass.result.memory_bound = true;
  const bool may_end = pass.depth >= problem_.least_stages;
  const bool may_go_on = pass.depth < problem_.most_stages;
  const OneFOneBTurns turns = OneFOneBTurns::of(pass.depth, m);
  const auto excess_of = [&turns, &start](double forward_s, double backward_s) {
    return turns.excess_s(forward_s, backward_s, start.below_s, start.next_s);
  };
  const MixedSuffixBound behind{start.below_s, start.late_s, start.rise_s, start.peak_s, 0};
  std::int32_t too_long = -1;
  for (std::int32_t left = first_left; left >= least_left; --left) {
    MixedStageTimes::Time time = times_.plain(config, variant, left, right);
    // More layers take longer, but for what data parallelism adds.
    const double plain_s = excess_of(time.plain_forward_s, time.plain_backward_s);
    if (plain_s > pass.excess_s) {
      pass.result.time_bound = true;
      pass.result.next_excess_s = std::min(pass.result.next_excess_s, plain_s);
      return std::max(too_long, left);
    }
    ++pass.result.steps;
    const double before_s = times_.least_before_s(left);
    // The devices that are left must do the layers that are left.
    const double plain_below_s = start.below_s + time.plain_forward_s + time.plain_backward_s;
    const double later_s = left > 0 ? work_.longest_excess_s(left, to.capacity_left, pass.depth,
                                                             most_stages(left, to), plain_below_s)
                                    : 0;
    if (later_s > pass.excess_s) {
      pass.result.time_bound = pass.result.time_bound || later_s < kInfinity;
      pass.result.next_excess_s = std::min(pass.result.next_excess_s, later_s);
      continue;
    }
    const double ahead_s = left > 0 ? to.ahead_s : 0;
    if (left > 0 && before_s + plain_below_s + later_s + ahead_s > pass.cutoff_s) {
      pass.result.time_bound = true;
      continue;
    }
    if (before_s + plain_below_s + plain_s > pass.cutoff_s) {
      pass.result.time_bound = true;
      return std::max(too_long, left);
    }
    times_.synchronise(time, config, variant, left, right, cache_.rates(cached, config, variant));
    if (left == 0 && pass.depth > 1) time.tail_s += least_exchange_s(cached, config, variant, to);
    const double excess_s = excess_of(time.forward_s, time.backward_s);
    if (excess_s > pass.excess_s) {
      pass.result.time_bound = true;
      pass.result.next_excess_s = std::min(pass.result.next_excess_s, excess_s);
      too_long = std::max(too_long, left);
      continue;
    }
    const MixedSuffixBound bound =
        suffix_bound_of(times_, time, left, behind, excess_s,
                        turns.turning_excess_s(time.time_s(), start.below_s, start.next_s));
    if (std::max(bound.end_s, before_s + bound.below_s + excess_s + ahead_s) > pass.cutoff_s) {
      pass.result.time_bound = true;
      too_long = std::max(too_long, left);
      continue;
    }
    if (left == 0 ? !may_end : !may_go_on) continue;
    MixedSuffix suffix;
    // What has ended is compared with its head and tail, what goes on without.
    suffix.below_s = bound.below_s;
    if (left == 0) {
      suffix.below_s += time.head_s + time.tail_s;
    } else {
      suffix.first_s = time.time_s();
      suffix.late_s = bound.late_s;
      suffix.rise_s = bound.rise_s;
      suffix.peak_s = bound.peak_s;
    }
    suffix.right = right;
    suffix.below = start.below;
    suffix.below_suffix = start.below_suffix;
    suffix.variant = static_cast<std::int16_t>(variant);
    to.suffixes.insert(config * (layers_ + 1) + at(left), suffix);
  }
  return too_long;
}

/// `starts` by rising length: each is for what is too long with those before it, unless it is
/// better than they are in what else counts.
void MixedPasses::take_from_all(const Extension& stage, std::int32_t first_left,
                                std::span<const Start> starts) {
  std::vector<std::int32_t>& too_long = stage.pass.too_long;
  too_long.clear();
  for (const Start& start : starts) {
    std::int32_t left = first_left;
    for (std::size_t e = 0; e < too_long.size(); ++e) {
      const Start& earlier = starts[e];
      if (earlier.late_s <= start.late_s && earlier.rise_s <= start.rise_s &&
          earlier.peak_s <= start.peak_s) {
        left = std::min(left, too_long[e]);
      }
    }
    too_long.push_back(left < 0 ? left : take(stage, left, start));
  }
}

void MixedPasses::take_any_variant(std::size_t config, std::int32_t right,
                                   std::span<const Start> starts, MixedCostCache::At& cached,
                                   State& to, Pass& pass) {
  const std::vector<MixedVariant>& variants = problem_.configs[config].variants;
  const std::int64_t in_flight = one_f_one_b_in_flight(pass.depth, problem_.micro_batches);
  const auto take_from = [&](std::size_t variant, std::int32_t left) {
    take_from_all({config, variant, right, cached, to, pass}, left, starts);
  };
  // Ways that save memory are for stages that fit no other.
  std::int32_t least_left = right;
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    if (variants[variant].saves_memory) continue;
    least_left = std::min(least_left, times_.first_fitting(config, variant, in_flight)[at(right)]);
    take_from(variant, right - 1);
  }
  if (least_left == 0) return;
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    if (variants[variant].saves_memory) take_from(variant, std::min(least_left, right) - 1);
  }
}

std::vector<MixedPasses::Behind> MixedPasses::behind_of(const State& from) {
  const std::size_t row = layers_ + 1;
  std::vector<Behind> behind;
  for (std::size_t below = 0; below < problem_.configs.size(); ++below) {
    bool any = false;
    for (std::size_t left = 1; left < row && !any; ++left) {
      any = from.suffixes.head(below * row + left) >= 0;
    }
    if (!any) continue;
    // Devices of the stage behind are those that were taken last.
    Behind& one = behind.emplace_back(Behind{below, from.used, nullptr});
    for (std::size_t k = 0; k < one.used.size(); ++k) {
      one.used[k] -= problem_.configs[below].takes[k];
    }
    one.cached = &cache_.at(one.used);
  }
  return behind;
}

void MixedPasses::grow(const State& from, std::span<const Behind> behind, std::size_t config,
                       State& to, Pass& pass) {
  const std::size_t row = layers_ + 1;
  MixedCostCache::At& cached = cache_.at(from.used);
  std::vector<Start>& starts = pass.starts;
  for (std::int32_t right = 1; at(right) < row; ++right) {
    starts.clear();
    for (const Behind& one : behind) {
      std::int32_t number = from.suffixes.head(one.config * row + at(right));
      if (number < 0) continue;
      const double hop_s = cache_.handover_s(*one.cached, one.used, one.config, config, right);
      for (; number >= 0; number = from.suffixes[number].next) {
        const MixedSuffix& suffix = from.suffixes[number];
        starts.push_back({suffix.below_s + 2 * hop_s, suffix.first_s + 2 * hop_s,
                          suffix.late_s - hop_s, suffix.rise_s - hop_s, suffix.peak_s,
                          static_cast<std::int16_t>(one.config), number});
      }
    }
    if (starts.empty()) continue;
    if (starts.size() > 1) {
      std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
        return std::tie(a.below_s, a.next_s) < std::tie(b.below_s, b.next_s);
      });
    }
    std::size_t kept = 0;
    for (const Start& start : starts) {
      if (!is_dominated(std::span(starts).first(kept), start, no_worse)) starts[kept++] = start;
    }
    starts.resize(kept);
    take_any_variant(config, right, starts, cached, to, pass);
  }
}

void MixedPasses::extend(const State& from, Level& next, Pass& pass) {
  std::vector<Behind> behind;
  if (pass.depth > 1) behind = behind_of(from);
  for (std::size_t config = 0; config < problem_.configs.size(); ++config) {
    const std::int64_t work = problem_.costs->work();
    const std::int64_t fresh = work - std::exchange(counted_work_, work);
    pass.result.steps += fresh;
    if (fresh > 0 && pass.result.steps > pass.most_steps) return;
    if (!cache_.allows(cache_.at(from.used), from.used, config)) continue;
    std::vector<std::int32_t> used = from.used;
    for (std::size_t k = 0; k < used.size(); ++k) used[k] += problem_.configs[config].takes[k];
    const std::int64_t number = cache_.number_of(used);
    State& to = next[number];
    if (!to.suffixes.is_open()) {
      to.used = used;
      to.ahead_s = end_exchange_.exchange_ahead_s(used);
      to.capacity_left = work_.capacity_left(used);
      for (std::size_t k = 0; k < used.size(); ++k) {
        to.devices_left += problem_.capacity[k] - used[k];
      }
      to.suffixes.open(problem_.configs.size() * (layers_ + 1));
    }
    if (pass.depth == 1) {
      if (!end_exchange_.may_be_last(config)) continue;
      const Start end[] = {{}};
      take_any_variant(config, static_cast<std::int32_t>(layers_), end, cache_.at(from.used), to,
                       pass);
    } else {
      grow(from, behind, config, to, pass);
    }
  }
}

MixedPass MixedPasses::run(double excess_s, double cutoff_s, std::int64_t most_steps) {
  Pass pass;
  pass.excess_s = excess_s;
  pass.cutoff_s = cutoff_s;
  pass.most_steps = most_steps;
  State none;
  none.used.assign(problem_.capacity.size(), 0);
  pass.levels.push_back({{0, std::move(none)}});
  const auto most =
      std::min<std::int64_t>(problem_.most_stages, static_cast<std::int64_t>(layers_));
  for (pass.depth = 1; pass.depth <= most; ++pass.depth) {
    Level next;
    for (const auto& [number, state] : pass.levels.back()) {
      extend(state, next, pass);
      if (pass.result.steps > most_steps) return std::move(pass.result);
    }
    for (auto entry = next.begin(); entry != next.end();) {
      const State& state = entry->second;
      for (std::size_t config = 0; config < problem_.configs.size(); ++config) {
        const std::int32_t head = state.suffixes.head(config * (layers_ + 1));
        if (head < 0) continue;
        pass.ends.push_back({state.suffixes[head].below_s, pass.depth, entry->first, config});
      }
      const bool reached = !state.suffixes.empty();
      entry = reached ? std::next(entry) : next.erase(entry);
    }
    if (next.empty()) break;
    pass.levels.push_back(std::move(next));
  }
  std::sort(pass.ends.begin(), pass.ends.end());
  for (std::size_t i = 0; i < std::min(pass.ends.size(), kMostOthers); ++i) {
    pass.result.pipelines.push_back(rebuild(pass, i));
  }
  return std::move(pass.result);
}

MixedPipeline MixedPasses::rebuild(const Pass& pass, std::size_t number) const {
  const Pass::End& end = pass.ends[number];
  MixedPipeline pipeline;
  pipeline.base_s = end.base_s;
  std::vector<std::int32_t> used = pass.levels[at(end.depth)].find(end.number)->second.used;
  std::size_t config = end.config;
  std::int32_t left = 0;
  std::int32_t number_in_state = -1;
  for (std::int64_t depth = end.depth; depth > 0; --depth) {
    const State& state = pass.levels[at(depth)].find(cache_.number_of(used))->second;
    if (number_in_state < 0) number_in_state = state.suffixes.head(config * (layers_ + 1));
    const MixedSuffix& suffix = state.suffixes[number_in_state];
    MixedStage stage;
    stage.config = static_cast<std::int32_t>(config);
    stage.variant = suffix.variant;
    stage.begin = left;
    stage.end = suffix.right;
    for (std::size_t k = 0; k < used.size(); ++k) used[k] -= problem_.configs[config].takes[k];
    stage.used = used;
    pipeline.stages.push_back(std::move(stage));
    left = suffix.right;
    number_in_state = suffix.below_suffix;
    config = at(std::max<std::int32_t>(suffix.below, 0));
  }
  set_times(pipeline);
  return pipeline;
}

/// What the stages really take, from the last to the first.
void MixedPasses::set_times(MixedPipeline& pipeline) const {
  MixedSuffixBound behind;
  double next_s = 0;
  for (std::size_t i = pipeline.stages.size(); i-- > 0;) {
    const MixedStage& stage = pipeline.stages[i];
    if (i + 1 < pipeline.stages.size()) {
      const MixedStage& below = pipeline.stages[i + 1];
      const double hop_s = problem_.costs->handover_s(below.used, below.config, stage.config,
                                                      problem_.cut_class[at(stage.end)]);
      behind.below_s += 2 * hop_s;
      behind.late_s -= hop_s;
      behind.rise_s -= hop_s;
      next_s += 2 * hop_s;
    }
    MixedStageTimes::Time time =
        times_.of(at(stage.config), at(stage.variant), stage.begin, stage.end,
                  problem_.costs->rates(stage.used, stage.config, stage.variant));
    if (i == 0 && pipeline.stages.size() > 1 && problem_.costs->exchanges()) {
      time.tail_s += problem_.costs->exchange_s(stage.used, stage.config, stage.variant,
                                                pipeline.stages.back().config);
    }
    const auto depth = static_cast<std::int64_t>(pipeline.stages.size() - i);
    const OneFOneBTurns turns = OneFOneBTurns::of(depth, problem_.micro_batches);
    const double excess_s = turns.excess_s(time.forward_s, time.backward_s, behind.below_s, next_s);
    const double turning_s = turns.turning_excess_s(time.time_s(), behind.below_s, next_s);
    behind = suffix_bound_of(times_, time, stage.begin, behind, excess_s, turning_s);
    pipeline.excess_s = std::max(pipeline.excess_s, excess_s);
    pipeline.end_s = std::max(pipeline.end_s, behind.end_s);
    if (i == 0) {
      pipeline.end_s =
          std::max(pipeline.end_s, behind.below_s + time.head_s + time.tail_s + pipeline.excess_s);
    }
    next_s = time.time_s();
  }
}

}  // namespace braid
