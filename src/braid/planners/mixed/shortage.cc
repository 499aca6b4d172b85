#include "braid/planners/mixed/shortage.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/plan/plan.h"
#include "braid/search/fitting_layers.h"

namespace braid {
namespace {

/// Whether layers run in `a` never need more memory of either kind than in `b`.
bool needs_no_more(const MixedVariant& a, const MixedVariant& b) {
  const MemoryForm& f = a.memory;
  const MemoryForm& g = b.memory;
  if (f.per_dense_parameter > g.per_dense_parameter ||
      f.per_expert_parameter > g.per_expert_parameter ||
      f.per_largest_layer_parameter > g.per_largest_layer_parameter ||
      f.host_per_dense_parameter > g.host_per_dense_parameter ||
      f.host_per_expert_parameter > g.host_per_expert_parameter ||
      f.available_bytes < g.available_bytes || f.host_available_bytes < g.host_available_bytes) {
    return false;
  }
  return std::equal(
      a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
      [](const ChainLayer& x, const ChainLayer& y) {
        return x.dense_parameters <= y.dense_parameters &&
               x.expert_parameters <= y.expert_parameters && x.stash_bytes <= y.stash_bytes &&
               x.offloaded_bytes <= y.offloaded_bytes &&
               x.stash_bytes - x.offloaded_bytes <= y.stash_bytes - y.offloaded_bytes &&
               x.working_bytes <= y.working_bytes && x.fixed_bytes <= y.fixed_bytes;
      });
}

/// [config]: its variants but those that never fit where another does not.
using LeanVariants = std::vector<std::vector<std::int32_t>>;

LeanVariants lean_variants(const MixedProblem& problem) {
  LeanVariants lean;
  for (const MixedConfig& config : problem.configs) {
    std::vector<std::int32_t>& kept = lean.emplace_back();
    for (std::size_t w = 0; w < config.variants.size(); ++w) {
      const MixedVariant& variant = config.variants[w];
      const auto of = [&](std::int32_t other) -> const MixedVariant& {
        return config.variants[at(other)];
      };
      if (std::any_of(kept.begin(), kept.end(),
                      [&](std::int32_t other) { return needs_no_more(of(other), variant); })) {
        continue;
      }
      std::erase_if(kept, [&](std::int32_t other) { return needs_no_more(variant, of(other)); });
      kept.push_back(static_cast<std::int32_t>(w));
    }
  }
  return lean;
}

/// Which pipelines fit with `extra_bytes` more on each device.
class Coverage {
 public:
  Coverage(const MixedProblem& problem, const LeanVariants& lean, double extra_bytes,
           std::int64_t& steps_left)
      : problem_(problem),
        lean_(lean),
        extra_bytes_(extra_bytes),
        layers_(static_cast<std::int32_t>(problem.cut_class.size()) - 1),
        steps_left_(steps_left) {}

  /// The first that is met; nullopt: there is none.
  std::optional<MixedPipeline> run();

 private:
  struct Label {
    std::int32_t right = 0;
    std::int32_t config = -1, variant = 0;  ///< Form -1: not reached.
  };
  using Labels = std::vector<Label>;                          ///< [left end]
  using Level = std::map<std::vector<std::int32_t>, Labels>;  ///< By devices used.

  /// The stage that starts first of those of a config that end before a layer, whichever variant.
  struct Longest {
    std::int32_t left = 0, variant = 0;
  };
  std::vector<Longest> longest_stages(std::size_t config, std::int64_t in_flight);
  void extend(const std::vector<std::int32_t>& used, const Labels& from, std::int64_t depth,
              Level& next);
  MixedPipeline rebuild(std::vector<std::int32_t> used) const;

