#include "braid/planners/graphpipe_runs.h"

#include <algorithm>
#include <cmath>

namespace braid {

GraphPipeRuns::GraphPipeRuns(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                             const std::vector<PassGroup>& groups)
    : problem_(problem), form_(form), levels_(copy_levels(problem.ways)) {
  const std::size_t ways = problem.ways.size();
  rows_.reserve(groups.size() * ways);
  for (const PassGroup& group : groups) {
    for (std::size_t w = 0; w < ways; ++w) add_row(group, w);
  }
  runs_.resize(form.shapes.size() * runs_of_shape_);
  GraphPipeRun* runs = runs_.data();
  for (const GraphPipeShape& shape : form.shapes) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const Row& row = rows_[r];
      for (std::size_t i = 0; i < row.shares.size(); ++i) {
        const GraphPipeRun run = run_of(shape, row, row.shares[i]);
        if (!is_useless(shape, r, i, run, runs)) runs[row.first + i] = run;
      }
    }
    runs += runs_of_shape_;
  }
}

void GraphPipeRuns::add_row(const PassGroup& group, std::size_t way) {
  Row row{group, way, runs_of_shape_, {}};
  const std::int64_t tensor = problem_.ways[way].tensor;
  const std::int64_t most = std::min(problem_.devices, problem_.most_stage_devices);
  for (std::size_t u = problem_.device_samples.size(); u-- > 0;) {
    const std::int64_t samples = problem_.device_samples[u];
    if (group.micro_batch % samples != 0) continue;
    const std::int64_t replicas = group.micro_batch / samples;
    if (replicas > most / tensor) break;
    if (replicas * tensor < problem_.least_stage_devices) continue;
    row.shares.push_back(
        {static_cast<std::int32_t>(u), static_cast<std::int32_t>(replicas * tensor), replicas});
  }
  runs_of_shape_ += row.shares.size();
  rows_.push_back(std::move(row));
}

GraphPipeRun GraphPipeRuns::run_of(const GraphPipeShape& shape, const Row& row,
                                   const GraphPipeShare& share) const {
  const std::int64_t least = problem_.in_flight == InFlight::table
                                 ? std::min(row.group.k * row.group.micro_batch, problem_.batch)
                                 : row.group.micro_batch;
  if (graphpipe_memory_bytes(shape, row.way, row.group, share.replicas, least) >
      problem_.memory_bytes) {
    return {};
  }
  const auto r = static_cast<double>(share.replicas);
  GraphPipeRun run;
  run.compute_s = shape.passes_s(row.way, static_cast<std::size_t>(share.samples)) /
                      static_cast<double>(row.group.micro_batch) +
                  2 * (r - 1) / r * shape.bytes[row.way].gradient /
                      graphpipe_sync_bytes_per_s(problem_, share.devices) /
                      static_cast<double>(problem_.batch);
  run.time_s = time_s(shape, run.compute_s, share, row.way, 0, 0);
  return run;
}

/// Whether it is no faster than with an earlier way of its kind that fits with the whole batch in
/// flight: recomputing what there is room for.
bool GraphPipeRuns::is_useless(const GraphPipeShape& shape, std::size_t row_index,
                               std::size_t index, const GraphPipeRun& run,
                               const GraphPipeRun* runs) const {
  const Row& row = rows_[row_index];
  const GraphPipeShare& share = row.shares[index];
  const auto samples = static_cast<std::size_t>(share.samples);
  for (std::size_t other = 0; other < row.way; ++other) {
    if (problem_.ways[other] != problem_.ways[row.way]) continue;
    // Of the same group; ways of a kind have the same shares.
    const GraphPipeRun& earlier = runs[rows_[row_index - (row.way - other)].first + index];
    if (std::isfinite(earlier.time_s) && earlier.compute_s <= run.compute_s &&
        shape.passes_s(other, samples) <= shape.passes_s(row.way, samples) &&
        graphpipe_memory_bytes(shape, other, row.group, share.replicas, problem_.batch) <=
            problem_.memory_bytes) {
      return true;
    }
  }
  return false;
}

double GraphPipeRuns::time_s(const GraphPipeShape& shape, double compute_s,
                             const GraphPipeShare& share, std::size_t way, std::int32_t before,
                             std::int32_t after) const {
  const auto times = [&](std::int32_t place) {
    return static_cast<double>(levels_.copies[static_cast<std::size_t>(place)]);
  };
  const double received_bytes = times(levels_.place[way]) * (shape.in_bytes + shape.out_bytes);
  const double sent_bytes = times(before) * shape.in_bytes + times(after) * shape.out_bytes;
  const double network_s = std::max(received_bytes, sent_bytes) /
                           (problem_.bandwidth_bytes_per_s * static_cast<double>(share.devices));
  return problem_.overlap ? std::max(compute_s, network_s) : compute_s + network_s;
}

std::vector<double> GraphPipeRuns::attained_s(double least_s, double limit_s) const {
  std::vector<double> times_s;
  const auto most = static_cast<std::int32_t>(levels_.copies.size());
  const GraphPipeRun* run = runs_.data();
  for (const GraphPipeShape& shape : form_.shapes) {
    for (const Row& row : rows_) {
      for (const GraphPipeShare& share : row.shares) {
        const double compute_s = run->compute_s;
        double last_s = (run++)->time_s;
        if (last_s >= limit_s) continue;
        if (last_s >= least_s) times_s.push_back(last_s);
        for (std::int32_t pair = 1; pair < most * most; ++pair) {
          const double time = time_s(shape, compute_s, share, row.way, pair / most, pair % most);
          if (time == last_s || time < least_s || time >= limit_s) continue;
          last_s = time;
          times_s.push_back(time);
        }
      }
    }
  }
  return times_s;
}

double graphpipe_memory_bytes(const GraphPipeShape& shape, std::size_t way, const PassGroup& group,
                              std::int64_t replicas, std::int64_t in_flight) {
  const GraphPipeShape::Bytes& bytes = shape.bytes[way];
  return graphpipe_memory_bytes(in_flight, replicas, group.micro_batch, bytes.fixed, bytes.stash,
                                bytes.working);
}

}  // namespace braid
