#include "braid/planners/graphpipe/target.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/in_flight.h"
#include "braid/schedule/in_flight.h"

namespace braid {
namespace {

constexpr std::int64_t kImpossible = std::int64_t{1} << 60;

}  // namespace

GraphPipeTargetSearch::GraphPipeTargetSearch(const GraphPipeProblem& problem,
                                             const GraphPipeShapes& form,
                                             std::vector<PassGroup> groups)
    : problem_(problem),
      form_(form),
      groups_(std::move(groups)),
      runs_(problem, form, groups_),
      ranking_(groups_.size(), problem.in_flight == InFlight::table, problem.pools.size()),
      table_(problem.in_flight == InFlight::table),
      floor_(form, runs_) {
  for (std::size_t p = 0; p < problem.pools.size(); ++p) {
    most_[p] = static_cast<std::int32_t>(problem.pools[p].devices);
  }
}

bool GraphPipeTargetSearch::has_devices(double time_s, bool passes_alone) {
  const std::pair target(time_s, passes_alone);
  if (target != floor_target_) floor_.count(time_s, passes_alone);
  floor_target_ = target;
  return floor_.all() <= runs_.all_devices();
}

GraphPipeFrontier GraphPipeTargetSearch::plans_at(double time_s, GraphPipeEffort effort,
                                                  bool keep_long) {
  keep_long_ = keep_long;
  effort_ = effort;
  ranking_.compare_in_full(effort == GraphPipeEffort::full);
  time_s_ = time_s;
  choices_.clear();
  known_series_.clear();
  known_blocks_.clear();
  known_parts_.clear();
  if (!has_devices(time_s)) return {};
  shortest_s_ = kInfinity;
  slack_ = runs_.all_devices() - floor_.all();
  const auto whole = static_cast<std::int32_t>(form_.series.size()) - 1;
  return front(whole, 0, static_cast<int>(form_.series.back().items.size()), sink());
}

GraphPipeLabel GraphPipeTargetSearch::sink() const {
  GraphPipeLabel label;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    label.samples[g] = groups_[g].k * groups_[g].micro_batch;
  }
  return label;
}

std::int32_t GraphPipeTargetSearch::add(const GraphPipeChoice& choice) {
  choices_.push_back(choice);
  return static_cast<std::int32_t>(choices_.size() - 1);
}

GraphPipeTargetSearch::Values GraphPipeTargetSearch::values_of(const GraphPipeLabel& label) const {
  return {table_ ? 0 : label.behind_s, label.copies, label.allowed, label.samples};
}

/// Whether nothing in front of a plan makes its path through the stages as short as another's. Nor
/// then do plans that it is no worse than.
bool GraphPipeTargetSearch::is_too_long(const GraphPipeLabel& label) const {
  return label.round_s > shortest_s_;
}

/// Puts stages of this shape in front of `label`, at most `limit` devices in all: for each group
/// and strategy those that keep the target time and the memory with the fewest devices, those with
/// more that leave more copies to the stages before, and of a full search all, as with more devices
/// its passes and what it receives take less.
void GraphPipeTargetSearch::put_stage(std::int32_t shape_index, const GraphPipeLabel& label,
                                      std::int32_t limit, GraphPipeFrontier& frontier) {
  if (label.devices + floor_.stage(shape_index) > limit) return;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (label.samples[g] >= kImpossible) continue;
    for (std::size_t w = 0; w < problem_.strategies.size(); ++w) {
      if (runs_.copies_of(w) > label.allowed) continue;
      put_stage(shape_index, g, w, label, limit, frontier);
    }
  }
}

void GraphPipeTargetSearch::put_stage(std::int32_t shape_index, std::size_t group,
                                      std::size_t strategy, const GraphPipeLabel& label,
                                      std::int32_t limit, GraphPipeFrontier& frontier) {
  const GraphPipeShape& shape = form_.shapes[at(shape_index)];
  const auto all_copies = static_cast<std::int32_t>(runs_.copies().size()) - 1;
  const std::size_t pool = runs_.pool(strategy);
  const GraphPipeRun* run = runs_.runs(at(shape_index), group, strategy);
  for (const GraphPipeShare& share : runs_.shares(group, strategy)) {
    const double compute_s = run->compute_s;
    if ((run++)->time_s > time_s_) continue;
    if (label.devices + share.weighed > limit ||
        label.of_pool[pool] + share.devices > most_[pool]) {
      break;
    }
    ++work_;
    GraphPipeLabel made = label;
    made.devices += share.weighed;
    made.of_pool[pool] += share.devices;
    if (!hand_over(shape, compute_s, share, strategy, made) ||
        !extend(shape, group, strategy, share, made)) {
      continue;
    }
    if (!is_too_long(made) && !ranking_.is_useless(made, frontier)) {
      made.choice =
          add({GraphPipeChoice::Kind::stage, shape_index, static_cast<std::int32_t>(group),
               share.samples, static_cast<std::int32_t>(strategy), -1, -1, label.choice});
      ranking_.insert(made, frontier);
    }
    if (made.allowed == all_copies && effort_ != GraphPipeEffort::full) break;
  }
}

/// Makes of the copies behind a stage what a stage before it sees; false when it does not keep the
/// target time whatever is before it.
bool GraphPipeTargetSearch::hand_over(const GraphPipeShape& shape, double compute_s,
                                      const GraphPipeShare& share, std::size_t strategy,
                                      GraphPipeLabel& label) const {
  const std::int32_t after = label.copies;
  label.copies = runs_.copies_of(strategy);
  label.allowed = static_cast<std::int32_t>(runs_.copies().size()) - 1;
  if (label.allowed == 0) return true;
  while (label.allowed >= 0 &&
         runs_.time_s(shape, compute_s, share, strategy, label.allowed, after) > time_s_) {
    --label.allowed;
  }
  return label.allowed >= 0;
}