  const MixedProblem& problem_;
  const LeanVariants& lean_;
  double extra_bytes_ = 0;
  std::int32_t layers_ = 0;
  std::int64_t& steps_left_;
  std::vector<std::vector<Longest>>
      longest_;                ///< [config][right end] at the present depth; empty: not asked yet.
  std::vector<Level> levels_;  ///< [stages so far]
};

/// Left ends move right with right ends, so each way is a window over the layers.
std::vector<Coverage::Longest> Coverage::longest_stages(std::size_t config,
                                                        std::int64_t in_flight) {
  std::vector<Longest> longest(at(layers_) + 1);
  for (std::int32_t right = 0; right <= layers_; ++right) longest[at(right)].left = right;
  const std::vector<MixedVariant>& variants = problem_.configs[config].variants;
  for (const std::int32_t w : lean_[config]) {
    MemoryForm memory = variants[at(w)].memory;
    memory.available_bytes += extra_bytes_;
    const std::vector<std::int32_t> first =
        first_fitting_layers(variants[at(w)].layers, memory, static_cast<double>(in_flight));
    steps_left_ -= layers_;
    for (std::int32_t right = 1; right <= layers_; ++right) {
      if (first[at(right)] < longest[at(right)].left) {
        longest[at(right)] = {first[at(right)], w};
      }
    }
  }
  return longest;
}

void Coverage::extend(const std::vector<std::int32_t>& used, const Labels& from, std::int64_t depth,
                      Level& next) {
  // Stages still to come need a layer each.
  const auto least_left =
      static_cast<std::int32_t>(std::max<std::int64_t>(0, problem_.least_stages - depth));
  for (std::size_t config = 0; config < problem_.configs.size(); ++config) {
    std::vector<std::int32_t> then = used;
    bool there = true;
    for (std::size_t k = 0; k < then.size(); ++k) {
      then[k] += problem_.configs[config].takes[k];
      there = there && then[k] <= problem_.capacity[k];
    }
    if (!there || !problem_.costs->allows(used, static_cast<std::int32_t>(config))) continue;
    if (longest_[config].empty()) {
      longest_[config] =
          longest_stages(config, one_f_one_b_in_flight(depth, problem_.micro_batches));
    }
    Labels& to = next[std::move(then)];
    to.resize(at(layers_) + 1);
    std::int32_t marked = layers_;  // All from here on have been looked at.
    for (std::int32_t right = layers_; right > 0; --right) {
      --steps_left_;
      if (from[at(right)].config < 0) continue;
      const Longest& longest = longest_[config][at(right)];
      for (std::int32_t left = std::min(marked, right) - 1;
           left >= std::max(least_left, longest.left); --left) {
        if (to[at(left)].config < 0) {
          to[at(left)] = {right, static_cast<std::int32_t>(config), longest.variant};
        }
        marked = left;
      }
    }
  }
}

MixedPipeline Coverage::rebuild(std::vector<std::int32_t> used) const {
  MixedPipeline pipeline;
  std::int32_t left = 0;
  for (std::size_t depth = levels_.size() - 1; depth > 0; --depth) {
    const Label& reach = levels_[depth].at(used)[at(left)];
    const std::vector<std::int32_t>& takes = problem_.configs[at(reach.config)].takes;
    for (std::size_t k = 0; k < used.size(); ++k) used[k] -= takes[k];
    pipeline.stages.push_back({reach.config, reach.variant, left, reach.right, used});
    left = reach.right;
  }
  return pipeline;
}

std::optional<MixedPipeline> Coverage::run() {
  const auto most = std::min<std::int64_t>(problem_.most_stages, layers_);
  Labels all(at(layers_) + 1);
  all.back().config = 0;
  levels_.push_back({{std::vector<std::int32_t>(problem_.capacity.size(), 0), std::move(all)}});
  std::int64_t in_flight = 0;
  for (std::int64_t depth = 1; depth <= most && steps_left_ > 0; ++depth) {
    const std::int64_t held = one_f_one_b_in_flight(depth, problem_.micro_batches);
    if (std::exchange(in_flight, held) != held) {
      longest_.assign(problem_.configs.size(), {});
    }
    Level next;
    for (const auto& [used, reached] : levels_.back()) extend(used, reached, depth, next);
    if (next.empty()) return std::nullopt;
    levels_.push_back(std::move(next));
    for (const auto& [used, reached] : levels_.back()) {
      if (reached.front().config >= 0) return rebuild(used);
    }
  }
  return std::nullopt;
}

/// What its fullest stage, by what is missing, needs.
MixedShortage shortage_of(const MixedProblem& problem, MixedPipeline pipeline) {
  MixedShortage shortage;
  double most = -kInfinity;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const MixedStage& stage = pipeline.stages[i];
    const MixedVariant& variant = problem.configs[at(stage.config)].variants[at(stage.variant)];
    RunSums sums;
    for (std::int32_t l = stage.begin; l < stage.end; ++l) sums.add(variant.layers[at(l)]);
    const auto depth = static_cast<std::int64_t>(pipeline.stages.size() - i);
    const auto in_flight = static_cast<double>(one_f_one_b_in_flight(depth, problem.micro_batches));
    const double needed = device_bytes(sums, in_flight, variant.memory);
    if (needed - variant.memory.available_bytes <= most) continue;
    most = needed - variant.memory.available_bytes;
    shortage.stage = i;
    shortage.needed_bytes = needed;
    shortage.available_bytes = variant.memory.available_bytes;
  }
  shortage.pipeline = std::move(pipeline);
  return shortage;
}

}  // namespace

std::optional<MixedShortage> least_shortage(const MixedProblem& problem, double below_bytes,
                                            std::int64_t& steps_left) {
  if (problem.configs.empty()) return std::nullopt;
  const LeanVariants lean = lean_variants(problem);
  const auto within = [&](double extra_bytes) -> std::optional<MixedShortage> {
    auto pipeline = Coverage(problem, lean, extra_bytes, steps_left).run();
    if (!pipeline.has_value()) return std::nullopt;
    return shortage_of(problem, std::move(*pipeline));
  };
  const double most = std::min(below_bytes * (1 - kNearThreshold), kEndlessBytes);
  std::optional<MixedShortage> any = within(most);
  if (!any.has_value()) return std::nullopt;
  const auto next = [](const ThresholdRange& range) {
    return range.next_by_magnitude(kNearThreshold, kByte);
  };
  const double high = std::min(most, any->missing_bytes());
  return least_memory({0, high}, std::move(*any), next, within,
                      [](const MixedShortage& shortage) { return shortage.missing_bytes(); });
}

}  // namespace braid
