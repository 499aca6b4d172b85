#include <algorithm>
#include <cassert>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/search/layer_windows.h"
#include "braid/search/one_f_one_b_chain.h"
#include "braid/search/one_f_one_b_partitioner.h"

namespace braid {
namespace {

/// Each bound that is tried above an even share of the passes is so many times the last.
constexpr double kGuessStep = 1.03;

/// One try to split the chain within a bound on every stage's excess.
struct Attempt {
  bool complete = false;
  double next_bound = kInfinity;  ///< At the least, where some stage could take a layer more.
  bool memory_bound = false;
  bool stuck = false;  ///< Some stage could not take any layer.
};

double layer_parameters(const ChainLayer& layer) {
  return layer.dense_parameters + layer.expert_parameters;
}

}  // namespace

/// The chain's sums, and tries to split it within memory.
class OneFOneBPartitioner::Chain {
 public:
  explicit Chain(std::span<const ChainLayer> layers)
      : layers_(layers),
        forward_s_(layers, &ChainLayer::forward_s),
        backward_s_(layers, &ChainLayer::backward_s) {
    for (const ChainLayer& layer : layers) all_.add(layer);
    all_.working_bytes = all_.largest_layer_parameters = 0;
  }

  void set_pipeline(const Handovers& handovers, std::int64_t micro_batches) {
    const std::span<const double> handover_s = handovers.time_s;
    if (handover_s.size() != handover_s_.size() || micro_batches != micro_batches_) {
      too_small_.clear();
    }
    handover_s_.assign(handover_s.begin(), handover_s.end());
    micro_batches_ = micro_batches;
    blocking_ = handovers.blocking;
    places_ = stage_places(handovers, micro_batches);
  }

  std::optional<Partition> within(const MemoryForm& memory, double least_excess_s);

 private:
  std::size_t stages() const { return places_.size(); }

  /// Whether the layers' sums alone need more than all stages have.
  bool is_too_much() const {
    return device_bytes(all_, 1, memory_) * kBelowRounding >
           static_cast<double>(stages()) * memory_.available_bytes;
  }

  Attempt fill_from_the_end(double bound, Ends& ends) {
    const Attempt greedy = fill_greedily(bound, ends);
    if (greedy.complete || !greedy.stuck) return greedy;
    Attempt attempt = fill_exhaustively(bound, ends);
    attempt.memory_bound |= greedy.memory_bound;
    return attempt;
  }

  std::int32_t layer_count() const { return static_cast<std::int32_t>(layers_.size()); }

  double excess_s(std::int64_t stage, std::int32_t left, std::int32_t right) const {
    const StagePlace& place = places_[at(stage)];
    const double forward_s = forward_s_.of(left, right);
    const double backward_s = backward_s_.of(left, right);
    const double below_s = forward_s_.of(right, layer_count()) +
                           backward_s_.of(right, layer_count()) + place.handover_below_s;
    return place.excess_s(forward_s, backward_s, below_s);
  }

  /// Whether [left, right) keeps within the bound as `stage`; notes the bound at which it would.
  bool in_time(std::int64_t stage, std::int32_t left, std::int32_t right, double bound,
               Attempt& attempt) const {
    if (bound == kInfinity) return true;
    const double excess = excess_s(stage, left, right);
    if (excess > bound) attempt.next_bound = std::min(attempt.next_bound, excess);
    return excess <= bound;
  }

  /// Takes as many layers as fit, stage by stage from the last, leaving a layer for each stage
  /// before it. Conclusive unless `stuck`.
  Attempt fill_greedily(double bound, Ends& ends) const {
    Attempt attempt;
    std::int32_t left = layer_count();
    for (auto stage = std::ssize(places_) - 1; stage >= 0; --stage) {
      const std::int32_t right = ends[at(stage)] = left;
      RunSums sums;
      while (left > stage) {
        if (!endless_) {
          RunSums larger = sums;
          larger.add(layers_[at(left - 1)]);
          if (!fits(larger, places_[at(stage)].in_flight, memory_)) {
            attempt.memory_bound = true;
            break;
          }
          sums = larger;
        }
        if (!in_time(stage, left - 1, right, bound, attempt)) break;
        --left;
      }
      if (left == right) {
        attempt.stuck = true;
        return attempt;
      }
    }
    attempt.complete = left == 0;
    return attempt;
  }

