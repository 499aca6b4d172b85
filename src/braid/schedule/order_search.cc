#include "braid/schedule/order_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/greedy_order.h"
#include "braid/schedule/order_form.h"

namespace braid {
namespace {

/// Passes done of each stage: forward, backward (or first halves), second halves.
using Counts = std::vector<std::int64_t>;  // [3·stage + kind]

/// A partial schedule: what its future depends on, and how it came about.
struct State {
  std::vector<double> times;  ///< Device free [stage], then link free, then arrivals [slot], which
                              ///< are 0 where nothing is on its way.
  std::int64_t parent = -1;   ///< Among all states.
  Work work;
};

class Search {
 public:
  Search(const TimedGraph& timed, const OrderSearch& limits)
      : timed_(timed),
        graph_(timed.graph),
        limits_(limits),
        stages_(graph_.stages.size()),
        incoming_(edges_by_target(graph_)),
        outgoing_(edges_by_source(graph_)) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> links;
    for (const StageEdge& edge : graph_.edges) {
      const auto link = [&](std::int32_t from, std::int32_t to) {
        return links.try_emplace({from, to}, stages_ + links.size()).first->second;
      };
      forward_link_.push_back(link(edge.source, edge.target));
      backward_link_.push_back(link(edge.target, edge.source));
    }
    times_ = stages_ + links.size();
    for (std::size_t s = 0; s < stages_; ++s) {
      const std::int64_t m = graph_.micro_batches(s);
      micro_batches_.push_back(m);
      forward_slot_.push_back(times_);
      backward_slot_.push_back(times_ + at(m));
      times_ += 2 * at(m);
      passes_ += (limits_.halves ? 3 : 2) * m;
      caps_.push_back(s < limits_.most_in_flight.size() && limits_.most_in_flight[s] > 0
                          ? limits_.most_in_flight[s]
                          : m);
    }
    find_tails();
  }

  OrderSearchResult run() {
    result_.time_s = kInfinity;
    try_known_orders();
    result_.bound_s = bound_s(Counts(3 * stages_, 0), std::vector<double>(times_, 0));
    if (result_.time_s > result_.bound_s * kAboveRounding) explore();
    if (result_.time_s <= result_.bound_s * kAboveRounding) result_.proved = true;
    if (result_.proved) result_.bound_s = result_.order ? result_.time_s : result_.bound_s;
    if (!result_.order) result_.time_s = 0;
    result_.states = static_cast<std::int64_t>(states_.size());
    return std::move(result_);
  }

 private:
  /// What follows at least after a stage's last gradients, on other devices and its own.
  void find_tails() {
    const std::vector<std::size_t> order = topological_stages(depths_of(graph_));
    gradient_tail_s_.assign(stages_, 0);
    head_s_.assign(stages_, 0);
    for (const std::size_t s : order) {
      for (const std::size_t e : incoming_.of(s)) {
        const auto x = at(graph_.edges[e].source);
        const StageCost& cost = timed_.costs[x];
        head_s_[s] = std::max(head_s_[s], head_s_[x] + cost.forward_s + timed_.transfer_s[e]);
        const double pass_s = cost.input_gradient_s + cost.weight_gradient_s + update_s(x);
        gradient_tail_s_[s] =
            std::max({gradient_tail_s_[s], timed_.transfer_s[e] + pass_s,
                      timed_.transfer_s[e] + cost.input_gradient_s +
                          (limits_.halves ? 0 : cost.weight_gradient_s) + gradient_tail_s_[x]});
      }
    }
  }

  double update_s(std::size_t s) const {
    return timed_.costs[s].reduce_gradients_s + timed_.costs[s].optimizer_s;
  }

  double bound_s(const Counts& counts, const std::vector<double>& times) const {
    double bound = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      const StageCost& cost = timed_.costs[s];
      const std::int64_t m = micro_batches_[s];
      const auto left = [&](std::size_t kind) {
        return static_cast<double>(m - counts[3 * s + kind]);
      };
      const double free_s = counts[3 * s] == 0 ? std::max(times[s], head_s_[s]) : times[s];
      const double forward_s = left(0) * cost.forward_s;
      const double input_s = left(1) * cost.input_gradient_s;
      const double weight_s = left(limits_.halves ? 2 : 1) * cost.weight_gradient_s;
      bound = std::max(bound, free_s + forward_s + input_s + weight_s + update_s(s));
      if (left(1) > 0) {
        bound = std::max(bound, free_s + forward_s + input_s + gradient_tail_s_[s] +
                                    (limits_.halves ? 0 : weight_s));
      }
    }
    return bound;
  }

