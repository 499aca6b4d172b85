#include "braid/planners/layout.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {
namespace {

ChunkTotals sum_of(std::span<const std::int32_t> kinds, std::span<const LayerCost> costs) {
  ChunkTotals totals;
  for (std::size_t l = 0; l < kinds.size();) {
    std::size_t last = l + 1;
    while (last < kinds.size() && kinds[last] == kinds[l]) ++last;
    totals.add(costs[at(kinds[l])], static_cast<int>(last - l));
    l = last;
  }
  return totals;
}

Layout::StageKind stage_kind(const Layout& layout, int pp, int vp, int stage) {
  Layout::StageKind kind;
  kind.first_stage = stage;
  for (int c = 0; c < vp; ++c) {
    const auto chunk_kind = layout.kind_of_chunk[at(std::int64_t{c} * pp + stage)];
    const ChunkTotals& chunk = layout.chunk_kinds[at(chunk_kind)];
    kind.parameters.add(chunk);
    RunSums& memory = kind.memory;
    memory.dense_parameters += chunk.dense_parameters;
    memory.expert_parameters += chunk.expert_parameters;
    memory.fixed_bytes += chunk.fixed_bytes;
    memory.weight_shapes |= chunk.weight_shapes;
    if (vp == 1) {
      memory.stash_bytes = chunk.stash_bytes;
      memory.offloaded_bytes = chunk.offloaded_bytes;
    }
    memory.working_bytes = std::max(memory.working_bytes, chunk.working_bytes);
    memory.largest_layer_parameters =
        std::max(memory.largest_layer_parameters, chunk.largest_layer_parameters);
  }
  return kind;
}

bool same_chunks(const Layout& layout, int pp, int vp, int a, int b) {
  for (int c = 0; c < vp; ++c) {
    const std::int64_t row = std::int64_t{c} * pp;
    if (layout.kind_of_chunk[at(row + a)] != layout.kind_of_chunk[at(row + b)]) return false;
  }
  return true;
}

}  // namespace

void fill_layout(std::span<const std::int32_t> kind_of_layer, std::span<const LayerCost> costs,
                 int pp, int vp, std::span<const std::int32_t> ends, Layout& layout) {
  assert(ends.size() == at(std::int64_t{pp} * vp));
  layout.ends.assign(ends.begin(), ends.end());
  layout.chunk_kinds.clear();
  layout.first_chunk.clear();
  layout.kind_of_chunk.clear();
  layout.stage_kinds.clear();
  layout.kind_of_stage.clear();

  const auto layers_of = [&](std::int64_t chunk) {
    const std::int32_t begin = chunk == 0 ? 0 : ends[at(chunk - 1)];
    return kind_of_layer.subspan(at(begin), at(ends[at(chunk)] - begin));
  };
  for (std::int64_t i = 0; i < std::ssize(ends); ++i) {
    const std::span<const std::int32_t> layers = layers_of(i);
    // A chunk is mostly like the one before it: latest kinds first.
    auto kind = std::ssize(layout.first_chunk) - 1;
    while (kind >= 0 && !std::ranges::equal(layers_of(layout.first_chunk[at(kind)]), layers)) {
      --kind;
    }
    if (kind < 0) {
      kind = std::ssize(layout.first_chunk);
      layout.first_chunk.push_back(static_cast<std::int32_t>(i));
      layout.chunk_kinds.push_back(sum_of(layers, costs));
    }
    layout.kind_of_chunk.push_back(static_cast<std::int32_t>(kind));
  }
  for (int s = 0; s < pp; ++s) {
    auto kind = std::ssize(layout.stage_kinds) - 1;
    while (kind >= 0 && !same_chunks(layout, pp, vp, layout.stage_kinds[at(kind)].first_stage, s)) {
      --kind;
    }
    if (kind < 0) {
      kind = std::ssize(layout.stage_kinds);
      layout.stage_kinds.push_back(stage_kind(layout, pp, vp, s));
    }
    layout.kind_of_stage.push_back(static_cast<std::int32_t>(kind));
  }
}

void fill_stash_peaks(int pp, int vp, std::int64_t num_micro_batches, Layout& layout) {
  for (Layout::StageKind& kind : layout.stage_kinds) {
    layout.stashes.clear();
    for (int c = 0; c < vp; ++c) {
      const auto chunk = layout.kind_of_chunk[at(std::int64_t{c} * pp + kind.first_stage)];
      layout.stashes.push_back(layout.chunk_kinds[at(chunk)].stash());
    }
    kind.peak = stash_peak(ScheduleKind::interleaved, pp, kind.first_stage, num_micro_batches,
                           layout.stashes);
  }
}

}  // namespace braid