/// Makes of what is behind a stage what a stage before it sees; false when it does not fit.
bool GraphPipeTargetSearch::extend(const GraphPipeShape& shape, std::size_t group,
                                   std::size_t strategy, const GraphPipeShare& share,
                                   GraphPipeLabel& label) const {
  label.empty = false;
  if (effort_ == GraphPipeEffort::relaxed) return true;
  const PassGroup& own = groups_[group];
  const std::size_t run = strategy * problem_.device_samples.size() + at(share.samples);
  const double passes_s = shape.forward_s[run] + shape.backward_s[run];
  label.round_s += passes_s;
  std::int64_t in_flight = label.samples[group];
  if (!table_) {
    const double period_s = time_s_ * static_cast<double>(own.micro_batch);
    in_flight = own.micro_batch * least_in_flight(label.round_s, passes_s, period_s,
                                                  problem_.batch / own.micro_batch);
  }
  if (graphpipe_memory_bytes(shape, strategy, own, share.replicas,
                             std::min(in_flight, problem_.batch)) > runs_.memory_bytes(strategy)) {
    return false;
  }
  const double hop_s = static_cast<double>(problem_.strategies[strategy].copies) * shape.in_bytes *
                       static_cast<double>(own.micro_batch) / share.stage_bytes_per_s;
  label.round_s += 2 * hop_s;
  if (label.inside) {
    label.out_s += shape.forward_s[run] + hop_s;
    label.back_s += shape.backward_s[run] + hop_s;
  }
  for (std::size_t f = 0; f < groups_.size(); ++f) {
    const std::int64_t a = groups_[f].micro_batch;
    const std::int64_t b = own.micro_batch;
    label.samples[f] =
        a % b != 0 && b % a != 0 ? kImpossible : table_in_flight(groups_[f], own, in_flight);
  }
  return true;
}

/// Plans of the items [first, last) of a series in front of `start`, which has no devices.
const GraphPipeFrontier& GraphPipeTargetSearch::front(std::int32_t series_index, int first,
                                                      int last, const GraphPipeLabel& start) {
  const auto [known, added] =
      known_series_.try_emplace({series_index, first, last, values_of(start)}, GraphPipeFrontier{});
  if (added) known->second = plan_series(series_index, first, last, start);
  return known->second;
}

GraphPipeFrontier GraphPipeTargetSearch::plan_series(std::int32_t series_index, int first, int last,
                                                     const GraphPipeLabel& start) {
  const GraphPipeSeries& series = form_.series[at(series_index)];
  const bool whole = at(series_index) + 1 == form_.series.size();
  std::vector<GraphPipeFrontier> cuts(at(std::max(0, last - first)) + 1);
  cuts.back() = {start};
  const auto limit = [&](int cut) {
    return whole ? runs_.all_devices() - floor_.before(cut)
                 : slack_ + floor_.piece(series_index, cut, last);
  };
  const auto note_shortest = [&] {
    if (!whole || table_ || keep_long_) return;
    for (const GraphPipeLabel& plan : cuts.front()) {
      shortest_s_ = std::min(shortest_s_, plan.round_s);
    }
  };
  for (int e = last; e > first; --e) {
    const GraphPipeFrontier here = std::move(cuts[at(e - first)]);
    for (const GraphPipeLabel& from : here) {
      for (const SeriesStage& stage : series.ending[at(e)]) {
        if (stage.to < first) break;
        put_stage(stage.shape, from, limit(stage.to), cuts[at(stage.to - first)]);
      }
      for (const SeriesStage& stage : series.closing[at(e)]) {
        const int p = stage.to - 1;
        if (p < first) continue;
        const std::int32_t block = series.items[at(p)].block;
        GraphPipeFrontier ends;
        put_stage(stage.shape, from, limit(p) - floor_.left_of(block, stage.absorption), ends);
        for (const GraphPipeLabel& end : ends) {
          put_block(block, stage.absorption, end, limit(p), cuts[at(p - first)]);
        }
        if (p == 0) note_shortest();
      }
      note_shortest();
      const std::int32_t block = series.items[at(e - 1)].block;
      if (block < 0) continue;
      put_block(block, -1, from, limit(e - 1), cuts[at(e - 1 - first)]);
      const std::vector<SeriesStage>& opening = series.opening[at(e - 1)];
      // Those with one part of the block follow each other.
      for (std::size_t i = 0, next = 0; i < opening.size(); i = next) {
        const std::int32_t absorption = opening[i].absorption;
        std::int32_t room = -1;
        for (next = i; next < opening.size() && opening[next].absorption == absorption; ++next) {
          const SeriesStage& stage = opening[next];
          if (stage.to < first) continue;
          room = std::max(room, limit(stage.to) - floor_.stage(stage.shape));
        }
        GraphPipeFrontier remaining;
        put_block(block, absorption, from, room, remaining);
        for (std::size_t s = i; s < next && !remaining.empty(); ++s) {
          const SeriesStage& stage = opening[s];
          if (stage.to < first) continue;
          for (const GraphPipeLabel& before : remaining) {
            put_stage(stage.shape, before, limit(stage.to), cuts[at(stage.to - first)]);
          }
        }
      }
    }
  }
  return std::move(cuts.front());
}

}  // namespace braid
