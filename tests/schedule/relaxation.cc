#include "schedule/relaxation.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace braid {
namespace {

using Key = std::tuple<WorkKind, std::int64_t, std::int64_t>;  // kind, chunk id, micro-batch

struct Sending {
  std::size_t stage = 0, position = 0;  // Of the pass that produces the data.
  std::vector<Key> receivers;
  double time_s = 0;
  double arrival_s = 0;
  bool linked = false;
};

bool raise(double& value, double least) {
  if (value >= least) return false;
  value = least;
  return true;
}

/// Micro-batches of stage `to` that hold any sample of micro-batch `k` of stage `from`.
std::set<std::int64_t> sharing(const Pipeline& pipeline, std::int64_t from, std::int64_t k,
                               std::int64_t to) {
  if (pipeline.rounds.empty()) return {k};
  const StageRounds& mine = pipeline.rounds[static_cast<std::size_t>(from)];
  const StageRounds& others = pipeline.rounds[static_cast<std::size_t>(to)];
  std::set<std::int64_t> found;
  for (std::int64_t sample = 0; sample < mine.samples * mine.count; ++sample) {
    if (sample / mine.samples == k) found.insert(sample / others.samples);
  }
  return found;
}

/// Where the passes of an order are: stage and position there.
struct Places {
  std::map<Key, std::pair<std::size_t, std::size_t>> of;
  std::vector<std::size_t> first_forward;  // [stage]
};

using Links = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Sending>>;

double length_of(const Pipeline& pipeline, const Work& work) {
  const auto chunk = static_cast<std::size_t>(work.stage);
  return work.kind == WorkKind::forward ? pipeline.forward_s[chunk] : pipeline.backward_s[chunk];
}

/// Lists the passes of an order, at time 0.
Places place(const WorkOrder& order, Relaxed& result) {
  Places places;
  places.first_forward.resize(order.devices.size());
  for (std::size_t s = 0; s < order.devices.size(); ++s) {
    result.passes.emplace_back();
    bool seen = false;
    for (const Work& work : order.devices[s]) {
      const std::size_t position = result.passes[s].size();
      if (!seen && work.kind == WorkKind::forward) {
        seen = true;
        places.first_forward[s] = position;
      }
      places.of[{work.kind, work.stage, work.index}] = {s, position};
      result.passes[s].push_back({work, 0, 0});
    }
  }
  return places;
}

/// Sendings of each link in the order in which their producers run.
Links sendings_of(const Pipeline& pipeline, const WorkOrder& order) {
  const int vp = pipeline.vp;
  Links links;
  for (std::size_t s = 0; s < order.devices.size(); ++s) {
    for (std::size_t i = 0; i < order.devices[s].size(); ++i) {
      const Work& work = order.devices[s][i];
      for (const Transfer& transfer : pipeline.transfers) {
        const bool forward = work.kind == WorkKind::forward;
        const std::int64_t from = forward ? transfer.source : transfer.target;
        const std::int64_t to = forward ? transfer.target : transfer.source;
        if (from != work.stage) continue;
        const bool linked = from / vp != to / vp;
        std::vector<Key> receivers;
        for (const std::int64_t k : sharing(pipeline, from / vp, work.index, to / vp)) {
          receivers.emplace_back(work.kind, to, k);
        }
        const double time_s = forward ? transfer.time_s : transfer.back_s();
        links[{from / vp, to / vp}].push_back(
            {s, i, std::move(receivers), linked ? time_s : 0, 0, linked});
      }
    }
  }
  return links;
}

/// Moves passes behind what runs before them on their stage. Whether any moved.
bool relax_passes(const Pipeline& pipeline, const Places& places, Relaxed& result) {
  bool changed = false;
  for (std::size_t s = 0; s < result.passes.size(); ++s) {
    for (std::size_t i = 0; i < result.passes[s].size(); ++i) {
      Relaxed::Pass& pass = result.passes[s][i];
      if (i > 0) changed |= raise(pass.start_s, result.passes[s][i - 1].end_s);
      if (pass.work.kind == WorkKind::backward) {
        const auto [fs, fi] = places.of.at({WorkKind::forward, pass.work.stage, pass.work.index});
        changed |= raise(pass.start_s, result.passes[fs][fi].end_s);
      }
      const double length = length_of(pipeline, pass.work);
      changed |= raise(pass.end_s, pass.start_s + length);
      const StageSync& sync = pipeline.sync[s];
      if (i == places.first_forward[s] && sync.parameter_sync_s > 0) {
        // Part by part behind bucket by bucket.
        double end_s = pass.start_s;
        for (int b = 0; b < sync.buckets; ++b) {
          const double there = sync.parameter_sync_s * (b + 1) / sync.buckets;
          end_s = std::max(end_s, there) + length / sync.buckets;
        }
        changed |= end_s > pass.end_s * (1 + 1e-13) && raise(pass.end_s, end_s);
      }
    }
  }
  return changed;
}

/// Moves sendings behind their passes, and passes behind what they receive. Whether any moved.
bool relax_sendings(const Places& places, Links& links, Relaxed& result) {
  bool changed = false;
  for (auto& [ends, list] : links) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      Sending& sending = list[i];
      const double sent = result.passes[sending.stage][sending.position].end_s;
      changed |= raise(sending.arrival_s, sent + sending.time_s);
      if (i > 0 && sending.linked) {
        changed |= raise(sending.arrival_s, list[i - 1].arrival_s + sending.time_s);
      }
      for (const Key& receiver : sending.receivers) {
        const auto [rs, ri] = places.of.at(receiver);
        changed |= raise(result.passes[rs][ri].start_s, sending.arrival_s);
      }
    }
  }
  return changed;
}

/// Ends the stages: gradients bucket by bucket behind the last pass, then the optimizer.
void end_stages(const Pipeline& pipeline, Relaxed& result) {
  for (std::size_t s = 0; s < result.passes.size(); ++s) {
    const StageSync& sync = pipeline.sync[s];
    const Relaxed::Pass& last = result.passes[s].back();
    double end_s = last.end_s;
    if (sync.gradient_sync_s > 0) {
      double bucket_end_s = 0;
      for (int b = 0; b < sync.buckets; ++b) {
        const double there = last.start_s + length_of(pipeline, last.work) * (b + 1) / sync.buckets;
        bucket_end_s = std::max(bucket_end_s, there) + sync.gradient_sync_s / sync.buckets;
      }
      end_s = bucket_end_s;
    }
    result.stage_end_s.push_back(end_s + sync.shared_gradient_sync_s + sync.optimizer_s);
    result.time_s = std::max(result.time_s, result.stage_end_s.back());
  }
}

}  // namespace

std::optional<Relaxed> relax(const Pipeline& pipeline, const WorkOrder& order) {
  Relaxed result;
  const Places places = place(order, result);
  Links links = sendings_of(pipeline, order);
  // Longest chains alternate passes and transfers; anything that still moves after that many rounds
  // goes round in a circle.
  std::size_t steps = places.of.size();
  for (const auto& [ends, list] : links) steps += list.size();
  for (std::size_t round = 0;; ++round) {
    if (round > 2 * steps + 2) return std::nullopt;
    const bool passes = relax_passes(pipeline, places, result);
    const bool sendings = relax_sendings(places, links, result);
    if (!passes && !sendings) break;
  }
  end_stages(pipeline, result);
  return result;
}

}  // namespace braid