  void try_known_orders() {
    const auto consider = [&](const auto& make) {
      try {
        const WorkOrder order = make();
        const OrderTiming timing = time_order(timed_, order);
        for (std::size_t s = 0; s < stages_; ++s) {
          if (timing.peak_in_flight[s] > caps_[s]) return;
        }
        if (timing.time_s >= result_.time_s) return;
        result_.time_s = timing.time_s;
        result_.order = order;
      } catch (const Error&) {
        // Not defined for this graph.
      }
    };
    if (limits_.halves) {
      consider([&] { return zero_bubble_h1_order(graph_); });
      consider([&] { return zero_bubble_h2_order(graph_); });
    } else {
      consider([&] { return one_f_one_b_order(graph_); });
      consider([&] { return greedy_order(timed_); });
      consider([&] { return gpipe_order(graph_); });
    }
  }

  /// Parts that the stage has sent along its edges, in samples.
  std::int64_t samples(const Counts& counts, std::int32_t stage, std::size_t kind) const {
    return counts[3 * at(stage) + kind] * graph_.stages[at(stage)].micro_batch;
  }

  enum class Readiness { never, later, now };

  /// Whether the stage may run its next pass of a kind: not before something else of its own,
  /// not before inputs come, or now.
  Readiness readiness(const Counts& counts, std::size_t s, WorkKind kind) const {
    const std::int64_t* done = &counts[3 * s];
    const std::int64_t b = graph_.stages[s].micro_batch;
    if (kind == WorkKind::weight_gradient) {
      return limits_.halves && done[2] < done[1] ? Readiness::now : Readiness::never;
    }
    const bool forward = kind == WorkKind::forward;
    if (forward ? done[0] == micro_batches_[s] || done[0] - done[1] >= caps_[s]
                : done[1] == done[0]) {
      return Readiness::never;
    }
    for (const std::size_t e : (forward ? incoming_ : outgoing_).of(s)) {
      const StageEdge& edge = graph_.edges[e];
      const std::int64_t there =
          forward ? samples(counts, edge.source, 0) : samples(counts, edge.target, 1);
      if (there < (done[forward ? 0 : 1] + 1) * b) return Readiness::later;
    }
    return Readiness::now;
  }

  /// Passes to go on with. A stage all of whose possible next passes are ready is as good as any to
  /// go on with alone: whatever its order, its next pass can be listed now.
  std::vector<Work> choices(const Counts& counts) const {
    const WorkKind gradient = limits_.halves ? WorkKind::input_gradient : WorkKind::backward;
    std::vector<Work> all;
    for (std::size_t s = 0; s < stages_; ++s) {
      std::vector<Work> own;
      bool waits = false;
      for (const auto& [kind, row] : {std::pair{gradient, 1}, std::pair{WorkKind::forward, 0},
                                      std::pair{WorkKind::weight_gradient, 2}}) {
        const Readiness ready = readiness(counts, s, kind);
        waits = waits || ready == Readiness::later;
        if (ready == Readiness::now) {
          own.push_back({kind, static_cast<std::int32_t>(s), counts[3 * s + at(row)]});
        }
      }
      if (!own.empty() && !waits) return own;
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

  void run_work(const Work& work, std::vector<double>& times) const {
    const std::size_t s = at(work.stage);
    const StageCost& cost = timed_.costs[s];
    if (work.kind == WorkKind::weight_gradient) {
      times[s] += cost.weight_gradient_s;
      return;
    }
    const bool forward = work.kind == WorkKind::forward;
    double& ready_s = times[(forward ? forward_slot_ : backward_slot_)[s] + at(work.index)];
    times[s] = std::max(times[s], ready_s) +
               (forward ? cost.forward_s
                        : cost.input_gradient_s + (limits_.halves ? 0 : cost.weight_gradient_s));
    if (forward && work.index == 0) times[s] = std::max(times[s], cost.parameters_s);
    ready_s = 0;
    const std::int64_t b = graph_.stages[s].micro_batch;
    for (const std::size_t e : (forward ? outgoing_ : incoming_).of(s)) {
      const StageEdge& edge = graph_.edges[e];
      const auto target = at(forward ? edge.target : edge.source);
      const std::int64_t target_b = graph_.stages[target].micro_batch;
      double& link_s = times[(forward ? forward_link_ : backward_link_)[e]];
      const std::int64_t part = std::min(b, target_b);
      for (std::int64_t i = work.index * b; i < (work.index + 1) * b; i += part) {
        link_s = std::max(link_s, times[s]) + timed_.transfer_s[e];
        double& arrival_s =
            times[(forward ? forward_slot_ : backward_slot_)[target] + at(i / target_b)];
        arrival_s = std::max(arrival_s, link_s);
      }
    }
  }

  using Layer = std::map<Counts, std::vector<std::int64_t>>;  // Indices of states.

  /// Adds a state to those with the same passes done, unless one of them is as good; drops those
  /// that it makes superfluous.
  void insert(std::vector<std::int64_t>& group, State state) {
    const auto no_later = [](const std::vector<double>& a, const std::vector<double>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x <= y; });
    };
    for (const std::int64_t other : group) {
      if (no_later(states_[at(other)].times, state.times)) return;
    }
    std::erase_if(group, [&](std::int64_t other) {
      if (!no_later(state.times, states_[at(other)].times)) return false;
      states_[at(other)].times = {};
      return true;
    });
    group.push_back(static_cast<std::int64_t>(states_.size()));
    states_.push_back(std::move(state));
  }

