#include "braid/planners/job/tried_layouts.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "braid/base/hash_mix.h"
#include "braid/base/index.h"
#include "braid/base/rounding.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/job/even_stages.h"
#include "braid/planners/job/layer_table.h"

namespace braid {
namespace {

/// Passes of a micro-batch on a kind of chunk.
double time_of_chunk(const LayerTable& table, const LayoutShape& shape, std::size_t kind) {
  double time_s = 0;
  for (std::int32_t run = kind == 0 ? 0 : shape.last_run[kind - 1]; run < shape.last_run[kind];
       ++run) {
    const auto& [layer_kind, count] = shape.runs[at(run)];
    time_s += count * table.layer_of_kind[at(layer_kind)].time_s();
  }
  return time_s;
}

/// Fills in the stage that has most to do, the last of several that are alike. `chunk_s` is
/// scratch.
void note_busiest(const ChainJob& chain, const LayerTable& table, int pp,
                  std::vector<double>& chunk_s, TriedLayout& tried) {
  const LayoutShape& shape = *tried.shape;
  chunk_s.clear();
  for (std::size_t kind = 0; kind < shape.first_chunk.size(); ++kind) {
    chunk_s.push_back(time_of_chunk(table, shape, kind));
  }
  std::size_t busiest = 0;
  double most_s = 0;
  for (std::size_t kind = 0; kind < shape.first_stage.size(); ++kind) {
    double work_s = 0;
    for (const auto& [chunk_kind, chunks] : shape.chunk_runs_of(kind)) {
      work_s += chunks * chunk_s[at(chunk_kind)];
    }
    if (work_s <= most_s) continue;
    most_s = work_s;
    busiest = kind;
  }
  tried.busiest_s = most_s * kBelowTolerance;
  double before_s = 0;
  for (int s = 0; s < pp && !chain.branched; ++s) {
    if (at(shape.kind_of_stage[at(s)]) == busiest) tried.before_s = before_s * kBelowTolerance;
    before_s += chunk_s[at(shape.kind_of_chunk[at(s)])];
  }
}

void note_last_chunks(const ChainJob& chain, const LayerTable& table, const Ends& ends, int pp,
                      LastChunks& last) {
  double kept_bytes = 0;
  for (std::size_t chunk = ends.size() - at(pp); chunk < ends.size(); ++chunk) {
    const std::int32_t begin = chunk == 0 ? 0 : ends[chunk - 1];
    last.layers = std::max(last.layers, ends[chunk] - begin);
    for (std::int32_t l = begin; l < ends[chunk]; ++l) {
      const ChainLayer& layer = table.layer_of_kind[at(chain.kind_of_layer[at(l)])];
      kept_bytes += layer.stash_bytes - layer.offloaded_bytes;
    }
  }
  last.kept_bytes = std::max(last.kept_bytes, kept_bytes);
}

/// Layers are dealt by stage for a number of micro-batches, where stages have several chunks.
TrialKey key_of(const ChainJob& chain, const DealtPipeline& pipeline) {
  return {pipeline.pp, pipeline.vp, pipeline.vp > 1 ? pipeline.num_micro_batches : 0,
          chain.dealt_evenly};
}

constexpr std::array kDealings = {Dealing::by_time, Dealing::by_number, Dealing::as_trainers,
                                  Dealing::by_stage};

}  // namespace

std::size_t TrialKey::Hash::operator()(const TrialKey& key) const {
  HashMix hash;
  hash.add(key.pp, key.vp);
  hash.add(static_cast<std::uint64_t>(key.num_micro_batches) << 1U |
           static_cast<std::uint64_t>(key.evenly));
  return hash.value();
}

void deal(const ChainJob& chain, const LayerTable& table, const DealtPipeline& pipeline,
          Dealing how, Ends& ends) {
  const int chunks = pipeline.pp * pipeline.vp;
  if (how == Dealing::by_time || how == Dealing::by_stage) {
    table.even.split(chunks, &ends);
    if (how == Dealing::by_time) return;
    std::vector<double> layer_s;
    layer_s.reserve(chain.kind_of_layer.size());
    for (const std::int32_t kind : chain.kind_of_layer) {
      layer_s.push_back(table.layer_of_kind[at(kind)].time_s());
    }
    return even_stages({layer_s, pipeline.pp, pipeline.num_micro_batches, !chain.branched}, ends);
  }
  const auto layers = static_cast<std::int32_t>(chain.kind_of_layer.size());
  ends.clear();
  if (how == Dealing::by_number) {
    for (std::int32_t c = 0; c < chunks; ++c) {
      ends.push_back((c + 1) * (layers / chunks) + std::min(c + 1, layers % chunks));
    }
    return;
  }
  std::int32_t end = 0;
  for (const std::int32_t count : layers_of_chunks(layers, chunks, chain.heavy_end)) {
    ends.push_back(end += count);
  }
}

namespace {

/// Whether a trainer that deals layers out evenly has these chunks.
bool has_even_chunks(const Ends& ends) {
  std::vector<std::int32_t> counts(ends.begin(), ends.end());
  std::adjacent_difference(ends.begin(), ends.end(), counts.begin());
  return is_dealt_evenly(counts);
}

}  // namespace

DealtLayers& KnownDealings::dealt(const ChainJob& chain, LayerTable& table,
                                  const DealtPipeline& pipeline, Dealing how) {
  const int chunks = pipeline.pp * pipeline.vp;
  if (of_chunks_.size() <= at(chunks)) of_chunks_.resize(at(chunks) + 1);
  OfChunks& known = of_chunks_[at(chunks)];
  DealtLayers* by_stage = nullptr;
  DealtLayers*& found = how == Dealing::by_stage  ? by_stage
                        : how == Dealing::by_time ? table.dealt_by_time[chunks]
                                                  : known.found[static_cast<std::size_t>(how)];
  if (found != nullptr) return *found;
  deal(chain, table, pipeline, how, ends_);
  const auto same =
      std::ranges::find_if(known.different, [&](const auto& one) { return one->ends == ends_; });
  if (same != known.different.end()) {
    found = same->get();
    return *found;
  }
  found = known.different.emplace_back(std::make_unique<DealtLayers>()).get();
  found->ends = ends_;
  found->even = has_even_chunks(ends_);
  return *found;
}

const LayoutShape& KnownDealings::shape(const ChainJob& chain, DealtLayers& dealt, int pp) {
  for (const auto& [stages, shape] : dealt.shapes) {
    if (stages == pp) return *shape;
  }
  auto shape = std::make_unique<LayoutShape>();
  fill_shape(chain.kind_of_layer, pp, static_cast<int>(dealt.ends.size()) / pp, dealt.ends, *shape);
  return *dealt.shapes.emplace_back(pp, std::move(shape)).second;
}

std::span<const TriedLayout> tried_layouts(const ChainJob& chain, LayerTables& tables,
                                           const Configuration& configuration) {
  const DealtPipeline pipeline{configuration.pp, configuration.vp, configuration.num_micro_batches};
  LayerTable& table = tables.dealt_at(configuration);
  KnownTrials& trials = table.trials[key_of(chain, pipeline)];
  if (trials.count) return std::span(trials.layouts).first(*trials.count);
  trials.count = 0;
  std::array<const DealtLayers*, kDealings.size()> known{};
  std::vector<double> chunk_s;
  for (std::size_t i = 0; i < kDealings.size(); ++i) {
    if (pipeline.vp == 1 && kDealings[i] == Dealing::by_stage) continue;
    const bool as_trainers = kDealings[i] == Dealing::as_trainers;
    if (chain.dealt_evenly && !as_trainers) continue;
    DealtLayers& dealt = tables.dealings().dealt(chain, table, pipeline, kDealings[i]);
    if (chain.dealt_evenly && !dealt.even) continue;
    if (std::find(known.begin(), known.begin() + i, &dealt) != known.begin() + i) continue;
    known[i] = &dealt;
    TriedLayout& layout = trials.layouts.at((*trials.count)++);
    layout.shape = &KnownDealings::shape(chain, dealt, pipeline.pp);
    note_busiest(chain, table, pipeline.pp, chunk_s, layout);
  }
  return std::span(trials.layouts).first(*trials.count);
}

void fill_tried_costs(const TriedLayout& tried, std::span<const LayerCost> kinds,
                      const Configuration& configuration, Layout& layout) {
  fill_costs(*tried.shape, kinds, configuration.vp, layout);
  if (configuration.vp == 1) return;
  fill_stash_peaks(*tried.shape, configuration.pp, configuration.num_micro_batches, layout.stashes,
                   layout);
}

const LastChunks& last_chunks(const ChainJob& chain, LayerTables& tables,
                              const Configuration& configuration) {
  const int pp = configuration.pp;
  LayerTable& table = tables.dealt_at(configuration);
  std::optional<LastChunks>& known = table.trials[key_of(chain, {pp, configuration.vp, 0})].last;
  if (known) return *known;
  LastChunks& last = known.emplace();
  const DealtLayers* before = nullptr;
  const auto note = [&](int vp, Dealing how) {
    const DealtLayers& dealt = tables.dealings().dealt(chain, table, {pp, vp, 0}, how);
    if (&dealt != before) note_last_chunks(chain, table, dealt.ends, pp, last);
    before = &dealt;
  };
  // Layers dealt by stage leave the last chunks as those dealt by time do.
  for (const Dealing how : {Dealing::by_time, Dealing::by_number, Dealing::as_trainers}) {
    note(configuration.vp, how);
  }
  if (!chain.heavy_end) return last;
  // Trainers' layouts of such models may leave more to the last chunks where there are more.
  const auto layers = static_cast<std::int32_t>(chain.kind_of_layer.size());
  for (std::int32_t vp = configuration.vp + 1; vp <= layers / pp; ++vp) {
    note(vp, Dealing::as_trainers);
  }
  return last;
}

}  // namespace braid
