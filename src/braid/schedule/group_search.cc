#include "braid/schedule/group_search.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/in_flight.h"
#include "braid/schedule/order_form.h"

namespace braid {
namespace {

struct Choice {
  std::vector<std::int64_t> k, warm_ups;
  double time_s = kInfinity;
  double fullest_bytes = 0, all_bytes = 0;
};

bool better(const Choice& a, const Choice& b) {
  if (a.time_s < b.time_s * kBelowRounding) return true;
  if (a.time_s > b.time_s * kAboveRounding) return false;
  return std::tie(a.fullest_bytes, a.all_bytes, a.k) < std::tie(b.fullest_bytes, b.all_bytes, b.k);
}

class GroupSearcher {
 public:
  GroupSearcher(const TimedGraph& timed, const GroupSearch& limits)
      : timed_(timed),
        graph_(timed.graph),
        limits_(limits),
        sinks_first_(topological_stages(depths_of(graph_))),
        least_(timed) {
    std::reverse(sinks_first_.begin(), sinks_first_.end());
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      passes_ += 2 * graph_.micro_batches(s);
    }
  }

  GroupSearchResult run() {
    result_.all = all_are_few();
    if (result_.all) {
      k_.assign(graph_.stages.size(), 1);
      try_all(0, 0);
    } else {
      descend();
    }
    result_.k = best_.k;
    result_.warm_ups = best_.warm_ups;
    result_.time_s = best_.time_s;
    return result_;
  }

 private:
  bool all_are_few() const {
    std::int64_t choices = 1;
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      const std::int64_t m = graph_.micro_batches(s);
      if (m > limits_.most_choices / choices) return false;
      choices *= m;
    }
    return choices <= limits_.most_work / passes_;
  }

  /// A choice with the warm-ups that are chosen.
  Choice timed_choice(std::vector<std::int64_t> k) {
    Choice choice;
    choice.warm_ups = least_.warm_ups();
    const OrderTiming timing = time_order(timed_, k_f_k_b_order(graph_, k, choice.warm_ups));
    choice.k = std::move(k);
    choice.time_s = timing.time_s;
    for (const DeviceTiming& device : timing.devices) {
      choice.fullest_bytes = std::max(choice.fullest_bytes, device.peak_bytes);
      choice.all_bytes += device.peak_bytes;
    }
    work_ += passes_;
    ++result_.tried;
    return choice;
  }

  /// `bound_s`: when the stages that have theirs end at the earliest.
  void try_all(std::size_t next, double bound_s) {
    if (next == sinks_first_.size()) {
      Choice choice = timed_choice(k_);
      if (better(choice, best_)) best_ = std::move(choice);
      return;
    }
    const std::size_t s = sinks_first_[next];
    const double update_s = timed_.costs[s].reduce_gradients_s + timed_.costs[s].optimizer_s;
    for (k_[s] = 1; k_[s] <= graph_.micro_batches(s); ++k_[s]) {
      const double end_s = least_.choose(s, k_[s]) + update_s;
      const double later_s = std::max(bound_s, end_s);
      if (later_s > best_.time_s * kAboveRounding) continue;
      try_all(next + 1, later_s);
    }
    k_[s] = 1;
  }

  std::vector<std::int64_t> powers(std::int64_t most) const {
    std::vector<std::int64_t> result;
    for (std::int64_t k = 1; k < most; k *= 2) result.push_back(k);
    result.push_back(most);
    return result;
  }

  /// False when no work is left, of which something is always tried.
  bool consider(const std::vector<std::int64_t>& k) {
    if (best_.time_s < kInfinity && work_ + least_.work() > limits_.most_work) return false;
    for (const std::size_t s : sinks_first_) least_.choose(s, k[s]);
    Choice choice = timed_choice(k);
    if (better(choice, best_)) best_ = std::move(choice);
    return true;
  }

  void descend() {
    std::int64_t most = 1;
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      most = std::max(most, graph_.micro_batches(s));
    }
    for (const std::int64_t k : powers(most)) {
      std::vector<std::int64_t> same;
      same.reserve(graph_.stages.size());
      for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
        same.push_back(std::min(k, graph_.micro_batches(s)));
      }
      if (!consider(same)) return;
    }
    for (bool helped = true; helped;) {
      const std::vector<std::int64_t> before = best_.k;
      for (const std::size_t s : sinks_first_) {
        const std::vector<std::int64_t> from = best_.k;
        for (const std::int64_t k : powers(graph_.micro_batches(s))) {
          if (k == from[s]) continue;
          std::vector<std::int64_t> changed = from;
          changed[s] = k;
          if (!consider(changed)) return;
        }
      }
      helped = best_.k != before;
    }
  }

  const TimedGraph& timed_;
  const StageGraph& graph_;
  const GroupSearch& limits_;
  std::vector<std::size_t> sinks_first_;
  LeastWarmUps least_;
  std::vector<std::int64_t> k_;
  std::int64_t passes_ = 0;  ///< Of all stages.
  std::int64_t work_ = 0;    ///< Of whole timings.
  Choice best_;
  GroupSearchResult result_;
};

}  // namespace

GroupSearchResult search_groups(const TimedGraph& timed, const GroupSearch& limits) {
  require_own_devices(timed.graph, "kFkB");
  require_one_round(timed.graph, "kFkB");
  return GroupSearcher(timed, limits).run();
}

}  // namespace braid
