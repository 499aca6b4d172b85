#include "braid/planners/tried_layouts.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "braid/base/index.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/layer_table.h"

namespace braid {
namespace {

/// Fills in the stage that has most to do, the last of several that are alike.
void note_busiest(const ChainJob& chain, const Layout& layout, int pp, int vp, TriedLayout& tried) {
  const auto time_of = [&](std::int64_t chunk) {
    return layout.chunk_kinds[at(layout.kind_of_chunk[at(chunk)])].time_s();
  };
  std::size_t busiest = 0;
  for (std::size_t kind = 0; kind < layout.stage_kinds.size(); ++kind) {
    double work_s = 0;
    for (int c = 0; c < vp; ++c) {
      work_s += time_of(std::int64_t{c} * pp + layout.stage_kinds[kind].first_stage);
    }
    if (work_s <= tried.busiest_s) continue;
    tried.busiest_s = work_s;
    busiest = kind;
  }
  double before_s = 0;
  for (int s = 0; s < pp && !chain.branched; ++s) {
    if (at(layout.kind_of_stage[at(s)]) == busiest) tried.before_s = before_s;
    before_s += time_of(s);
  }
}

void note_last_chunks(const LayerTable& table, const Ends& ends, int pp, LastChunks& last) {
  double kept_bytes = 0;
  for (std::size_t chunk = ends.size() - at(pp); chunk < ends.size(); ++chunk) {
    const std::int32_t begin = chunk == 0 ? 0 : ends[chunk - 1];
    last.layers = std::max(last.layers, ends[chunk] - begin);
    for (std::int32_t l = begin; l < ends[chunk]; ++l) {
      const ChainLayer& layer = table.chain[at(l)];
      kept_bytes += layer.stash_bytes - layer.offloaded_bytes;
    }
  }
  last.kept_bytes = std::max(last.kept_bytes, kept_bytes);
}

std::uint64_t key_of(int pp, int vp, std::int64_t more = 0) {
  return static_cast<std::uint64_t>(pp) << 32U | static_cast<std::uint64_t>(vp) << 2U |
         static_cast<std::uint64_t>(more);
}

constexpr std::array kDealings = {Dealing::by_time, Dealing::by_number, Dealing::as_trainers};

}  // namespace

void deal(const ChainJob& chain, const LayerTable& table, int chunks, Dealing how, Ends& ends) {
  if (how == Dealing::by_time) {
    table.even.split(chunks, &ends);
    return;
  }
  const auto layers = static_cast<std::int32_t>(table.chain.size());
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

const TriedLayouts& tried_layouts(const ChainJob& chain, LayerTable& table,
                                  const Configuration& configuration, Layout& scratch) {
  const int pp = configuration.pp;
  const int vp = configuration.vp;
  const std::int64_t groups =
      vp == 1 ? 0 : std::min<std::int64_t>(configuration.num_micro_batches / pp, 3);
  const auto [entry, is_new] = table.tried.try_emplace(key_of(pp, vp, groups));
  TriedLayouts& tried = entry->second;
  if (!is_new) return tried;
  tried.reserve(kDealings.size());
  std::array<Ends, kDealings.size()> known;
  for (std::size_t i = 0; i < kDealings.size(); ++i) {
    Ends& ends = known[i];
    if (chain.dealt_evenly && kDealings[i] != Dealing::as_trainers) continue;
    deal(chain, table, pp * vp, kDealings[i], ends);
    if (chain.dealt_evenly && !has_even_chunks(ends)) continue;
    if (std::find(known.begin(), known.begin() + i, ends) != known.begin() + i) continue;
    fill_layout(chain.kind_of_layer, table.kinds, pp, vp, ends, scratch);
    if (vp > 1) fill_stash_peaks(pp, vp, configuration.num_micro_batches, scratch);
    TriedLayout& layout = tried.emplace_back();
    layout.dealing = kDealings[i];
    layout.stage_kinds = scratch.stage_kinds;
    note_busiest(chain, scratch, pp, vp, layout);
  }
  return tried;
}

const LastChunks& last_chunks(const ChainJob& chain, LayerTable& table,
                              const Configuration& configuration) {
  const int pp = configuration.pp;
  const auto [entry, is_new] = table.last_chunks.try_emplace(key_of(pp, configuration.vp));
  LastChunks& last = entry->second;
  if (!is_new) return last;
  Ends ends;
  for (const Dealing how : kDealings) {
    deal(chain, table, pp * configuration.vp, how, ends);
    note_last_chunks(table, ends, pp, last);
  }
  if (!chain.heavy_end) return last;
  // Trainers' layouts of such models may leave more to the last chunks where there are more.
  const auto layers = static_cast<std::int32_t>(table.chain.size());
  for (std::int32_t vp = configuration.vp + 1; vp <= layers / pp; ++vp) {
    deal(chain, table, pp * vp, Dealing::as_trainers, ends);
    note_last_chunks(table, ends, pp, last);
  }
  return last;
}

}  // namespace braid
