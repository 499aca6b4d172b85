#include "braid/planners/graphpipe_target.h"

#include <algorithm>
#include <utility>

#include "braid/schedule/in_flight.h"

namespace braid {
namespace {

constexpr std::int64_t kImpossible = std::int64_t{1} << 60;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

GraphPipeTargetSearch::GraphPipeTargetSearch(const GraphPipeProblem& problem,
                                             const GraphPipeShapes& form,
                                             std::vector<PassGroup> groups)
    : problem_(problem),
      form_(form),
      groups_(std::move(groups)),
      runs_(problem, form, groups_),
      ranking_(groups_.size(), problem.in_flight == InFlight::table),
      table_(problem.in_flight == InFlight::table),
      work_s_(form.series.back().work_s.back()) {}

GraphPipeFrontier GraphPipeTargetSearch::plans_at(double time_s, bool relaxed) {
  relaxed_ = relaxed;
  time_s_ = time_s;
  choices_.clear();
  known_series_.clear();
  known_blocks_.clear();
  known_parts_.clear();
  slack_ = static_cast<double>(problem_.devices) - work_s_ / time_s_ * (1 - 1e-9);
  if (slack_ < 0) return {};
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
  return {table_ ? 0 : label.out_s, table_ ? 0 : label.back_s, label.copies, label.allowed,
          label.samples};
}

/// Fewest devices that could do the work of items [first, last) of a series, as a real number.
/// Everything else needs its own, so that no part of a plan may use more than `slack_` beyond it.
double GraphPipeTargetSearch::need(const GraphPipeSeries& series, int first, int last) const {
  return (series.work_s[at(last)] - series.work_s[at(first)]) / time_s_;
}

/// Puts stages of this shape in front of `label`, at most `limit` devices in all: for each group
/// and way those that keep the target time and the memory with the fewest devices, …
void GraphPipeTargetSearch::put_stage(std::int32_t shape_index, const GraphPipeLabel& label,
                                      double limit, GraphPipeFrontier& frontier) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (label.samples[g] >= kImpossible) continue;
    for (std::size_t w = 0; w < problem_.ways.size(); ++w) {
      if (runs_.copies_of(w) > label.allowed) continue;
      put_stage(shape_index, g, w, label, limit, frontier);
    }
  }
}

/// … and those with more that leave more copies to the stages before.
void GraphPipeTargetSearch::put_stage(std::int32_t shape_index, std::size_t group, std::size_t way,
                                      const GraphPipeLabel& label, double limit,
                                      GraphPipeFrontier& frontier) {
  const GraphPipeShape& shape = form_.shapes[at(shape_index)];
  const auto all_copies = static_cast<std::int32_t>(runs_.copies().size()) - 1;
  const GraphPipeRun* run = runs_.runs(at(shape_index), group, way);
  for (const GraphPipeShare& share : runs_.shares(group, way)) {
    const double compute_s = run->compute_s;
    if ((run++)->time_s > time_s_) continue;
    if (label.devices + share.devices > limit) break;
    ++work_;
    GraphPipeLabel made = label;
    made.devices += share.devices;
    if (!hand_over(shape, compute_s, share, way, made) || !extend(shape, group, way, share, made)) {
      continue;
    }
    if (!ranking_.is_useless(made, frontier)) {
      made.choice =
          add({GraphPipeChoice::Kind::stage, shape_index, static_cast<std::int32_t>(group),
               share.samples, static_cast<std::int32_t>(way), -1, -1, label.choice});
      ranking_.insert(made, frontier);
    }
    if (made.allowed == all_copies) break;
  }
}

/// Makes of the copies behind a stage what a stage before it sees; false when it does not keep the
/// target time whatever is before it.
bool GraphPipeTargetSearch::hand_over(const GraphPipeShape& shape, double compute_s,
                                      const GraphPipeShare& share, std::size_t way,
                                      GraphPipeLabel& label) const {
  const std::int32_t after = label.copies;
  label.copies = runs_.copies_of(way);
  label.allowed = static_cast<std::int32_t>(runs_.copies().size()) - 1;
  if (label.allowed == 0) return true;
  while (label.allowed >= 0 &&
         runs_.time_s(shape, compute_s, share, way, label.allowed, after) > time_s_) {
    --label.allowed;
  }
  return label.allowed >= 0;
}

/// Makes of what is behind a stage what a stage before it sees; false when it does not fit.
bool GraphPipeTargetSearch::extend(const GraphPipeShape& shape, std::size_t group, std::size_t way,
                                   const GraphPipeShare& share, GraphPipeLabel& label) const {
  if (relaxed_) return true;
  const PassGroup& own = groups_[group];
  const std::size_t run = way * problem_.device_samples.size() + at(share.samples);
  label.out_s += shape.forward_s[run];
  label.back_s += shape.backward_s[run];
  std::int64_t in_flight = label.samples[group];
  if (!table_) {
    const double period_s = time_s_ * static_cast<double>(own.micro_batch);
    in_flight = own.micro_batch * least_in_flight(label.out_s, label.back_s,
                                                  shape.forward_s[run] + shape.backward_s[run],
                                                  period_s, problem_.batch / own.micro_batch);
  }
  if (graphpipe_memory_bytes(shape, way, own, share.replicas, std::min(in_flight, problem_.batch)) >
      problem_.memory_bytes) {
    return false;
  }
  const double hop_s = static_cast<double>(problem_.ways[way].copies) * shape.in_bytes *
                       static_cast<double>(own.micro_batch) /
                       (problem_.bandwidth_bytes_per_s * static_cast<double>(share.devices));
  label.out_s += hop_s;
  label.back_s += hop_s;
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
  if (added) known->second = plan_series(form_.series[at(series_index)], first, last, start);
  return known->second;
}

GraphPipeFrontier GraphPipeTargetSearch::plan_series(const GraphPipeSeries& series, int first,
                                                     int last, const GraphPipeLabel& start) {
  std::vector<GraphPipeFrontier> cuts(at(std::max(0, last - first)) + 1);
  cuts.back() = {start};
  const auto limit = [&](int cut) { return slack_ + need(series, cut, last); };
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
        GraphPipeFrontier ends;
        put_stage(stage.shape, from, limit(p), ends);
        for (const GraphPipeLabel& end : ends) {
          put_block(series.items[at(p)].block, stage.absorption, end, limit(p),
                    cuts[at(p - first)]);
        }
      }
      const std::int32_t block = series.items[at(e - 1)].block;
      if (block < 0) continue;
      put_block(block, -1, from, limit(e - 1), cuts[at(e - 1 - first)]);
      int absorption = -1;
      GraphPipeFrontier rest;
      for (const SeriesStage& stage : series.opening[at(e - 1)]) {
        if (stage.to < first) continue;
        if (stage.absorption != absorption) {
          absorption = stage.absorption;
          rest.clear();
          put_block(block, absorption, from, limit(e - 1), rest);
        }
        for (const GraphPipeLabel& before : rest) {
          put_stage(stage.shape, before, limit(stage.to), cuts[at(stage.to - first)]);
        }
      }
    }
  }
  return std::move(cuts.front());
}

}  // namespace braid
