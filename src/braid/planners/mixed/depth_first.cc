#include "braid/planners/mixed/depth_first.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/plan/plan.h"
#include "braid/planners/mixed/cost_cache.h"
#include "braid/planners/mixed/end_exchange.h"
#include "braid/planners/mixed/stage_times.h"
#include "braid/planners/mixed/suffix_bound.h"
#include "braid/planners/mixed/work.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {
namespace {

/// Pipelines collected before they are shown.
constexpr std::size_t kMostWaiting = 256;

class MixedDepthFirst {
 public:
  MixedDepthFirst(const MixedProblem& problem, double cutoff_s, const MixedDepthFirstLimits& limits,
                  const std::function<double(const MixedPipeline&)>& visit)
      : problem_(problem),
        times_(problem),
        work_(problem),
        cache_(problem),
        end_exchange_(problem, {}),
        layers_(static_cast<std::int32_t>(times_.layers())),
        depth_of_(times_.layers(), 0),
        way_s_(times_.layers(), 0),
        cutoff_s_(cutoff_s),
        limits_(limits),
        visit_(visit) {
    fewest_devices_ = std::numeric_limits<std::int32_t>::max();
    for (const MixedConfig& config : problem.configs) {
      std::int32_t takes = 0;
      for (const std::int32_t of_kind : config.takes) takes += of_kind;
      fewest_devices_ = std::min(fewest_devices_, takes);
    }
  }

  MixedDepthFirstResult run() {
    counted_work_ = problem_.costs->work();
    Space space;
    space.used.assign(problem_.capacity.size(), 0);
    set(space);
    add(space, {}, layers_);
    show();
    result_.bound_s = std::min(closed_s_, cutoff_s_);
    return result_;
  }

 private:
  /// Devices taken, and what that leaves.
  struct Space {
    std::vector<std::int32_t> used;
    double capacity_left = 0, ahead_s = 0;  ///< See MixedWork, MixedEndExchange.
    std::int64_t devices_left = 0;
  };
  /// The stages from some stage on.
  struct Suffix {
    MixedSuffixBound bound;  ///< Of a chain.
    double next_s = 0;       ///< Of its first stage.
    double excess_s = 0;     ///< The most of any.
    double bound_s = 0;      ///< No pipeline that goes on like this takes less.
  };

  bool is_chain() const { return problem_.readers.empty(); }
  void close(double bound_s) { closed_s_ = std::min(closed_s_, bound_s); }
  void set(Space& space);
  void add(const Space& space, const Suffix& suffix, std::int32_t right);
  void add_form(const Space& space, const Suffix& suffix, std::int32_t right, std::size_t config);
  void add_stage(const Space& with, const Suffix& suffix, MixedStage& stage, double hop_s,
                 std::int64_t depth, double way_s);
  Suffix in_front_of(const Suffix& suffix, const MixedStage& stage, MixedStageTimes::Time time,
                     double hop_s, std::int64_t depth, double way_s) const;
  double ahead_s(const Space& with, const Suffix& suffix, std::int32_t left,
                 std::int64_t depth) const;
  void show();

