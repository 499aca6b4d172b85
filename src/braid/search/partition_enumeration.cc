#include <algorithm>
#include <functional>
#include <limits>

#include "braid/search/one_f_one_b_chain.h"
#include "braid/search/partition.h"

namespace braid {
namespace {

/// Sums of two counts up to this do not overflow.
constexpr std::int64_t kMostCounted = std::numeric_limits<std::int64_t>::max() / 2;

/// Walks all splits whose stages each keep within the bound, never entering a dead end.
class Enumeration {
 public:
  Enumeration(std::span<const ChainLayer> layers, const Handovers& handovers,
              std::int64_t micro_batches, const MemoryForm& memory, const PartitionLimits& limits,
              const std::function<void(const Ends&)>& visit)
      : layers_(layers),
        places_(stage_places(handovers, micro_batches)),
        memory_(memory),
        limits_(limits),
        passes_(static_cast<double>(micro_batches)),
        visit_(visit),
        splits_(places_.size() + 1, std::vector<std::int64_t>(layers.size() + 1, 0)),
        ends_(places_.size()) {
    for (const ChainLayer& layer : layers) layers_s_ += layer.time_s();
    double handovers_s = 0;
    for (const double each_s : handovers.time_s) handovers_s += 2 * each_s;
    bound_ = limits.path_below_s - layers_s_ - handovers_s;
  }

  bool run() {
    // More than the limit are as good as any number.
    const std::int64_t more = limits_.most < kMostCounted ? limits_.most + 1 : kMostCounted;
    splits_[0][0] = 1;
    const std::ptrdiff_t spare = std::ssize(layers_) - std::ssize(places_);
    double before_s = 0;
    for (std::size_t right = 1; right <= layers_.size(); ++right) {
      before_s += layers_[right - 1].time_s();
      // Each stage before and behind takes a layer.
      const auto before = static_cast<std::ptrdiff_t>(right) - 1;
      const auto last = std::min(before, std::ssize(places_) - 1);
      for (auto i = static_cast<int>(std::max<std::ptrdiff_t>(0, before - spare)); i <= last; ++i) {
        const auto at = static_cast<std::size_t>(i);
        each_stage(i, static_cast<std::int32_t>(right), before_s, [&](std::int32_t left) {
          std::int64_t& splits = splits_[at + 1][right];
          splits = std::min(more, splits + splits_[at][static_cast<std::size_t>(left)]);
          return splits < more;
        });
      }
    }
    const std::int64_t splits = splits_.back().back();
    if (splits == 0) return true;
    const bool all = splits <= limits_.most;
    left_ = all ? splits : limits_.most_of_more;
    if (left_ > 0) descend(static_cast<int>(places_.size()) - 1, layers_.size(), layers_s_);
    return all;
  }

 private:
  /// Calls body(left) for each stage [left, right) that keeps within bound and memory, shortest
  /// first, until it returns false. `before_s`: the layers up to `right`.
  template <typename Body>
  void each_stage(int index, std::int32_t right, double before_s, const Body& body) {
    const StagePlace& place = places_[static_cast<std::size_t>(index)];
    const double below_s = layers_s_ - before_s + place.handover_below_s;
    RunSums sums;
    for (std::int32_t left = right - 1; left >= index; --left) {
      sums.add(layers_[static_cast<std::size_t>(left)]);
      if (!fits(sums, place.in_flight, memory_) ||
          place.excess_s(sums.forward_s, sums.backward_s, below_s) >= bound_ ||
          load_s(sums) >= limits_.load_below_s || !body(left)) {
        return;
      }
    }
  }

  double load_s(const RunSums& sums) const {
    return passes_ * sums.time_s() +
           sums.dense_parameters * limits_.optimizer_s_per_dense_parameter +
           sums.expert_parameters * limits_.optimizer_s_per_expert_parameter;
  }

  /// Visits until there are none left to visit.
  bool descend(int index, std::size_t right, double before_s) {
    ends_[static_cast<std::size_t>(index)] = static_cast<std::int32_t>(right);
    bool complete = true;
    double start_s = before_s;
    each_stage(index, static_cast<std::int32_t>(right), before_s, [&](std::int32_t left) {
      const auto at = static_cast<std::size_t>(left);
      start_s -= layers_[at].time_s();
      if (splits_[static_cast<std::size_t>(index)][at] == 0) return true;
      if (index > 0) {
        complete = descend(index - 1, at, start_s);
      } else {
        visit_(ends_);
        complete = --left_ > 0;
      }
      return complete;
    });
    return complete;
  }

  const std::span<const ChainLayer> layers_;
  const std::vector<StagePlace> places_;
  const MemoryForm& memory_;
  double layers_s_ = 0;
  double bound_ = 0;
  const PartitionLimits& limits_;
  const double passes_;
  std::int64_t left_ = 0;
  const std::function<void(const Ends&)>& visit_;
  /// [i][b]: how many ways there are for the first i stages to take the first b layers.
  std::vector<std::vector<std::int64_t>> splits_;
  Ends ends_;
};

}  // namespace

bool for_each_partition_below(std::span<const ChainLayer> layers, const Handovers& handovers,
                              std::int64_t micro_batches, const MemoryForm& memory,
                              const PartitionLimits& limits,
                              const std::function<void(const Ends&)>& visit) {
  if (handovers.size() >= layers.size()) return true;
  return Enumeration(layers, handovers, micro_batches, memory, limits, visit).run();
}

}  // namespace braid
