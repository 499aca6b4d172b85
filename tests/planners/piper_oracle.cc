#include "planners/piper_oracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "braid/base/infinity.h"

namespace braid {
namespace {

const std::vector<PiperOption>* options_at(const PiperNode& node, int tp) {
  for (const PiperDegree& degree : node.degrees) {
    if (degree.tp == tp) return &degree.options;
  }
  return nullptr;
}

/// The time of a set of layers run with the given options, and its memory.
struct Priced {
  double time = 0, memory = 0;
};

class BruteForce {
 public:
  explicit BruteForce(const PiperProblem& problem) : p_(problem), n_(problem.nodes.size()) {}

  double solve() {
    place(0, 0, 0, 0);
    return best_;
  }

  /// Least time for at most so many devices and at most such a sum of degrees: [k - 1][s - 1].
  std::vector<std::vector<double>> solve_all() {
    const std::int64_t sums = std::min(p_.devices, p_.micro_batches);
    all_.assign(static_cast<std::size_t>(p_.devices),
                std::vector<double>(static_cast<std::size_t>(sums), kInfinity));
    place(0, 0, 0, 0);
    return all_;
  }

  Priced price(unsigned stage, int tp, std::int64_t d, double in_flight,
               const std::vector<std::size_t>& pick) const {
    const auto batch = static_cast<double>(p_.micro_batches), dd = static_cast<double>(d);
    const double share =
        p_.rules.split == PiperSplit::uneven ? std::ceil(batch / dd) / batch : 1 / dd;
    Priced sum;
    std::set<std::pair<int, double>> in_tensors, out_tensors;
    for (std::size_t v = 0; v < n_; ++v) {
      if ((stage >> v & 1) == 0) continue;
      const PiperOption& option = (*options_at(p_.nodes[v], tp))[pick[v]];
      double bytes = 0;
      std::size_t in = 0, out = 0;
      for (const PiperEdge& edge : p_.edges) {
        const bool once = p_.rules.tensors == PiperTensors::once;
        if (edge.target == static_cast<int>(v)) {
          const double sync = option.in_sync_bytes.empty() ? 0 : option.in_sync_bytes[in];
          ++in;
          const bool first = in_tensors.count({edge.source, edge.bytes}) == 0;
          if ((stage >> edge.source & 1) == 0 && (!once || first)) {
            bytes += 2 * (edge.bytes + sync);
            in_tensors.insert({edge.source, edge.bytes});
          }
        }
        if (edge.source == static_cast<int>(v)) {
          const double sync = option.out_sync_bytes.empty() ? 0 : option.out_sync_bytes[out];
          ++out;
          const bool first = out_tensors.count({edge.source, edge.bytes}) == 0;
          if ((stage >> edge.target & 1) == 0 && (!once || first)) {
            bytes += 2 * (edge.bytes + sync);
            out_tensors.insert({edge.source, edge.bytes});
          }
        }
      }
      double gradient_bytes = 4 * (dd - 1) / dd * option.parameter_bytes;
      gradient_bytes *= p_.rules.sync == PiperSync::per_batch ? 1 / batch : share;
      sum.time += option.time * share + (bytes * share + gradient_bytes) / p_.bandwidth_bytes;
      sum.memory += option.in_flight_bytes * in_flight + option.fixed_bytes;
    }
    return sum;
  }

  double best_pick(unsigned stage, std::size_t v, int tp, std::int64_t d, double in_flight,
                   std::vector<std::size_t>& pick) {
    while (v < n_ && (stage >> v & 1) == 0) ++v;
    if (v == n_) {
      const Priced priced = price(stage, tp, d, in_flight, pick);
      return fits(priced.memory) ? priced.time : kInfinity;
    }
    const auto* options = options_at(p_.nodes[v], tp);
    if (options == nullptr) return kInfinity;
    double best = kInfinity;
    for (pick[v] = 0; pick[v] < options->size(); ++pick[v]) {
      best = std::min(best, best_pick(stage, v + 1, tp, d, in_flight, pick));
    }
    pick[v] = 0;
    return best;
  }

 private:
  bool fits(double bytes) const { return bytes <= p_.memory_bytes * (1 + 1e-12); }

  double stage_time(unsigned stage, int tp, std::int64_t d, std::int64_t s) {
    const std::int64_t in_flight = (s + d - 1) / d;
    const auto key = std::tuple(stage, tp, d, in_flight);
    const auto known = times_.find(key);
    if (known != times_.end()) return known->second;
    std::vector<std::size_t> pick(n_, 0);
    const double time = p_.rules.knapsack == PiperKnapsack::exact
                            ? best_pick(stage, 0, tp, d, static_cast<double>(in_flight), pick)
                            : bang_per_buck(stage, tp, d, static_cast<double>(in_flight));
    times_.emplace(key, time);
    return time;
  }

