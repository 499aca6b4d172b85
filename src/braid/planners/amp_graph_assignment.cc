#include "braid/planners/amp_graph_assignment.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/graph/downsets.h"
#include "braid/planners/bottleneck_search.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostPairs = 50'000'000;

/// A dynamic program over (stage, cut behind it).
class GraphSplitter {
 public:
  GraphSplitter(const AssignmentGraph& graph, std::size_t most_cuts)
      : graph_(graph), stages_(graph.layer_s.size()) {
    const std::size_t layers = graph.output_bytes.size();
    const Dag dag = make_dag(layers, graph.edges);
    auto cuts = downsets(dag, most_cuts);
    auto pairs = cuts.has_value() ? downset_pairs(*cuts, layers, kMostPairs) : std::nullopt;
    if (!pairs.has_value()) {
      throw Error(fmt::format("the graph can be cut in more than {} ways", most_cuts),
                  "join layers of parallel branches");
    }
    cuts_ = std::move(*cuts);
    pairs_ = std::move(*pairs);
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      if (stage > 0 && graph.layer_s[stage] == graph.layer_s[stage - 1]) {
        kind_.push_back(kind_.back());
        continue;
      }
      kind_.push_back(before_s_.size());
      before_s_.push_back(sums_before(graph.layer_s[stage]));
    }
    for (const std::vector<double>& bytes : graph.layer_bytes) {
      before_bytes_.push_back(sums_before(bytes));
    }
    for (const Bitset& cut : cuts_) {
      double bytes = 0;
      cut.for_each([&](std::size_t layer) {
        if (!dag.successors[layer].is_subset_of(cut)) bytes += graph.output_bytes[layer];
      });
      crossing_bytes_.push_back(bytes);
    }
    cost_s_.assign(stages_ + 1, std::vector<double>(cuts_.size(), kInfinity));
    cost_s_[0][0] = 0;
    inner_.assign(stages_, std::vector<std::uint32_t>(cuts_.size(), 0));
  }

  std::optional<ThresholdAnswer> solve(double threshold_s) {
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const std::vector<double>& before_s = before_s_[kind_[stage]];
      const std::vector<double>& from_s = cost_s_[stage];
      std::vector<double>& to_s = cost_s_[stage + 1];
      std::fill(to_s.begin(), to_s.end(), kInfinity);
      for (const DownsetPair& pair : pairs_) {
        if (!(from_s[pair.inner] < kInfinity)) continue;
        const double stage_s = before_s[pair.outer] - before_s[pair.inner];
        if (stage_s > threshold_s || !fits(stage, pair)) continue;
        const double handover_s =
            stage == 0 ? 0 : crossing_bytes_[pair.inner] * graph_.s_per_byte[stage - 1];
        const double cost_s = from_s[pair.inner] + handover_s + stage_s;
        if (!(cost_s < to_s[pair.outer])) continue;
        to_s[pair.outer] = cost_s;
        inner_[stage][pair.outer] = pair.inner;
      }
    }
    if (!(cost_s_[stages_].back() < kInfinity)) return std::nullopt;
    ThresholdAnswer answer{cost_s_[stages_].back(), 0};
    std::size_t outer = cuts_.size() - 1;
    for (std::size_t stage = stages_; stage-- > 0;) {
      const std::size_t inner = inner_[stage][outer];
      const std::vector<double>& before_s = before_s_[kind_[stage]];
      answer.bottleneck = std::max(answer.bottleneck, before_s[outer] - before_s[inner]);
      outer = inner;
    }
    return answer;
  }

  /// Least stage time above the one given.
  double next_above(double time_s) const {
    double next_s = kInfinity;
    for (const std::vector<double>& before_s : before_s_) {
      for (const DownsetPair& pair : pairs_) {
        const double stage_s = before_s[pair.outer] - before_s[pair.inner];
        if (stage_s > time_s) next_s = std::min(next_s, stage_s);
      }
    }
    return next_s;
  }

  /// Of the last successful solve().
  std::vector<std::vector<std::int32_t>> stages() const {
    std::vector<std::vector<std::int32_t>> found(stages_);
    std::size_t outer = cuts_.size() - 1;
    for (std::size_t stage = stages_; stage-- > 0;) {
      const std::size_t inner = inner_[stage][outer];
      (cuts_[outer] - cuts_[inner]).for_each([&](std::size_t layer) {
        found[stage].push_back(static_cast<std::int32_t>(layer));
      });
      outer = inner;
    }
    return found;
  }

 private:
  /// By cut, the sum of a layer's values before it.
  std::vector<double> sums_before(const std::vector<double>& of_layers) const {
    std::vector<double> sums;
    sums.reserve(cuts_.size());
    for (const Bitset& cut : cuts_) {
      double sum = 0;
      cut.for_each([&](std::size_t layer) { sum += of_layers[layer]; });
      sums.push_back(sum);
    }
    return sums;
  }
  bool fits(std::size_t stage, const DownsetPair& pair) const {
    if (before_bytes_.empty()) return true;
    const std::vector<double>& before = before_bytes_[stage];
    return before[pair.outer] - before[pair.inner] <= graph_.available_bytes[stage];
  }

  const AssignmentGraph& graph_;
  std::size_t stages_;
  std::vector<Bitset> cuts_;
  std::vector<DownsetPair> pairs_;
  std::vector<std::size_t> kind_;              ///< Of each stage: stages of equal times share it.
  std::vector<std::vector<double>> before_s_;  ///< [kind][cut]: time of the layers before it.
  std::vector<std::vector<double>> before_bytes_;  ///< [stage][cut]: held by those layers.
  std::vector<double> crossing_bytes_;             ///< By cut.
  std::vector<std::vector<double>> cost_s_;        ///< [stages so far][cut].
  std::vector<std::vector<std::uint32_t>> inner_;
};

}  // namespace

