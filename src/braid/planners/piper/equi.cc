#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/piper/variants.h"

namespace braid {
namespace {

using Layers = std::vector<std::int32_t>;

/// Layers in depth-first topological order: what became ready last goes next.
Layers depth_first_order(const PiperProblem& problem) {
  std::vector<Layers> successors(problem.nodes.size());
  std::vector<std::int32_t> waits(problem.nodes.size(), 0);
  for (const PiperEdge& edge : problem.edges) {
    successors[static_cast<std::size_t>(edge.source)].push_back(edge.target);
    ++waits[static_cast<std::size_t>(edge.target)];
  }
  Layers order, ready;
  for (std::size_t v = 0; v < waits.size(); ++v) {
    if (waits[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
  }
  while (!ready.empty()) {
    const std::int32_t v = ready.back();
    ready.pop_back();
    order.push_back(v);
    // Of successors that become ready together the first goes first.
    const Layers& next = successors[static_cast<std::size_t>(v)];
    for (std::size_t i = next.size(); i-- > 0;) {
      const std::int32_t w = next[i];
      if (--waits[static_cast<std::size_t>(w)] == 0) ready.push_back(w);
    }
  }
  return order;
}

/// Index of the fastest option that repeats work or not, as asked; of any when there is none such.
std::int32_t option_of(const PiperDegree& degree, bool recompute) {
  std::int32_t best = -1;
  bool best_matches = false;
  for (std::size_t o = 0; o < degree.options.size(); ++o) {
    const bool matches = degree.options[o].recompute == recompute;
    if (best >= 0 &&
        std::tuple(best_matches, -degree.options[static_cast<std::size_t>(best)].time) >=
            std::tuple(matches, -degree.options[o].time)) {
      continue;
    }
    best = static_cast<std::int32_t>(o);
    best_matches = matches;
  }
  return best;
}

const PiperDegree* degree_of(const PiperNode& node, int tp) {
  for (const PiperDegree& degree : node.degrees) {
    if (degree.tp == tp) return &degree;
  }
  return nullptr;
}

/// Layers alike in all their sizes (measured times always differ a little) that take most of the
/// time, and what has to come before them; none when there is no such kind, or other layers in
/// between.
struct Blocks {
  Layers before, blocks, after;
};

std::optional<Blocks> find_blocks(const PiperProblem& problem) {
  using Key = std::vector<std::tuple<int, double, double, double>>;
  std::map<Key, std::pair<double, Layers>> kinds;
  double all = 0;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    Key key;
    for (const PiperDegree& degree : problem.nodes[v].degrees) {
      for (const PiperOption& option : degree.options) {
        key.emplace_back(degree.tp, option.parameter_bytes, option.in_flight_bytes,
                         option.fixed_bytes);
      }
    }
    if (key.empty()) return std::nullopt;
    auto& [time, layers] = kinds[key];
    time += problem.nodes[v].degrees.front().options.front().time;
    all += problem.nodes[v].degrees.front().options.front().time;
    layers.push_back(static_cast<std::int32_t>(v));
  }
  for (const auto& [key, kind] : kinds) {
    if (kind.first <= all / 2 || kind.second.size() < 2) continue;
    Blocks found;
    found.blocks = kind.second;
    std::vector<bool> leads(problem.nodes.size(), false);
    for (const std::int32_t v : kind.second) leads[static_cast<std::size_t>(v)] = true;
    std::vector<bool> follows = leads;
    for (const PiperEdge& edge : problem.edges) {
      if (follows[static_cast<std::size_t>(edge.source)]) {
        follows[static_cast<std::size_t>(edge.target)] = true;
      }
    }
    for (std::size_t e = problem.edges.size(); e-- > 0;) {
      // Edges are in order of their sources: whatever follows a source has been seen.
      if (leads[static_cast<std::size_t>(problem.edges[e].target)]) {
        leads[static_cast<std::size_t>(problem.edges[e].source)] = true;
      }
    }
    for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
      const auto layer = static_cast<std::int32_t>(v);
      if (std::binary_search(kind.second.begin(), kind.second.end(), layer)) continue;
      if (leads[v] && follows[v]) return std::nullopt;
      (leads[v] ? found.before : found.after).push_back(layer);
    }
    return found;
  }
  return std::nullopt;
}

/// Layers by stage.
struct Cut {
  Layers layers;
  std::vector<std::size_t> ends;

