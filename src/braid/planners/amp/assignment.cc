#include "braid/planners/amp/assignment.h"

#include <algorithm>
#include <cassert>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/search/bottleneck_search.h"

namespace braid {
namespace {

/// Splits a chain with the least sum of stage and handover times when no stage may take longer than
/// a threshold: a dynamic program over (stage, right end).
class ChainSplitter {
 public:
  explicit ChainSplitter(const AssignmentChain& chain)
      : chain_(chain),
        layers_(chain.layers()),
        stages_(chain.stages.size()),
        cost_s_(layers_ + 1),
        entry_s_(layers_ + 1),
        left_((layers_ + 1) * stages_),
        window_(layers_) {}

  std::optional<ThresholdAnswer> solve(double threshold_s) {
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::fill(entry_s_.begin(), entry_s_.end(), kInfinity);
      if (stage == 0) entry_s_[0] = 0;
      for (std::size_t l = stage; stage > 0 && l < layers_; ++l) {
        entry_s_[l] = cost_s_[l] + chain_.boundary_s[(l - 1) * (stages_ - 1) + stage - 1];
      }
      window_.append(
          chain_.stages[stage], threshold_s, stage + 1, layers_ - (stages_ - 1 - stage),
          {entry_s_, cost_s_, std::span(left_).subspan(stage * (layers_ + 1), layers_ + 1)});
    }
    if (!(cost_s_[layers_] < kInfinity)) return std::nullopt;
    ThresholdAnswer answer{cost_s_[layers_], 0};
    std::size_t right = layers_;
    for (std::size_t stage = stages_; stage-- > 0;) {
      const auto left = static_cast<std::size_t>(left_[stage * (layers_ + 1) + right]);
      answer.bottleneck = std::max(answer.bottleneck, chain_.stages[stage].time_s(left, right));
      right = left;
    }
    return answer;
  }

  /// Of the last successful solve().
  Ends ends() const {
    Ends ends(stages_);
    auto right = static_cast<std::int32_t>(layers_);
    for (std::size_t stage = stages_; stage-- > 0;) {
      ends[stage] = right;
      right = left_[stage * (layers_ + 1) + static_cast<std::size_t>(right)];
    }
    return ends;
  }

 private:
  const AssignmentChain& chain_;
  std::size_t layers_, stages_;
  std::vector<double> cost_s_, entry_s_;
  std::vector<std::int32_t> left_;  ///< [stage][right end].
  StageWindow window_;
};

/// No split of the layers over `stages` stages has a shorter longest stage, whatever their types.
double least_bottleneck_s(const std::vector<std::span<const double>>& times_before_s,
                          std::size_t stages) {
  double longest_s = 0, total_s = 0;
  for (std::size_t layer = 0; layer + 1 < times_before_s.front().size(); ++layer) {
    double least_s = kInfinity;
    for (const std::span<const double> before_s : times_before_s) {
      least_s = std::min(least_s, before_s[layer + 1] - before_s[layer]);
    }
    longest_s = std::max(longest_s, least_s);
    total_s += least_s;
  }
  return std::max(longest_s, total_s / static_cast<double>(stages)) * kBelowRounding;
}

ThresholdProblem threshold_problem(std::vector<std::span<const double>> times_before_s,
                                   std::size_t stages) {
  ThresholdProblem problem;
  problem.least = least_bottleneck_s(times_before_s, stages);
  problem.next_above = [times = std::move(times_before_s)](double above_s) {
    double next_s = kInfinity;
    for (const std::span<const double> before_s : times) {
      next_s = std::min(next_s, next_stage_time_s(before_s, above_s));
    }
    return next_s;
  };
  return problem;
}

/// As ChainSplitter over (stages of each type used, type of the last stage, right end).
class TypedSplitter {
 public:
  explicit TypedSplitter(const TypedChain& chain)
      : chain_(chain),
        layers_(chain.layers()),
        stages_(static_cast<std::size_t>(chain.stages)),
        types_(chain.types.size()),
        entry_s_(layers_ + 1),
        window_(layers_) {
    std::size_t states = 1;
    for (const StageType& type : chain.types) {
      stride_.push_back(states);
      states *= static_cast<std::size_t>(type.count) + 1;
    }
    used_.resize(states);
    for (std::size_t state = 1; state < states; ++state) {
      for (std::size_t t = 0; t < types_; ++t) used_[state] += count_in(state, t);
    }
    cost_s_.resize(states * types_ * (layers_ + 1));
    left_.resize(cost_s_.size());
  }