  double bang_per_buck(unsigned stage, int tp, std::int64_t d, double in_flight) {
    std::vector<std::size_t> pick(n_, 0);
    const auto with = [&](std::size_t v, std::size_t option) {
      std::vector<std::size_t> changed = pick;
      changed[v] = option;
      return price(stage, tp, d, in_flight, changed);
    };
    for (std::size_t v = 0; v < n_; ++v) {
      if ((stage >> v & 1) != 0 && options_at(p_.nodes[v], tp) == nullptr) return kInfinity;
    }
    for (std::size_t v = 0; v < n_; ++v) {
      if ((stage >> v & 1) == 0) continue;
      for (std::size_t o = 1; o < options_at(p_.nodes[v], tp)->size(); ++o) {
        if (with(v, o).time < with(v, pick[v]).time) pick[v] = o;
      }
    }
    for (;;) {
      const Priced now = price(stage, tp, d, in_flight, pick);
      if (fits(now.memory)) return now.time;
      double best_ratio = 0;
      std::pair<std::size_t, std::size_t> best;
      for (std::size_t v = 0; v < n_; ++v) {
        if ((stage >> v & 1) == 0) continue;
        for (std::size_t o = 0; o < options_at(p_.nodes[v], tp)->size(); ++o) {
          const Priced then = with(v, o);
          const double ratio = (now.memory - then.memory) / (then.time - now.time);
          if (then.memory < now.memory && ratio > best_ratio) {
            best_ratio = ratio;
            best = {v, o};
          }
        }
      }
      if (best_ratio == 0) return kInfinity;
      pick[best.first] = best.second;
    }
  }

  /// Adds stages in front of the layers `done`.
  void place(unsigned done, std::int64_t devices, std::int64_t suffix, double slowest) {
    const unsigned all = (1U << n_) - 1;
    if (done == all) {
      if (p_.rules.sum == PiperSum::exact && suffix != p_.micro_batches) return;
      if (all_.empty()) best_ = std::min(best_, slowest);
      for (std::int64_t k = devices; k <= static_cast<std::int64_t>(all_.size()); ++k) {
        std::vector<double>& row = all_[static_cast<std::size_t>(k - 1)];
        for (auto s = static_cast<std::size_t>(suffix - 1); s < row.size(); ++s) {
          row[s] = std::min(row[s], slowest);
        }
      }
      return;
    }
    const unsigned left = all & ~done;
    for (unsigned stage = left; stage != 0; stage = (stage - 1) & left) {
      if (p_.one_stage && stage != all) continue;
      const unsigned then = done | stage;
      const bool closed = std::all_of(p_.edges.begin(), p_.edges.end(), [&](const PiperEdge& e) {
        return (then >> e.source & 1) == 0 || (then >> e.target & 1) != 0;
      });
      if (!closed) continue;
      for (int tp = 1; devices + tp <= p_.devices; ++tp) {
        for (std::int64_t d = p_.least_dp; d <= p_.most_dp && devices + d * tp <= p_.devices; ++d) {
          if (p_.rules.split == PiperSplit::even && p_.micro_batches % d != 0) continue;
          if (d % p_.dp_multiple != 0) continue;
          // The published program may count more in flight than there are, which can only help a
          // heuristic.
          const std::int64_t most_suffix = std::min(p_.devices, p_.micro_batches);
          for (std::int64_t s = suffix + d; s <= most_suffix; ++s) {
            const double time = std::max(slowest, stage_time(stage, tp, d, s));
            if (time < best_) place(then, devices + d * tp, s, time);
            if (p_.rules.knapsack == PiperKnapsack::exact) break;
          }
        }
      }
    }
  }

