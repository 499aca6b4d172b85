#include "braid/search/placement_search.h"

#include <algorithm>
#include <queue>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

struct LaterFirst {
  bool operator()(const PartialPlacement& a, const PartialPlacement& b) const {
    if (a.bound_s != b.bound_s) return a.bound_s > b.bound_s;
    if (a.stages.size() != b.stages.size()) return a.stages.size() < b.stages.size();
    if (a.shape != b.shape) return a.shape > b.shape;
    return a.stages > b.stages;
  }
};

class PlacementSearch {
 public:
  PlacementSearch(std::span<const PlacementShape> shapes, const PlacementSearchOptions& options,
                  PlacementCosts& costs)
      : shapes_(shapes), options_(options), costs_(costs), best_s_(options.best_s) {}

  PlacementSearchResult run() {
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) push({0, shape, {}});
    double left_out_s = kInfinity;
    while (!open_.empty()) {
      const PartialPlacement partial = open_.top();
      if (!(partial.bound_s < best_s_)) break;
      if (states_ >= options_.most_states) break;
      open_.pop();
      if (options_.progress) {
        options_.progress(best_s_, std::min(partial.bound_s, left_out_s), states_);
      }
      const PlacementShape& shape = shapes_[partial.shape];
      if (partial.stages.size() == static_cast<std::size_t>(shape.stages)) {
        best_s_ = std::min(best_s_, costs_.complete_s(partial));
        continue;
      }
      if (!extend(shape, partial)) left_out_s = std::min(left_out_s, partial.bound_s);
    }
    PlacementSearchResult result;
    result.states = states_;
    result.bound_s = std::min(best_s_, left_out_s);
    if (!open_.empty()) result.bound_s = std::min(result.bound_s, open_.top().bound_s);
    return result;
  }

 private:
  void push(PartialPlacement partial) {
    ++states_;
    partial.bound_s = std::max(partial.bound_s, costs_.bound_s(partial) * kBelowRounding);
    if (partial.bound_s < best_s_) open_.push(std::move(partial));
  }

  /// Makes all next stages that differ; false when there are more than may be made.
  bool extend(const PlacementShape& shape, const PartialPlacement& partial) {
    std::vector<std::int32_t> left = capacity_left(shape, partial);
    std::vector<bool> used(left.size(), false);
    for (const auto& stage : partial.stages) {
      for (const std::size_t node : stage) used[node] = true;
    }
    std::vector<std::size_t> stage;
    return choose(partial, static_cast<std::size_t>(shape.replicas), left, used, stage);
  }

  bool choose(const PartialPlacement& partial, std::size_t replicas,
              std::vector<std::int32_t>& left, std::vector<bool>& used,
              std::vector<std::size_t>& stage) {
    if (stage.size() == replicas) {
      if (states_ >= options_.most_states) return false;
      PartialPlacement next = partial;
      next.stages.push_back(stage);
      push(std::move(next));
      return true;
    }
    const std::size_t replica = stage.size();
    const bool like_last =
        replica > 0 && (!options_.ordered_replicas ||
                        std::all_of(partial.stages.begin(), partial.stages.end(),
                                    [&](const auto& s) { return s[replica] == s[replica - 1]; }));
    std::vector<std::size_t> fresh;  // Kinds of unused nodes tried here.
    for (std::size_t node = like_last ? stage.back() : 0; node < left.size(); ++node) {
      if (left[node] == 0) continue;
      const bool opens = !used[node];
      if (opens) {
        const std::size_t kind = options_.first_alike[node];
        if (std::find(fresh.begin(), fresh.end(), kind) != fresh.end()) continue;
        fresh.push_back(kind);
      }
      used[node] = true;
      --left[node];
      stage.push_back(node);
      const bool complete = choose(partial, replicas, left, used, stage);
      stage.pop_back();
      ++left[node];
      if (opens) used[node] = false;
      if (!complete) return false;
    }
    return true;
  }

  std::span<const PlacementShape> shapes_;
  const PlacementSearchOptions& options_;
  PlacementCosts& costs_;
  double best_s_ = 0;
  std::int64_t states_ = 0;
  std::priority_queue<PartialPlacement, std::vector<PartialPlacement>, LaterFirst> open_;
};

}  // namespace

std::vector<std::int32_t> capacity_left(const PlacementShape& shape,
                                        const PartialPlacement& partial) {
  std::vector<std::int32_t> left = shape.capacity;
  for (const auto& stage : partial.stages) {
    for (const std::size_t node : stage) --left[node];
  }
  return left;
}

PlacementSearchResult search_placements(std::span<const PlacementShape> shapes,
                                        const PlacementSearchOptions& options,
                                        PlacementCosts& costs) {
  return PlacementSearch(shapes, options, costs).run();
}

}  // namespace braid
