#include <functional>
#include <numeric>

#include "braid/planners/one_f_one_b_chain.h"
#include "braid/planners/partition.h"

namespace braid {
namespace {

/// Walks all splits whose stages each keep within the bound, never entering a dead end.
class Enumeration {
 public:
  Enumeration(std::span<const ChainLayer> layers, std::span<const double> handover_s,
              std::int64_t micro_batches, const MemoryForm& memory, double path_below_s,
              std::int64_t most, const std::function<void(const Ends&)>& visit)
      : layers_(layers),
        places_(stage_places(handover_s, micro_batches)),
        memory_(memory),
        left_(most),
        visit_(visit),
        completes_(places_.size() + 1, std::vector<bool>(layers.size() + 1)),
        ends_(places_.size()) {
    for (const ChainLayer& layer : layers) layers_s_ += layer.time_s();
    bound_ = path_below_s - layers_s_ - places_.front().handover_below_s;
  }

  bool run() {
    // completes_[i][b]: the first i stages can take the first b layers.
    completes_[0][0] = true;
    double before_s = 0;
    for (std::size_t right = 1; right <= layers_.size(); ++right) {
      before_s += layers_[right - 1].time_s();
      for (int i = 0; i < std::ssize(places_) && i < static_cast<int>(right); ++i) {
        const auto at = static_cast<std::size_t>(i);
        each_stage(i, static_cast<std::int32_t>(right), before_s, [&](std::int32_t left) {
          if (!completes_[at][static_cast<std::size_t>(left)]) return true;
          completes_[at + 1][right] = true;
          return false;
        });
      }
    }
    if (!completes_.back().back()) return true;
    return descend(static_cast<int>(places_.size()) - 1, layers_.size(), layers_s_);
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
          place.excess_s(sums.forward_s, sums.backward_s, below_s) >= bound_ || !body(left)) {
        return;
      }
    }
  }

  bool descend(int index, std::size_t right, double before_s) {
    ends_[static_cast<std::size_t>(index)] = static_cast<std::int32_t>(right);
    bool complete = true;
    double start_s = before_s;
    each_stage(index, static_cast<std::int32_t>(right), before_s, [&](std::int32_t left) {
      const auto at = static_cast<std::size_t>(left);
      start_s -= layers_[at].time_s();
      if (!completes_[static_cast<std::size_t>(index)][at]) return true;
      if (index > 0) {
        complete = descend(index - 1, at, start_s);
      } else if (left_-- > 0) {
        visit_(ends_);
      } else {
        complete = false;
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
  std::int64_t left_;
  const std::function<void(const Ends&)>& visit_;
  std::vector<std::vector<bool>> completes_;
  Ends ends_;
};

}  // namespace

bool for_each_partition_below(std::span<const ChainLayer> layers,
                              std::span<const double> handover_s, std::int64_t micro_batches,
                              const MemoryForm& memory, double path_below_s, std::int64_t most,
                              const std::function<void(const Ends&)>& visit) {
  if (handover_s.size() >= layers.size()) return true;
  return Enumeration(layers, handover_s, micro_batches, memory, path_below_s, most, visit).run();
}

}  // namespace braid