  std::size_t stages() const { return ends.size(); }
  std::span<const std::int32_t> stage(std::size_t s) const {
    const std::size_t begin = s == 0 ? 0 : ends[s - 1];
    return std::span(layers).subspan(begin, ends[s] - begin);
  }
};

/// The first of `layers` to as many stages, later ones having one more when it does not come out
/// even; `before` and `after` to stages of their own (`apart`), or to the first and the last.
Cut cut_evenly(const Layers& layers, std::size_t stages, const Layers& before = {},
               const Layers& after = {}, bool apart = false) {
  Cut cut;
  cut.layers.reserve(before.size() + layers.size() + after.size());
  cut.layers.insert(cut.layers.end(), before.begin(), before.end());
  cut.layers.insert(cut.layers.end(), layers.begin(), layers.end());
  cut.layers.insert(cut.layers.end(), after.begin(), after.end());
  const std::size_t each = layers.size() / stages, larger = layers.size() % stages;
  std::size_t next = before.size();
  if (apart) cut.ends.push_back(next);
  for (std::size_t s = 0; s < stages; ++s) {
    cut.ends.push_back(next += each + (s >= stages - larger ? 1 : 0));
  }
  if (apart) {
    cut.ends.push_back(cut.layers.size());
  } else {
    cut.ends.back() = cut.layers.size();
  }
  for (std::size_t s = 0, begin = 0; s < cut.stages(); begin = cut.ends[s++]) {
    std::sort(cut.layers.begin() + static_cast<std::ptrdiff_t>(begin),
              cut.layers.begin() + static_cast<std::ptrdiff_t>(cut.ends[s]));
  }
  return cut;
}

/// Stages in an order that no edge leads back in?
bool is_in_order(const PiperProblem& problem, const Cut& cut) {
  std::vector<std::size_t> stage_of(problem.nodes.size(), 0);
  for (std::size_t s = 0; s < cut.stages(); ++s) {
    for (const std::int32_t v : cut.stage(s)) stage_of[at(v)] = s;
  }
  return std::all_of(problem.edges.begin(), problem.edges.end(), [&](const PiperEdge& edge) {
    return stage_of[at(edge.source)] <= stage_of[at(edge.target)];
  });
}

class Equi {
 public:
  /// `cut`: the layers that are cut evenly.
  Equi(const PiperProblem& problem, const Layers& cut, const PiperSearchLimits& limits)
      : problem_(problem),
        cut_(cut),
        limits_(limits),
        dps_(piper_dp_degrees(problem)),
        pricer_(problem) {
    best_.time = kInfinity;
    for (const PiperNode& node : problem.nodes) {
      for (const PiperDegree& degree : node.degrees) tps_.push_back(degree.tp);
    }
    std::sort(tps_.begin(), tps_.end());
    tps_.erase(std::unique(tps_.begin(), tps_.end()), tps_.end());
  }

  /// Tries the cut that `make` makes, into so many stages, `runs` of which the layers are dealt to,
  /// where it may be faster than the best so far. Once the work is spent its bound counts instead.
  template <class Make>
  void try_count(std::size_t stages, std::size_t runs, const Make& make) {
    const double bound_s = least_of_s(stages, runs);
    if (bound_s >= best_.time) return;
    if (limits_.work > 0 && best_.work >= limits_.work) {
      left_s_ = std::min(left_s_, bound_s);
      return;
    }
    try_cut(make());
    if (limits_.progress) limits_.progress(best_.time, 0, best_.work);
  }

  PiperSolution finish() {
    best_.bound = std::min(best_.time, left_s_);
    if (best_.stages.empty()) {
      best_.status = left_s_ < kInfinity ? Status::budget_exhausted : Status::infeasible;
      best_.time = best_.bound = 0;
    } else {
      best_.status = left_s_ < best_.time ? Status::feasible : Status::optimal;
    }
    return best_;
  }

 private:
  /// What no cut into so many stages, `runs` of which the layers are dealt to, beats.
  double least_of_s(std::size_t stages, std::size_t runs) {
    const std::size_t largest = (cut_.size() + runs - 1) / runs;
    const auto count = static_cast<std::int64_t>(stages);
    double bound_s = kInfinity;
    for (const int tp : tps_) {
      for (const bool recompute : {false, true}) {
        bound_s = std::min(bound_s, least_s(count, tp, recompute, largest));
      }
    }
    return bound_s;
  }

  void try_cut(const Cut& cut) {
    if (!is_in_order(problem_, cut)) return;
    for (const int tp : tps_) {
      for (const bool recompute : {false, true}) try_form(cut, tp, recompute);
    }
  }

  /// What layers take, run one way.
  struct LayerTimes {
    double all_s = 0;
    double least_s = kInfinity;  ///< Of one that is cut.
  };