  const PiperProblem& p_;
  std::size_t n_;
  std::map<std::tuple<unsigned, int, std::int64_t, std::int64_t>, double> times_;
  double best_ = kInfinity;
  std::vector<std::vector<double>> all_;
};

}  // namespace

double brute_force_time(const PiperProblem& problem) { return BruteForce(problem).solve(); }

double brute_force_stage_time(const PiperProblem& problem, unsigned layers, int tp, std::int64_t dp,
                              double in_flight) {
  std::vector<std::size_t> pick(problem.nodes.size(), 0);
  return BruteForce(problem).best_pick(layers, 0, tp, dp, in_flight, pick);
}

std::vector<std::vector<double>> brute_force_table(const PiperProblem& problem) {
  return BruteForce(problem).solve_all();
}

PiperProblem random_piper_problem(std::mt19937_64& random, const RandomPiper& what) {
  const auto roll = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto cost = [&](int most) {
    if (what.whole_numbers) return static_cast<double>(roll(0, most));
    return std::uniform_real_distribution<double>(0.01, most)(random);
  };
  PiperProblem problem;
  const int nodes = roll(1, what.most_nodes);
  const int edge_chance = roll(0, 3);
  std::vector<std::size_t> ins(static_cast<std::size_t>(nodes), 0), outs = ins;
  for (int u = 0; u < nodes; ++u) {
    for (int v = u + 1; v < nodes; ++v) {
      if (roll(0, 2) >= edge_chance) continue;
      problem.edges.push_back({u, v, static_cast<double>(roll(0, 3))});
      ++outs[static_cast<std::size_t>(u)];
      ++ins[static_cast<std::size_t>(v)];
    }
  }
  const bool syncs = roll(0, 1) == 1;
  const bool degree_sets_differ = roll(0, 2) == 0;
  const int kinds = roll(1, nodes);
  std::vector<PiperNode> made;
  for (int v = 0; v < nodes; ++v) {
    const auto at = static_cast<std::size_t>(v);
    PiperNode node;
    if (v >= kinds && roll(0, 1) == 0) {
      node = problem.nodes[static_cast<std::size_t>(roll(0, kinds - 1))];  // The same costs again.
    } else {
      for (const int tp : {1, 2, 3}) {
        if (tp < 3 && roll(0, 3) == 0 && degree_sets_differ) continue;
        if (tp == 3 && !degree_sets_differ) continue;
        PiperDegree degree{tp, {}};
        for (int o = roll(1, what.recompute_pairs ? 2 : 3); o > 0; --o) {
          PiperOption option;
          option.time = cost(24 / tp);
          option.parameter_bytes = roll(0, 2) == 0 ? cost(6) : 2.0;
          option.in_flight_bytes = cost(6);
          option.fixed_bytes = cost(8);
          degree.options.push_back(option);
        }
        node.degrees.push_back(degree);
      }
    }
    for (PiperDegree& degree : node.degrees) {
      const bool differ = roll(0, 2) == 0;
      for (PiperOption& option : degree.options) {
        option.in_sync_bytes.clear();
        option.out_sync_bytes.clear();
        if (!syncs) continue;
        for (std::size_t e = 0; e < ins[at]; ++e) {
          option.in_sync_bytes.push_back(differ ? roll(0, 2) : static_cast<double>(e % 2));
        }
        for (std::size_t e = 0; e < outs[at]; ++e) {
          option.out_sync_bytes.push_back(differ ? roll(0, 2) : 1.0);
        }
      }
    }
    node.name = "layer " + std::to_string(v);
    problem.nodes.push_back(node);
  }
  problem.devices = roll(1, what.most_devices);
  problem.micro_batches = roll(1, 6);
  problem.memory_bytes = roll(0, 3) == 0 ? 1000 : roll(4, 14 * nodes);
  problem.bandwidth_bytes = roll(1, 3);
  problem.rules.split = static_cast<PiperSplit>(roll(0, 2));
  problem.rules.sync = static_cast<PiperSync>(roll(0, 1));
  problem.rules.tensors = static_cast<PiperTensors>(roll(0, 1));
  if (roll(0, 9) == 0) problem.most_dp = roll(1, 2);
  if (roll(0, 9) == 0) problem.least_dp = roll(1, 2);
  if (roll(0, 9) == 0) problem.dp_multiple = 2;
  if (roll(0, 9) == 0) problem.one_stage = true;
  return problem;
}

PiperProblem relabelled(const PiperProblem& problem, std::mt19937_64& random) {
  const std::size_t nodes = problem.nodes.size();
  std::vector<std::size_t> order, number(nodes, nodes);
  while (order.size() < nodes) {
    std::vector<std::size_t> ready;
    for (std::size_t v = 0; v < nodes; ++v) {
      const bool waits =
          std::any_of(problem.edges.begin(), problem.edges.end(), [&](const PiperEdge& edge) {
            return static_cast<std::size_t>(edge.target) == v &&
                   number[static_cast<std::size_t>(edge.source)] == nodes;
          });
      if (number[v] == nodes && !waits) ready.push_back(v);
    }
    const std::size_t next = ready[random() % ready.size()];
    number[next] = order.size();
    order.push_back(next);
  }
  PiperProblem other = problem;
  std::vector<std::pair<PiperEdge, std::size_t>> edges;
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    PiperEdge edge = problem.edges[e];
    edge.source = static_cast<std::int32_t>(number[static_cast<std::size_t>(edge.source)]);
    edge.target = static_cast<std::int32_t>(number[static_cast<std::size_t>(edge.target)]);
    edges.emplace_back(edge, e);
  }
  std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.source, a.first.target) < std::pair(b.first.source, b.first.target);
  });
  for (std::size_t v = 0; v < nodes; ++v) other.nodes[v] = problem.nodes[order[v]];
  for (std::size_t e = 0; e < edges.size(); ++e) other.edges[e] = edges[e].first;
  // Re-layouts follow their edges.
  for (std::size_t v = 0; v < nodes; ++v) {
    std::vector<std::size_t> in_places, out_places;
    const auto place = [&](std::size_t old_edge, bool in) {
      std::size_t at = 0;
      for (std::size_t e = 0; e < old_edge; ++e) {
        const PiperEdge& a = problem.edges[e];
        const PiperEdge& b = problem.edges[old_edge];
        at += in ? (a.target == b.target ? 1U : 0U) : (a.source == b.source ? 1U : 0U);
      }
      return at;
    };
    for (const auto& [edge, old_edge] : edges) {
      if (static_cast<std::size_t>(edge.target) == v) in_places.push_back(place(old_edge, true));
      if (static_cast<std::size_t>(edge.source) == v) out_places.push_back(place(old_edge, false));
    }
    for (PiperDegree& degree : other.nodes[v].degrees) {
      for (PiperOption& option : degree.options) {
        const std::vector<double> in = option.in_sync_bytes, out = option.out_sync_bytes;
        for (std::size_t i = 0; i < in.size(); ++i) option.in_sync_bytes[i] = in[in_places[i]];
        for (std::size_t i = 0; i < out.size(); ++i) option.out_sync_bytes[i] = out[out_places[i]];
      }
    }
  }
  return other;
}

