#include "braid/planners/job/layout.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {
namespace {

LayoutCosts::StageKind stage_kind(std::span<const LayoutShape::ChunkRun> runs,
                                  std::span<const ChunkTotals> chunk_kinds, int vp) {
  LayoutCosts::StageKind kind;
  for (const LayoutShape::ChunkRun& run : runs) {
    const ChunkTotals& chunk = chunk_kinds[at(run.chunk_kind)];
    kind.parameters.add(chunk, run.chunks);
    RunSums& memory = kind.memory;
    memory.fixed_bytes += run.chunks * chunk.fixed_bytes;
    memory.weight_shapes |= chunk.weight_shapes;
    if (vp == 1) {
      memory.stash_bytes = chunk.stash_bytes;
      memory.offloaded_bytes = chunk.offloaded_bytes;
    }
    memory.working_bytes = std::max(memory.working_bytes, chunk.working_bytes);
    memory.largest_layer_parameters =
        std::max(memory.largest_layer_parameters, chunk.largest_layer_parameters);
  }
  kind.memory.dense_parameters = kind.parameters.dense;
  kind.memory.expert_parameters = kind.parameters.expert;
  return kind;
}

void add_runs(std::span<const std::int32_t> layers, LayoutShape& shape) {
  for (std::size_t l = 0; l < layers.size();) {
    std::size_t last = l + 1;
    while (last < layers.size() && layers[last] == layers[l]) ++last;
    shape.runs.push_back({layers[l], static_cast<int>(last - l)});
    l = last;
  }
  shape.last_run.push_back(static_cast<std::int32_t>(shape.runs.size()));
}

void add_chunk_runs(int pp, int vp, int stage, LayoutShape& shape) {
  for (int c = 0; c < vp;) {
    const auto kind_of = [&](int chunk) {
      return shape.kind_of_chunk[at(std::int64_t{chunk} * pp + stage)];
    };
    int last = c + 1;
    while (last < vp && kind_of(last) == kind_of(c)) ++last;
    shape.chunk_runs.push_back({kind_of(c), last - c});
    c = last;
  }
  shape.last_chunk_run.push_back(static_cast<std::int32_t>(shape.chunk_runs.size()));
}

bool same_chunks(const LayoutShape& shape, int pp, int vp, int a, int b) {
  for (int c = 0; c < vp; ++c) {
    const std::int64_t row = std::int64_t{c} * pp;
    if (shape.kind_of_chunk[at(row + a)] != shape.kind_of_chunk[at(row + b)]) return false;
  }
  return true;
}

}  // namespace

void fill_shape(std::span<const std::int32_t> kind_of_layer, int pp, int vp,
                std::span<const std::int32_t> ends, LayoutShape& shape) {
  assert(ends.size() == at(std::int64_t{pp} * vp));
  shape.ends.assign(ends.begin(), ends.end());
  shape.runs.clear();
  shape.last_run.clear();
  shape.first_chunk.clear();
  shape.kind_of_chunk.clear();
  shape.first_stage.clear();
  shape.chunk_runs.clear();
  shape.last_chunk_run.clear();
  shape.kind_of_stage.clear();

  shape.kind_of_chunk.reserve(ends.size());
  shape.kind_of_stage.reserve(at(pp));
  const auto layers_of = [&](std::int64_t chunk) {
    const std::int32_t begin = chunk == 0 ? 0 : ends[at(chunk - 1)];
    return kind_of_layer.subspan(at(begin), at(ends[at(chunk)] - begin));
  };
  for (std::int64_t i = 0; i < std::ssize(ends); ++i) {
    const std::span<const std::int32_t> layers = layers_of(i);
    // A chunk is mostly like the one before it: latest kinds first.
    auto kind = std::ssize(shape.first_chunk) - 1;
    while (kind >= 0 && !std::ranges::equal(layers_of(shape.first_chunk[at(kind)]), layers)) {
      --kind;
    }
    if (kind < 0) {
      kind = std::ssize(shape.first_chunk);
      shape.first_chunk.push_back(static_cast<std::int32_t>(i));
      add_runs(layers, shape);
    }
    shape.kind_of_chunk.push_back(static_cast<std::int32_t>(kind));
  }
  for (int s = 0; s < pp; ++s) {
    auto kind = std::ssize(shape.first_stage) - 1;
    while (kind >= 0 && !same_chunks(shape, pp, vp, shape.first_stage[at(kind)], s)) --kind;
    if (kind < 0) {
      kind = std::ssize(shape.first_stage);
      shape.first_stage.push_back(s);
      add_chunk_runs(pp, vp, s, shape);
    }
    shape.kind_of_stage.push_back(static_cast<std::int32_t>(kind));
  }
}

void fill_costs(const LayoutShape& shape, std::span<const LayerCost> costs, int vp,
                LayoutCosts& out) {
  out.chunk_kinds.clear();
  out.stage_kinds.clear();
  out.chunk_kinds.reserve(shape.first_chunk.size());
  out.stage_kinds.reserve(shape.first_stage.size());
  std::size_t run = 0;
  for (const std::int32_t last : shape.last_run) {
    ChunkTotals& totals = out.chunk_kinds.emplace_back();
    for (; run < at(last); ++run) {
      totals.add(costs[at(shape.runs[run].layer_kind)], shape.runs[run].count);
    }
  }
  for (std::size_t kind = 0; kind < shape.first_stage.size(); ++kind) {
    out.stage_kinds.push_back(stage_kind(shape.chunk_runs_of(kind), out.chunk_kinds, vp));
    out.stage_kinds.back().first_stage = shape.first_stage[kind];
  }
}

void fill_layout(std::span<const std::int32_t> kind_of_layer, std::span<const LayerCost> costs,
                 int pp, int vp, std::span<const std::int32_t> ends, Layout& layout) {
  fill_shape(kind_of_layer, pp, vp, ends, layout);
  fill_costs(layout, costs, vp, layout);
}

void fill_stash_peaks(const LayoutShape& shape, int pp, std::int64_t num_micro_batches,
                      std::vector<StashRun>& stashes, LayoutCosts& costs) {
  for (std::size_t k = 0; k < costs.stage_kinds.size(); ++k) {
    stashes.clear();
    for (const LayoutShape::ChunkRun& run : shape.chunk_runs_of(k)) {
      stashes.push_back({costs.chunk_kinds[at(run.chunk_kind)].stash(), run.chunks});
    }
    LayoutCosts::StageKind& kind = costs.stage_kinds[k];
    kind.peak =
        stash_peak(ScheduleKind::interleaved, pp, kind.first_stage, num_micro_batches, stashes);
  }
}

void fill_stash_peaks(int pp, std::int64_t num_micro_batches, Layout& layout) {
  fill_stash_peaks(layout, pp, num_micro_batches, layout.stashes, layout);
}

}  // namespace braid