  /// Where a stage may start, and for each such left end where it ends then.
  struct StageSpans {
    std::int32_t begin = 0, end = 0;    ///< Left ends lie in [begin, end).
    std::int32_t* right_end = nullptr;  ///< [layer], filled in for that range; -1: none.
  };

  /// All left ends that stages i … p-1 can reach, for each i: conclusive always.
  Attempt fill_exhaustively(double bound, Ends& ends) {
    const std::size_t row = layers_.size() + 1;
    right_end_.resize(places_.size() * row);
    Attempt attempt;
    StageSpans next;
    for (auto stage = std::ssize(places_) - 1; stage >= 0; --stage) {
      next = fill_stage(stage, bound, next, &right_end_[at(stage) * row], attempt);
      if (next.begin == next.end) return attempt;
    }
    attempt.complete = next.begin == 0;
    if (!attempt.complete) return attempt;
    std::int32_t left = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      left = right_end_[i * row + at(left)];
      ends[i] = left;
    }
    return attempt;
  }

  /// Where `stage` may start when it may end where the next one may start (for the last: after all
  /// layers). The left end that a stage reaches moves left with its right end, so that one window
  /// passes over the layers once.
  StageSpans fill_stage(std::int64_t stage, double bound, const StageSpans& next,
                        std::int32_t* right_end, Attempt& attempt) {
    const bool is_last = next.right_end == nullptr;
    const std::int32_t first = is_last ? layer_count() : next.end - 1;
    const std::int32_t last =
        is_last ? first : std::max(next.begin, static_cast<std::int32_t>(stage + 1));
    StageSpans reach{first, first, right_end};
    std::int32_t left = first;
    start_window();
    for (std::int32_t right = first; right >= last; --right) {
      if (!is_last && next.right_end[right] < 0) continue;
      left = std::min(left, right);
      drop_from(right);
      while (left > stage) {
        if (!endless_ && !window_fits(stage, left - 1, right)) {
          attempt.memory_bound = true;
          break;
        }
        if (!in_time(stage, left - 1, right, bound, attempt)) break;
        --left;
        if (!endless_) add_left(left);
      }
      if (left == right) continue;
      if (right < reach.begin) std::fill(right_end + right, right_end + reach.begin, -1);
      std::fill(right_end + left, right_end + std::min(right, reach.begin), right);
      reach.begin = left;
    }
    return reach;
  }

  void start_window() {
    working_.restart();
    parameters_.restart();
    if (endless_ || !sums_.empty()) return;
    for (double ChainLayer::*field :
         {&ChainLayer::dense_parameters, &ChainLayer::expert_parameters, &ChainLayer::stash_bytes,
          &ChainLayer::offloaded_bytes, &ChainLayer::fixed_bytes}) {
      sums_.emplace_back(layers_, field);
    }
  }
  void drop_from(std::int32_t right) {
    working_.drop_from(right);
    parameters_.drop_from(right);
  }
  void add_left(std::int32_t layer) {
    working_.add(layer, layers_[at(layer)].working_bytes);
    parameters_.add(layer, layer_parameters(layers_[at(layer)]));
  }
  /// Whether the window with the layer `left` before it, which it does not have yet, fits.
  bool window_fits(std::int64_t stage, std::int32_t left, std::int32_t right) const {
    RunSums sums;
    sums.dense_parameters = sums_[0].of(left, right);
    sums.expert_parameters = sums_[1].of(left, right);
    sums.stash_bytes = sums_[2].of(left, right);
    sums.offloaded_bytes = sums_[3].of(left, right);
    sums.fixed_bytes = sums_[4].of(left, right);
    sums.working_bytes = working_.with(layers_[at(left)].working_bytes);
    sums.largest_layer_parameters = parameters_.with(layer_parameters(layers_[at(left)]));
    return fits(sums, places_[at(stage)].in_flight, memory_);
  }

