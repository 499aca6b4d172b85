#include "planners/plain_graphpipe.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "braid/graph/series_parallel_order.h"
#include "braid/planners/graphpipe/pricing.h"

namespace braid::test {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

class Plain {
 public:
  explicit Plain(const GraphPipeProblem& problem) : problem_(problem) {
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    for (const GraphPipeEdge& edge : problem.edges) edges.emplace_back(edge.source, edge.target);
    tree_ = series_parallel_order(make_dag(problem.nodes.size(), edges));
  }

  bool possible(double time_s) {
    time_s_ = time_s;
    known_.clear();
    std::vector<std::int32_t> whole = {static_cast<std::int32_t>(tree_.parts.size()) - 1};
    for (std::int64_t devices = 1; devices <= problem_.pools.front().devices; ++devices) {
      if (solve(OrderPart::Kind::series, whole, problem_.groups[0].micro_batch, devices) < kNone) {
        return true;
      }
    }
    return false;
  }

 private:
  using Parts = std::vector<std::int32_t>;

  void collect(std::int32_t index, std::vector<std::int32_t>& nodes) const {
    const OrderPart& part = tree_.parts[static_cast<std::size_t>(index)];
    if (part.node >= 0) nodes.push_back(part.node);
    for (const std::int32_t child : part.children) collect(child, nodes);
  }

  /// Fewest samples in flight that the stage before needs, with these parts one after the other or
  /// side by side, `in_flight` for a stage that ends them, and exactly so many devices.
  std::int64_t solve(OrderPart::Kind kind, const Parts& parts, std::int64_t in_flight,
                     std::int64_t devices) {
    if (parts.size() == 1) {
      const OrderPart& part = tree_.parts[static_cast<std::size_t>(parts[0])];
      if (part.kind != OrderPart::Kind::node && part.children != parts) {
        return solve(part.kind, part.children, in_flight, devices);
      }
    }
    const auto [known, added] =
        known_.try_emplace({static_cast<int>(kind), parts, in_flight, devices}, kNone);
    if (!added) return known->second;
    std::int64_t best = one_stage(parts, in_flight, devices);
    if (parts.size() > 1 && kind == OrderPart::Kind::series) {
      for (std::size_t cut = 1; cut < parts.size(); ++cut) {
        const Parts front(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(cut));
        const Parts back(parts.begin() + static_cast<std::ptrdiff_t>(cut), parts.end());
        for (std::int64_t d2 = 1; d2 < devices; ++d2) {
          const std::int64_t middle = solve(kind, back, in_flight, d2);
          if (middle < kNone) best = std::min(best, solve(kind, front, middle, devices - d2));
        }
      }
    } else if (parts.size() > 1) {
      for (std::size_t set = 1; set + 1 < (std::size_t{1} << parts.size()); set += 2) {
        Parts a, b;
        for (std::size_t i = 0; i < parts.size(); ++i) {
          ((set >> i & 1) != 0 ? a : b).push_back(parts[i]);
        }
        for (std::int64_t d1 = 1; d1 < devices; ++d1) {
          const std::int64_t first = solve(kind, a, in_flight, d1);
          if (first == kNone) continue;
          const std::int64_t second = solve(kind, b, in_flight, devices - d1);
          if (second < kNone) best = std::min(best, std::max(first, second));
        }
      }
    }
    known_[{static_cast<int>(kind), parts, in_flight, devices}] = best;
    return best;
  }

  std::int64_t one_stage(const Parts& parts, std::int64_t in_flight, std::int64_t devices) const {
    GraphPipeStage stage;
    for (const std::int32_t part : parts) collect(part, stage.nodes);
    std::sort(stage.nodes.begin(), stage.nodes.end());
    stage.group = problem_.groups[0];
    stage.devices = devices;
    const std::int64_t b = stage.group.micro_batch;
    const bool splits =
        b % devices == 0 && std::binary_search(problem_.device_samples.begin(),
                                               problem_.device_samples.end(), b / devices);
    if (!splits || graphpipe_stage_time_s(problem_, stage) > time_s_) return kNone;
    double fixed_bytes = 0, stash_bytes = 0, working_bytes = 0;
    for (const std::int32_t v : stage.nodes) {
      const GraphPipeCost& kind =
          problem_.kinds[static_cast<std::size_t>(problem_.nodes[static_cast<std::size_t>(v)])][0];
      fixed_bytes += kind.fixed_bytes;
      stash_bytes += kind.stash_bytes;
      working_bytes = std::max(working_bytes, kind.working_bytes);
    }
    const double bytes = graphpipe_memory_bytes(std::min(in_flight, problem_.batch), devices, b,
                                                fixed_bytes, stash_bytes, working_bytes);
    if (bytes > problem_.pools.front().memory_bytes) return kNone;
    return table_in_flight(stage.group, stage.group, in_flight);
  }

  const GraphPipeProblem& problem_;
  OrderTree tree_;
  double time_s_ = 0;
  std::map<std::tuple<int, Parts, std::int64_t, std::int64_t>, std::int64_t> known_;
};

}  // namespace

double plain_graphpipe_s(const GraphPipeProblem& problem, double epsilon) {
  Plain plain(problem);
  GraphPipeStage whole;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    whole.nodes.push_back(static_cast<std::int32_t>(v));
  }
  // The whole on one device with the fewest samples is as slow as a plan can be, but for
  // synchronisation.
  double high_s = 0;
  for (const std::int32_t kind : problem.nodes) {
    const GraphPipeCost& costs = problem.kinds[static_cast<std::size_t>(kind)][0];
    high_s += costs.forward_s[0] + costs.backward_s[0] +
              2 * (costs.gradient_bytes + costs.expert_gradient_bytes) /
                  problem.pools.front().bandwidth_bytes_per_s;
  }
  for (const GraphPipeEdge& edge : problem.edges) {
    high_s += 2 * edge.bytes / problem.pools.front().bandwidth_bytes_per_s;
  }
  if (!plain.possible(high_s)) return std::numeric_limits<double>::infinity();
  double low_s = 0;
  while (high_s - low_s > epsilon * high_s) {
    const double middle_s = (low_s + high_s) / 2;
    (plain.possible(middle_s) ? high_s : low_s) = middle_s;
  }
  return high_s;
}

}  // namespace braid::test