  std::optional<ThresholdAnswer> solve(double threshold_s) {
    double best_s = kInfinity;
    for (std::size_t state = 1; state < used_.size(); ++state) {
      if (used_[state] > stages_) continue;
      for (std::size_t type = 0; type < types_; ++type) {
        if (count_in(state, type) > 0) append(state, type, threshold_s);
      }
      if (used_[state] < stages_) continue;
      for (std::size_t type = 0; type < types_; ++type) {
        if (count_in(state, type) == 0) continue;
        const double cost_s = cost_s_[row(state, type) + layers_];
        if (!(cost_s < best_s)) continue;
        best_s = cost_s;
        last_state_ = state;
        last_type_ = type;
      }
    }
    if (!(best_s < kInfinity)) return std::nullopt;
    const TypedAssignment found = assignment();
    ThresholdAnswer answer{best_s, 0};
    std::size_t begin = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const auto end = static_cast<std::size_t>(found.ends[stage]);
      const auto type = static_cast<std::size_t>(found.type[stage]);
      const std::vector<double>& before_s = chain_.types[type].time_before_s;
      answer.bottleneck = std::max(answer.bottleneck, before_s[end] - before_s[begin]);
      begin = end;
    }
    return answer;
  }

  /// Of the last successful solve().
  TypedAssignment assignment() const {
    TypedAssignment found;
    found.type.resize(stages_);
    found.ends.resize(stages_);
    std::size_t state = last_state_, type = last_type_, right = layers_;
    for (std::size_t stage = stages_; stage-- > 0;) {
      found.type[stage] = static_cast<std::int32_t>(type);
      found.ends[stage] = static_cast<std::int32_t>(right);
      right = static_cast<std::size_t>(left_[row(state, type) + right]);
      state -= stride_[type];
      if (stage > 0) type = before(state, type, right).first;
    }
    return found;
  }

 private:
  std::size_t count_in(std::size_t state, std::size_t type) const {
    return state / stride_[type] % (static_cast<std::size_t>(chain_.types[type].count) + 1);
  }
  std::size_t row(std::size_t state, std::size_t type) const {
    return (state * types_ + type) * (layers_ + 1);
  }
  /// The best type, and its cost with the handover, to come before a stage of `type` that begins
  /// with layer `left`.
  std::pair<std::size_t, double> before(std::size_t state, std::size_t type,
                                        std::size_t left) const {
    std::pair<std::size_t, double> best{0, kInfinity};
    for (std::size_t other = 0; other < types_; ++other) {
      if (count_in(state, other) == 0) continue;
      const double cost_s =
          cost_s_[row(state, other) + left] +
          chain_.boundary_bytes[left - 1] * chain_.s_per_byte[other * types_ + type];
      if (cost_s < best.second) best = {other, cost_s};
    }
    return best;
  }
  void append(std::size_t state, std::size_t type, double threshold_s) {
    const StageType& costs = chain_.types[type];
    const std::size_t stage = used_[state] - 1;
    std::fill(entry_s_.begin(), entry_s_.end(), kInfinity);
    if (stage == 0) entry_s_[0] = 0;
    for (std::size_t l = stage; stage > 0 && l < layers_; ++l) {
      entry_s_[l] = before(state - stride_[type], type, l).second;
    }
    AssignmentStage view;
    view.time_before_s = costs.time_before_s;
    if (!costs.first_allowed.empty()) view.first_allowed = costs.first_allowed[stage];
    const std::size_t at = row(state, type);
    window_.append(view, threshold_s, stage + 1, layers_ - (stages_ - 1 - stage),
                   {entry_s_, std::span(cost_s_).subspan(at, layers_ + 1),
                    std::span(left_).subspan(at, layers_ + 1)});
  }