std::string fault_of(const PiperProblem& problem, const PiperSolution& solution) {
  const BruteForce judge(problem);
  std::vector<int> stage_of(problem.nodes.size(), -1);
  std::int64_t devices = 0, replicas = 0;
  for (std::size_t i = 0; i < solution.stages.size(); ++i) {
    const PiperStage& stage = solution.stages[i];
    if (stage.nodes.empty() || stage.nodes.size() != stage.options.size()) return "odd stage";
    for (const std::int32_t v : stage.nodes) {
      if (stage_of[static_cast<std::size_t>(v)] >= 0) return "a layer twice";
      stage_of[static_cast<std::size_t>(v)] = static_cast<int>(i);
    }
    devices += stage.dp * stage.tp;
    replicas += stage.dp;
    if (problem.rules.split == PiperSplit::even && problem.micro_batches % stage.dp != 0) {
      return "uneven split";
    }
  }
  if (std::count(stage_of.begin(), stage_of.end(), -1) > 0) return "a layer left out";
  for (const PiperEdge& edge : problem.edges) {
    if (stage_of[static_cast<std::size_t>(edge.source)] >
        stage_of[static_cast<std::size_t>(edge.target)]) {
      return "an edge leads backwards";
    }
  }
  if (devices > problem.devices || devices != solution.devices_used()) return "devices";
  if (replicas > problem.micro_batches) return "micro-batches";
  double slowest = 0;
  std::int64_t suffix = replicas;
  for (const PiperStage& stage : solution.stages) {
    if (stage.suffix != suffix) return "suffix";
    unsigned set = 0;
    std::vector<std::size_t> pick(problem.nodes.size(), 0);
    for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
      set |= 1U << stage.nodes[i];
      pick[static_cast<std::size_t>(stage.nodes[i])] = static_cast<std::size_t>(stage.options[i]);
    }
    const auto in_flight = static_cast<double>((suffix + stage.dp - 1) / stage.dp);
    const Priced priced = judge.price(set, stage.tp, stage.dp, in_flight, pick);
    if (std::abs(priced.memory - stage.memory_bytes) > 1e-9 * priced.memory) return "memory sum";
    if (priced.memory > problem.memory_bytes * (1 + 1e-9)) return "memory exceeded";
    if (std::abs(priced.time - stage.time) > 1e-9 * priced.time) return "stage time";
    slowest = std::max(slowest, priced.time);
    suffix -= stage.dp;
  }
  return std::abs(slowest - solution.time) > 1e-9 * slowest ? "slowest stage" : "";
}

}  // namespace braid