double amp_pipeline_s(const AssignmentGraph& graph,
                      const std::vector<std::vector<std::int32_t>>& stages) {
  std::vector<std::size_t> stage_of(graph.output_bytes.size());
  double longest_s = 0, sum_s = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    double stage_s = 0;
    for (const std::int32_t layer : stages[stage]) {
      stage_of[static_cast<std::size_t>(layer)] = stage;
      stage_s += graph.layer_s[stage][static_cast<std::size_t>(layer)];
    }
    longest_s = std::max(longest_s, stage_s);
    sum_s += stage_s;
  }
  std::vector<std::size_t> needed_until(stage_of);
  for (const auto& [source, target] : graph.edges) {
    std::size_t& last = needed_until[static_cast<std::size_t>(source)];
    last = std::max(last, stage_of[static_cast<std::size_t>(target)]);
  }
  for (std::size_t layer = 0; layer < stage_of.size(); ++layer) {
    for (std::size_t cut = stage_of[layer]; cut < needed_until[layer]; ++cut) {
      sum_s += graph.output_bytes[layer] * graph.s_per_byte[cut];
    }
  }
  return static_cast<double>(graph.micro_batches - 1) * longest_s + sum_s;
}

std::optional<GraphAssignment> assign_graph(const AssignmentGraph& graph, std::size_t most_cuts) {
  assert(!graph.layer_s.empty() && graph.micro_batches >= 1);
  if (graph.output_bytes.size() < graph.layer_s.size()) return std::nullopt;
  GraphSplitter splitter(graph, most_cuts);
  ThresholdProblem problem;
  problem.solve = [&](double threshold_s) { return splitter.solve(threshold_s); };
  problem.next_above = [&](double time_s) { return splitter.next_above(time_s); };
  const auto bottleneck_s = best_bottleneck(problem, static_cast<double>(graph.micro_batches - 1));
  if (!bottleneck_s.has_value()) return std::nullopt;
  splitter.solve(*bottleneck_s);
  GraphAssignment best;
  best.stages = splitter.stages();
  best.pipeline_s = amp_pipeline_s(graph, best.stages);
  return best;
}

}  // namespace braid