  const TypedChain& chain_;
  std::size_t layers_, stages_, types_;
  std::vector<std::size_t> stride_;  ///< By type: a state is a number with a digit for each type.
  std::vector<std::size_t> used_;    ///< [state]: stages so far.
  std::vector<double> cost_s_, entry_s_;
  std::vector<std::int32_t> left_;
  StageWindow window_;
  std::size_t last_state_ = 0, last_type_ = 0;
};

}  // namespace

double amp_pipeline_s(const AssignmentChain& chain, const Ends& ends) {
  double longest_s = 0, sum_s = 0;
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    const auto end = static_cast<std::size_t>(ends[stage]);
    const double stage_s = chain.stages[stage].time_s(begin, end);
    longest_s = std::max(longest_s, stage_s);
    sum_s += stage_s;
    begin = end;
    if (stage + 1 < ends.size()) {
      sum_s += chain.boundary_s[(begin - 1) * (ends.size() - 1) + stage];
    }
  }
  return static_cast<double>(chain.micro_batches - 1) * longest_s + sum_s;
}

std::optional<LayerAssignment> assign_layers(const AssignmentChain& chain) {
  assert(!chain.stages.empty() && chain.micro_batches >= 1);
  if (chain.layers() < chain.stages.size()) return std::nullopt;
  std::vector<std::span<const double>> times_before_s;
  for (const AssignmentStage& stage : chain.stages) {
    if (times_before_s.empty() || times_before_s.back().data() != stage.time_before_s.data()) {
      times_before_s.push_back(stage.time_before_s);
    }
  }
  ChainSplitter splitter(chain);
  ThresholdProblem problem = threshold_problem(std::move(times_before_s), chain.stages.size());
  problem.solve = [&](double threshold_s) { return splitter.solve(threshold_s); };
  const auto bottleneck_s = best_bottleneck(problem, static_cast<double>(chain.micro_batches - 1));
  if (!bottleneck_s.has_value()) return std::nullopt;
  splitter.solve(*bottleneck_s);
  LayerAssignment best;
  best.ends = splitter.ends();
  best.pipeline_s = amp_pipeline_s(chain, best.ends);
  return best;
}

AssignmentChain with_types(const TypedChain& chain, const std::vector<std::int32_t>& type) {
  AssignmentChain fixed;
  fixed.micro_batches = chain.micro_batches;
  for (std::size_t stage = 0; stage < type.size(); ++stage) {
    const StageType& costs = chain.types[static_cast<std::size_t>(type[stage])];
    AssignmentStage view;
    view.time_before_s = costs.time_before_s;
    if (!costs.first_allowed.empty()) view.first_allowed = costs.first_allowed[stage];
    fixed.stages.push_back(view);
  }
  for (const double bytes : chain.boundary_bytes) {
    for (std::size_t stage = 0; stage + 1 < type.size(); ++stage) {
      fixed.boundary_s.push_back(
          bytes * chain.s_per_byte[static_cast<std::size_t>(type[stage]) * chain.types.size() +
                                   static_cast<std::size_t>(type[stage + 1])]);
    }
  }
  return fixed;
}

std::optional<TypedAssignment> assign_layers_and_types(const TypedChain& chain) {
  assert(!chain.types.empty() && chain.stages >= 1 && chain.micro_batches >= 1);
  const auto stages = static_cast<std::size_t>(chain.stages);
  if (chain.layers() < stages) return std::nullopt;
  std::vector<std::span<const double>> times_before_s;
  for (const StageType& type : chain.types) times_before_s.emplace_back(type.time_before_s);
  TypedSplitter splitter(chain);
  ThresholdProblem problem = threshold_problem(std::move(times_before_s), stages);
  problem.solve = [&](double threshold_s) { return splitter.solve(threshold_s); };
  const auto bottleneck_s = best_bottleneck(problem, static_cast<double>(chain.micro_batches - 1));
  if (!bottleneck_s.has_value()) return std::nullopt;
  splitter.solve(*bottleneck_s);
  TypedAssignment best = splitter.assignment();
  best.pipeline_s = amp_pipeline_s(with_types(chain, best.type), best.ends);
  return best;
}

}  // namespace braid