  const MixedProblem& problem_;
  MixedStageTimes times_;
  MixedWork work_;
  MixedCostCache cache_;
  MixedEndExchange end_exchange_;
  std::int32_t layers_ = 0;
  std::int32_t fewest_devices_ = 0;     ///< Of any config.
  std::vector<MixedStage> stages_;      ///< The last first.
  std::vector<std::int64_t> depth_of_;  ///< [layer]: of its stage, of those placed.
  std::vector<double> way_s_;           ///< [layer]: longest way from its stage on.
  std::vector<MixedPipeline> waiting_;
  std::int64_t counted_work_ = 0;  ///< Of MixedCosts::work(), what the steps have.
  double cutoff_s_ = 0;
  double closed_s_ = kInfinity;
  MixedDepthFirstLimits limits_;
  const std::function<double(const MixedPipeline&)>& visit_;
  MixedDepthFirstResult result_;
};

void MixedDepthFirst::set(Space& space) {
  space.capacity_left = work_.capacity_left(space.used);
  space.ahead_s = end_exchange_.exchange_ahead_s(space.used);
  space.devices_left = 0;
  for (std::size_t k = 0; k < space.used.size(); ++k) {
    space.devices_left += problem_.capacity[k] - space.used[k];
  }
}

void MixedDepthFirst::show() {
  std::stable_sort(
      waiting_.begin(), waiting_.end(),
      [](const MixedPipeline& a, const MixedPipeline& b) { return a.bound_s() < b.bound_s(); });
  for (const MixedPipeline& pipeline : waiting_) {
    if (pipeline.bound_s() >= cutoff_s_) break;
    if (result_.shown == limits_.shown) {
      close(pipeline.bound_s());
      break;
    }
    ++result_.shown;
    cutoff_s_ = std::min(cutoff_s_, visit_(pipeline));
  }
  waiting_.clear();
}

/// Layers [0, left) in front of `suffix`, whose first stage has that depth, on the devices that are
/// left: no such pipeline takes less.
double MixedDepthFirst::ahead_s(const Space& with, const Suffix& suffix, std::int32_t left,
                                std::int64_t depth) const {
  if (!is_chain()) {
    return static_cast<double>(problem_.micro_batches) *
           work_.longest_stage_s(left, with.capacity_left);
  }
  const std::int64_t stages = std::min<std::int64_t>(left, with.devices_left / fewest_devices_);
  const double below_s = suffix.bound.below_s;
  const double excess_s = std::max(
      suffix.excess_s, work_.longest_excess_s(left, with.capacity_left, depth, stages, below_s));
  return times_.least_before_s(left) + below_s + excess_s + with.ahead_s;
}

MixedDepthFirst::Suffix MixedDepthFirst::in_front_of(const Suffix& suffix, const MixedStage& stage,
                                                     MixedStageTimes::Time time, double hop_s,
                                                     std::int64_t depth, double way_s) const {
  const std::int64_t m = problem_.micro_batches;
  const OneFOneBTurns turns = OneFOneBTurns::of(depth, m);
  Suffix front;
  front.next_s = time.time_s();
  front.bound_s = suffix.bound_s;
  if (!is_chain()) {
    const double turning_s = turns.turning_excess_s(time.time_s(), way_s, 0);
    const double passes_s =
        std::max(static_cast<double>(m) * time.time_s(), time.time_s() + way_s + turning_s);
    front.bound_s = std::max(front.bound_s, time.head_s + passes_s + time.tail_s);
    return front;
  }
  MixedSuffixBound behind = suffix.bound;
  const double next_s = stages_.empty() ? 0 : suffix.next_s + 2 * hop_s;
  behind.below_s += 2 * hop_s;
  behind.late_s -= hop_s;
  behind.rise_s -= hop_s;
  const double excess_s = turns.excess_s(time.forward_s, time.backward_s, behind.below_s, next_s);
  const double turning_s = turns.turning_excess_s(time.time_s(), behind.below_s, next_s);
  front.bound = suffix_bound_of(times_, time, stage.begin, behind, excess_s, turning_s);
  front.excess_s = std::max(suffix.excess_s, excess_s);
  front.bound_s = std::max(front.bound_s, front.bound.end_s);
  if (stage.begin == 0) {
    front.bound_s =
        std::max(front.bound_s, front.bound.below_s + time.head_s + front.excess_s + time.tail_s);
  }
  return front;
}

/// `stage` in one variant in front of the others; `with`: the devices that it takes are taken.
void MixedDepthFirst::add_stage(const Space& with, const Suffix& suffix, MixedStage& stage,
                                double hop_s, std::int64_t depth, double way_s) {
  ++result_.steps;
  const std::size_t config = at(stage.config), variant = at(stage.variant);
  MixedStageTimes::Time time = times_.of(config, variant, stage.begin, stage.end,
                                         cache_.rates(cache_.at(stage.used), config, variant));
  const bool ends = stage.begin == 0;
  if (ends && !stages_.empty() && problem_.costs->exchanges()) {
    time.tail_s +=
        problem_.costs->exchange_s(stage.used, stage.config, stage.variant, stages_.front().config);
  }
  Suffix front = in_front_of(suffix, stage, time, hop_s, depth, way_s);
  if (!ends) front.bound_s = std::max(front.bound_s, ahead_s(with, front, stage.begin, depth));
  if (front.bound_s >= cutoff_s_) return;
  const auto number = std::ssize(stages_) + 1;
  if (ends ? number < problem_.least_stages : number >= problem_.most_stages) return;
  stages_.push_back(stage);
  if (ends) {
    MixedPipeline& pipeline = waiting_.emplace_back();
    pipeline.stages.assign(stages_.rbegin(), stages_.rend());
    pipeline.end_s = front.bound_s;
    if (waiting_.size() >= kMostWaiting) show();
  } else {
    for (std::int32_t layer = stage.begin; layer < stage.end; ++layer) {
      depth_of_[at(layer)] = depth;
      way_s_[at(layer)] = way_s + time.time_s();
    }
    add(with, front, stage.begin);
  }
  stages_.pop_back();
}

void MixedDepthFirst::add_form(const Space& space, const Suffix& suffix, std::int32_t right,
                               std::size_t config) {
  const std::vector<MixedVariant>& variants = problem_.configs[config].variants;
  Space with;
  with.used = space.used;
  for (std::size_t k = 0; k < with.used.size(); ++k)
    with.used[k] += problem_.configs[config].takes[k];
  set(with);
  MixedStage stage;
  stage.config = static_cast<std::int32_t>(config);
  stage.end = right;
  stage.used = space.used;
  double hop_s = 0;
  if (!stages_.empty()) {
    const MixedStage& below = stages_.back();
    hop_s = cache_.handover_s(cache_.at(below.used), below.used, at(below.config), config, right);
  }
  std::int64_t depth = is_chain() ? std::ssize(stages_) + 1 : 1;
  double way_s = 0;
  for (stage.begin = right - 1; stage.begin >= 0; --stage.begin) {
    if (!is_chain()) {
      for (const std::int32_t reader : problem_.readers[at(stage.begin)]) {
        if (reader < right) continue;
        depth = std::max(depth, depth_of_[at(reader)] + 1);
        const bool over_cut = stage.begin == right - 1 && reader == right;
        way_s = std::max(way_s, way_s_[at(reader)] + (over_cut ? 2 * hop_s : 0));
      }
    }
    const std::int64_t in_flight = one_f_one_b_in_flight(depth, problem_.micro_batches);
    bool fast = false;
    for (const bool saves_memory : {false, true}) {
      // Ways that save memory are for stages that fit no other.
      if (saves_memory && fast) break;
      for (std::size_t variant = 0; variant < variants.size(); ++variant) {
        if (variants[variant].saves_memory != saves_memory) continue;
        if (times_.first_fitting(config, variant, in_flight)[at(right)] > stage.begin) continue;
        if (result_.steps >= limits_.steps) {
          close(suffix.bound_s);
          return;
        }
        fast = true;
        stage.variant = static_cast<std::int32_t>(variant);
        add_stage(with, suffix, stage, hop_s, depth, way_s);
      }
    }
  }
}

void MixedDepthFirst::add(const Space& space, const Suffix& suffix, std::int32_t right) {
  for (std::size_t config = 0; config < problem_.configs.size(); ++config) {
    if (result_.steps >= limits_.steps) {
      close(suffix.bound_s);
      return;
    }
    if (!cache_.allows(cache_.at(space.used), space.used, config)) continue;
    add_form(space, suffix, right, config);
    const std::int64_t work = problem_.costs->work();
    result_.steps += work - std::exchange(counted_work_, work);
  }
}

}  // namespace

MixedDepthFirstResult search_depth_first(const MixedProblem& problem, double cutoff_s,
                                         const MixedDepthFirstLimits& limits,
                                         const std::function<double(const MixedPipeline&)>& visit) {
  return MixedDepthFirst(problem, cutoff_s, limits, visit).run();
}

}  // namespace braid