  const std::span<const ChainLayer> layers_;
  const ExactSums forward_s_, backward_s_;
  RunSums all_;  ///< Of all layers; no maxima.
  std::vector<double> handover_s_;
  bool blocking_ = false;  ///< Sends.
  std::int64_t micro_batches_ = 1;
  std::vector<StagePlace> places_;
  std::vector<MemoryForm> too_small_;  ///< No split fits, whatever the handover times are.
  MemoryForm memory_;
  bool endless_ = false;
  Ends scratch_;
  std::vector<ExactSums> sums_;  ///< What memory depends on, once a window needs it.
  WindowMax working_, parameters_;
  std::vector<std::int32_t> right_end_;  ///< [stage][left]
};

namespace {

double path_of(std::span<const ChainLayer> layers, const Handovers& handovers, const Ends& ends,
               std::int64_t m) {
  std::vector<double> forward_s(ends.size());
  std::vector<double> backward_s(ends.size());
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (std::int32_t l = begin; l < ends[i]; ++l) {
      forward_s[i] += layers[at(l)].forward_s;
      backward_s[i] += layers[at(l)].backward_s;
    }
    begin = ends[i];
  }
  return one_f_one_b_path_s(forward_s, backward_s, handovers, m);
}

}  // namespace

std::optional<Partition> OneFOneBPartitioner::Chain::within(const MemoryForm& memory,
                                                            double least_excess_s) {
  memory_ = memory;
  endless_ = is_endless(memory);
  if (stages() > layers_.size() || is_too_much()) return std::nullopt;
  if (std::find(too_small_.begin(), too_small_.end(), memory) != too_small_.end()) {
    return std::nullopt;
  }
  scratch_.resize(stages());
  if (!fill_from_the_end(kInfinity, scratch_).complete) {
    too_small_.push_back(memory);
    return std::nullopt;
  }
  Partition partition;
  double& feasible = partition.excess_s;
  feasible = kInfinity;
  double infeasible = -1;
  double next_bound = kInfinity;
  const auto attempt_at = [&](double bound) -> std::optional<double> {
    const Attempt attempt = fill_from_the_end(bound, scratch_);
    partition.memory_bound |= attempt.memory_bound;
    if (attempt.complete) {
      partition.ends = scratch_;
      return feasible = bound;
    }
    infeasible = bound;
    next_bound = attempt.next_bound;
    return std::nullopt;
  };
  // From the least, quickly up to a feasible bound …
  attempt_at(least_excess_s);
  double guess = static_cast<double>(micro_batches_ - 1) *
                 (forward_s_.total() + backward_s_.total()) / static_cast<double>(stages());
  while (feasible == kInfinity) {
    assert(next_bound < kInfinity);
    attempt_at(std::max(next_bound, guess));
    guess *= kGuessStep;
  }
  // … then in between, and at last through attained values only, from below.
  if (infeasible >= 0) {
    const auto halved = [](const ThresholdRange& range) {
      return range.next_by_half(kNearThreshold);
    };
    least_threshold({infeasible, feasible}, halved, attempt_at);
    attempt_at(infeasible);
    while (next_bound < feasible) attempt_at(next_bound);
  }
  partition.path_s = path_of(layers_, {handover_s_, blocking_}, partition.ends, micro_batches_);
  return partition;
}

OneFOneBPartitioner::OneFOneBPartitioner(std::span<const ChainLayer> layers)
    : chain_(std::make_unique<Chain>(layers)) {}
OneFOneBPartitioner::~OneFOneBPartitioner() = default;
OneFOneBPartitioner::OneFOneBPartitioner(OneFOneBPartitioner&&) noexcept = default;
OneFOneBPartitioner& OneFOneBPartitioner::operator=(OneFOneBPartitioner&&) noexcept = default;

void OneFOneBPartitioner::set_pipeline(const Handovers& handovers, std::int64_t micro_batches) {
  chain_->set_pipeline(handovers, micro_batches);
}

std::optional<Partition> OneFOneBPartitioner::within(const MemoryForm& memory,
                                                     double least_excess_s) {
  return chain_->within(memory, least_excess_s);
}

std::optional<Partition> partition_one_f_one_b(std::span<const ChainLayer> layers,
                                               const Handovers& handovers,
                                               std::int64_t micro_batches,
                                               const MemoryForm& memory) {
  OneFOneBPartitioner partitioner(layers);
  partitioner.set_pipeline(handovers, micro_batches);
  return partitioner.within(memory);
}

}  // namespace braid