  /// What the slowest of so many stages takes at least, on as many replicas as there may be: no
  /// less than the average, or than so many of the layers that are cut. Infinite where a layer has
  /// no such degree.
  double least_s(std::int64_t count, int tp, bool recompute, std::size_t largest) {
    const auto [known, fresh] = layers_s_.try_emplace(std::pair(tp, recompute));
    if (fresh) {
      const auto time_s = [&](const PiperNode& node) {
        const PiperDegree* degree = degree_of(node, tp);
        return degree == nullptr ? kInfinity
                                 : degree->options[at(option_of(*degree, recompute))].time;
      };
      LayerTimes& times = known->second;
      for (const PiperNode& node : problem_.nodes) times.all_s += time_s(node);
      for (const std::int32_t v : cut_) {
        times.least_s = std::min(times.least_s, time_s(problem_.nodes[at(v)]));
      }
    }
    const double share = least_share(count, tp);
    if (share == kInfinity || known->second.all_s == kInfinity) return kInfinity;
    return kBelowTolerance * share *
           std::max(known->second.all_s / static_cast<double>(count),
                    static_cast<double>(largest) * known->second.least_s);
  }

  /// Of the micro-batches, of a replica of so many stages; infinite where there is no room for one.
  double least_share(std::int64_t count, int tp) const {
    double share = kInfinity;
    for (const std::int64_t dp : dps_) {
      if (count * dp > problem_.micro_batches || count * dp * tp > problem_.devices) break;
      share = std::min(share, piper_share(problem_, dp));
    }
    return share;
  }

  void try_form(const Cut& cut, int tp, bool recompute) {
    // With equal degrees the micro-batches in flight do not depend on them, and without replicas a
    // stage's time is what the others share.
    const auto count = static_cast<std::int64_t>(cut.stages());
    if (least_s(count, tp, recompute, 0) >= best_.time) return;
    const double least = least_share(count, tp);
    std::vector<PiperStage> stages;
    std::vector<double> sync_times;
    for (std::int64_t s = 0; s < count; ++s) {
      ++best_.work;
      PiperStage stage;
      const std::span<const std::int32_t> layers = cut.stage(static_cast<std::size_t>(s));
      stage.nodes.assign(layers.begin(), layers.end());
      double parameter_bytes = 0;
      for (const std::int32_t v : stage.nodes) {
        const PiperDegree* degree = degree_of(problem_.nodes[static_cast<std::size_t>(v)], tp);
        if (degree == nullptr) return;
        stage.options.push_back(option_of(*degree, recompute));
        parameter_bytes +=
            degree->options[static_cast<std::size_t>(stage.options.back())].parameter_bytes;
      }
      stage.tp = tp;
      stage.suffix = count - s;
      pricer_.price(stage);
      if (stage.memory_bytes > problem_.memory_bytes * kAboveRounding) return;
      if (least * stage.time >= best_.time) return;
      stages.push_back(std::move(stage));
      sync_times.push_back(parameter_bytes / problem_.bandwidth_bytes);
    }
    std::int64_t best_dp = 0;
    for (const std::int64_t dp : dps_) {
      if (count * dp > problem_.micro_batches || count * dp * tp > problem_.devices) break;
      const double share = piper_share(problem_, dp), sync = piper_sync_factor(problem_, dp);
      double slowest = 0;
      for (std::size_t s = 0; s < stages.size() && slowest < best_.time; ++s) {
        slowest = std::max(slowest, share * stages[s].time + sync * sync_times[s]);
      }
      if (slowest >= best_.time) continue;
      best_.time = slowest;
      best_dp = dp;
    }
    if (best_dp == 0) return;
    best_.time = 0;
    for (PiperStage& stage : stages) {
      stage.dp = best_dp;
      stage.suffix *= best_dp;
      pricer_.price(stage);
      best_.time = std::max(best_.time, stage.time);
    }
    best_.stages = std::move(stages);
  }

  const PiperProblem& problem_;
  const Layers& cut_;
  const PiperSearchLimits& limits_;
  std::vector<std::int64_t> dps_;
  std::vector<int> tps_;
  std::map<std::pair<int, bool>, LayerTimes> layers_s_;
  PiperStagePricer pricer_;
  PiperSolution best_;
  double left_s_ = kInfinity;  ///< The least bound of what the work did not suffice for.
};

}  // namespace

PiperSolution solve_equi(const PiperProblem& problem, const PiperSearchLimits& limits) {
  check_flat(problem, "equi");
  const auto most = static_cast<std::size_t>(std::min(problem.devices, problem.micro_batches));
  if (const auto found = find_blocks(problem)) {
    Equi equi(problem, found->blocks, limits);
    for (const bool apart : {false, true}) {
      if (apart && (found->before.empty() || found->after.empty())) continue;
      for (std::size_t stages = 1; stages <= found->blocks.size(); ++stages) {
        const std::size_t count = stages + (apart ? 2 : 0);
        if (count > most) break;
        equi.try_count(count, stages, [&] {
          return cut_evenly(found->blocks, stages, found->before, found->after, apart);
        });
      }
    }
    return equi.finish();
  }
  const Layers order = depth_first_order(problem);
  Equi equi(problem, order, limits);
  for (std::size_t stages = 1; stages <= std::min(most, order.size()); ++stages) {
    equi.try_count(stages, stages, [&] { return cut_evenly(order, stages); });
  }
  return equi.finish();
}

}  // namespace braid