  void explore() {
    Layer layer;
    insert(layer[Counts(3 * stages_, 0)], {std::vector<double>(times_, 0), -1, {}});
    for (std::int64_t pass = 0; pass < passes_ && !layer.empty(); ++pass) {
      Layer next;
      for (auto& [counts, group] : layer) {
        const std::vector<Work> works = choices(counts);
        for (const std::int64_t index : group) {
          for (const Work& work : works) extend(counts, index, work, next);
          states_[at(index)].times = {};
        }
        // What is left is not known to end before or after the root's bound: that stays.
        if (static_cast<std::int64_t>(states_.size()) > limits_.most_states) return;
      }
      layer = std::move(next);
    }
    result_.proved = true;
    for (const auto& [counts, group] : layer) {
      for (const std::int64_t index : group) finish(counts, index);
    }
  }

  void extend(const Counts& counts, std::int64_t index, const Work& work, Layer& next) {
    State state{states_[at(index)].times, index, work};
    run_work(work, state.times);
    Counts after = counts;
    const std::size_t kind = work.kind == WorkKind::forward           ? 0
                             : work.kind == WorkKind::weight_gradient ? 2
                                                                      : 1;
    ++after[3 * at(work.stage) + kind];
    if (bound_s(after, state.times) >= result_.time_s * kBelowRounding) return;
    insert(next[after], std::move(state));
  }

  void finish(const Counts& counts, std::int64_t index) {
    const double time_s = bound_s(counts, states_[at(index)].times);
    if (time_s >= result_.time_s) return;
    result_.time_s = time_s;
    std::vector<Work> works;
    for (; states_[at(index)].parent >= 0; index = states_[at(index)].parent) {
      works.push_back(states_[at(index)].work);
    }
    std::reverse(works.begin(), works.end());
    result_.order.emplace();
    result_.order->devices.resize(stages_);
    const auto device = [&](std::size_t s) -> std::vector<Work>& {
      return result_.order->devices[at(graph_.stages[s].device)];
    };
    for (const Work& work : works) device(at(work.stage)).push_back(work);
    for (std::size_t s = 0; s < stages_; ++s)
      append_update(device(s), static_cast<std::int32_t>(s));
  }

  const TimedGraph& timed_;
  const StageGraph& graph_;
  const OrderSearch& limits_;
  std::size_t stages_ = 0, times_ = 0;
  std::int64_t passes_ = 0;
  EdgeGroups incoming_, outgoing_;
  std::vector<std::size_t> forward_link_, backward_link_;  ///< [edge]: where in State::times.
  std::vector<std::size_t> forward_slot_, backward_slot_;  ///< [stage]: likewise, of the first.
  std::vector<std::int64_t> micro_batches_, caps_;
  std::vector<double> head_s_, gradient_tail_s_;
  std::vector<State> states_;
  OrderSearchResult result_;
};

}  // namespace

OrderSearchResult search_order(const TimedGraph& timed, const OrderSearch& limits) {
  require_own_devices(timed.graph, "the search");
  require_one_round(timed.graph, "the search");
  return Search(timed, limits).run();
}

}  // namespace braid
