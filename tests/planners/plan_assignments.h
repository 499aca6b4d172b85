#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/totals.h"

namespace braid::test {

/// Bytes per sample that stages in a line hand over in front of stage `cut`, each output once. All
/// layers put out as much.
inline double crossing_bytes(const Plan& plan, std::size_t cut) {
  const auto stage_of = [&](std::int32_t layer) {
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const auto& layers = plan.stages[s].chunks.front().layers;
      if (std::find(layers.begin(), layers.end(), layer) != layers.end()) return s;
    }
    return plan.stages.size();
  };
  std::set<std::int32_t> crossing;
  for (const ProfileEdge& edge : plan.profile.edges) {
    if (stage_of(edge.source) < cut && cut <= stage_of(edge.target)) crossing.insert(edge.source);
  }
  if (crossing.empty()) return 0;
  return static_cast<double>(crossing.size()) * plan.profile.edges.front().bytes;
}

/// Least cost of `plan`, of one form throughout, with its layers given to its stages in every way
/// that fits a line of stages and leads no edge back.
inline double least_of_assignments(Plan plan, const std::function<double(const Plan&)>& cost_of) {
  const std::size_t layers = plan.profile.layers.size(), stages = plan.stages.size();
  const double available = usable_bytes(plan.system.groups.front().chip);
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> stage_of(layers, 0);
  const std::function<void(std::size_t)> extend = [&](std::size_t layer) {
    if (layer < layers) {
      std::size_t first = 0;
      for (const ProfileEdge& edge : plan.profile.edges) {
        if (static_cast<std::size_t>(edge.target) != layer) continue;
        first = std::max(first, stage_of[static_cast<std::size_t>(edge.source)]);
      }
      for (stage_of[layer] = first; stage_of[layer] < stages; ++stage_of[layer]) extend(layer + 1);
      return;
    }
    for (Stage& stage : plan.stages) stage.chunks = {Chunk{}};
    for (std::size_t l = 0; l < layers; ++l) {
      Chunk& chunk = plan.stages[stage_of[l]].chunks.front();
      chunk.layers.push_back(static_cast<std::int32_t>(l));
      chunk.options.push_back(0);
    }
    for (std::size_t s = 0; s < stages; ++s) {
      const Chunk& chunk = plan.stages[s].chunks.front();
      if (chunk.layers.empty()) return;
      const ChunkTotals totals = totals_of(plan.profile, chunk);
      // As a line of stages needs; those that do not hand on to the next may need less.
      const std::int64_t in_flight = std::min<std::int64_t>(plan.parallel.num_micro_batches,
                                                            static_cast<std::int64_t>(stages - s));
      const DataParallelContext context = StageContext(plan, s).data_parallel();
      if (memory_of(totals, in_flight, context).device_total() > available) return;
    }
    best = std::min(best, cost_of(plan));
  };
  extend(0);
  return best;
}

}  // namespace braid::test
