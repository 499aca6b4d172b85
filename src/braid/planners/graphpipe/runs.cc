#include "braid/planners/graphpipe/runs.h"

#include <algorithm>
#include <cmath>

#include "braid/base/infinity.h"

namespace braid {

GraphPipeRuns::GraphPipeRuns(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                             const std::vector<PassGroup>& groups)
    : problem_(problem), form_(form), levels_(copy_levels(problem.strategies)) {
  const std::size_t strategies = problem.strategies.size();
  const std::vector<std::int32_t> weights = graphpipe_weights(problem);
  all_devices_ = graphpipe_weighed_devices(problem);
  strategies_.reserve(strategies);
  for (const GraphPipeStrategy& strategy : problem.strategies) {
    strategies_.push_back(
        {static_cast<std::size_t>(strategy.pool), problem.pool_of(strategy).memory_bytes});
  }
  rows_.reserve(groups.size() * strategies);
  for (const PassGroup& group : groups) {
    for (std::size_t w = 0; w < strategies; ++w) add_row(group, w, weights[strategies_[w].pool]);
  }
  runs_.resize(form.shapes.size());
  find_devices();
  find_least();
}

void GraphPipeRuns::add_row(const PassGroup& group, std::size_t strategy, std::int32_t weight) {
  Row row;
  row.group = group;
  row.strategy = strategy;
  row.first = runs_of_shape_;
  row.least = problem_.in_flight == InFlight::table
                  ? std::min(group.k * group.micro_batch, problem_.batch)
                  : group.micro_batch;
  const std::int64_t tensor = problem_.strategies[strategy].tensor;
  const GraphPipePool pool = problem_.pool_of(problem_.strategies[strategy]);
  const std::int64_t most = std::min(pool.devices, problem_.most_stage_devices);
  for (std::size_t u = problem_.device_samples.size(); u-- > 0;) {
    const std::int64_t samples = problem_.device_samples[u];
    if (group.micro_batch % samples != 0) continue;
    const std::int64_t replicas = group.micro_batch / samples;
    if (replicas > most / tensor) break;
    const std::int64_t devices = replicas * tensor;
    if (devices < problem_.least_stage_devices) continue;
    const std::int64_t expert = problem_.strategies[strategy].expert;
    if (replicas % expert != 0) continue;
    const auto r = static_cast<double>(replicas);
    const auto count = static_cast<std::int32_t>(devices);
    row.shares.push_back({static_cast<std::int32_t>(u), count, count * weight, replicas, 0,
                          2 * (r - 1) / r, 2 * (r - static_cast<double>(expert)) / r,
                          graphpipe_sync_bytes_per_s(pool, devices),
                          pool.bandwidth_bytes_per_s * static_cast<double>(devices)});
  }
  for (std::size_t other = 0; other < strategy; ++other) {
    if (problem_.strategies[other] == problem_.strategies[strategy]) {
      row.earlier.push_back(rows_.size() - (strategy - other));
    }
  }
  runs_of_shape_ += row.shares.size();
  rows_.push_back(std::move(row));
}

void GraphPipeRuns::find_devices() {
  for (const Row& row : rows_) {
    for (const GraphPipeShare& share : row.shares) devices_.push_back(share.weighed);
  }
  std::sort(devices_.begin(), devices_.end());
  devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
  for (Row& row : rows_) {
    for (GraphPipeShare& share : row.shares) {
      const auto place = std::lower_bound(devices_.begin(), devices_.end(), share.weighed);
      share.place = static_cast<std::size_t>(place - devices_.begin());
    }
  }
}

void GraphPipeRuns::find_least() {
  const std::size_t count = devices_.size();
  least_s_.resize(form_.shapes.size() * count, kInfinity);
  least_passes_s_ = least_s_;
  std::vector<GraphPipeRun> runs(runs_of_shape_);
  double* least_s = least_s_.data();
  double* least_passes_s = least_passes_s_.data();
  for (const GraphPipeShape& shape : form_.shapes) {
    price(shape, runs.data());
    for (const Row& row : rows_) {
      const GraphPipeRun* run = runs.data() + row.first;
      const auto samples = static_cast<double>(row.group.micro_batch);
      for (const GraphPipeShare& share : row.shares) {
        const double time_s = (run++)->time_s;
        if (std::isinf(time_s)) continue;
        least_s[share.place] = std::min(least_s[share.place], time_s);
        least_passes_s[share.place] =
            std::min(least_passes_s[share.place], passes_s(shape, row.strategy, share) / samples);
      }
    }
    for (std::size_t i = 1; i < count; ++i) {
      least_s[i] = std::min(least_s[i], least_s[i - 1]);
      least_passes_s[i] = std::min(least_passes_s[i], least_passes_s[i - 1]);
    }
    least_s += count;
    least_passes_s += count;
  }
}

const GraphPipeRun* GraphPipeRuns::runs(std::size_t shape, std::size_t group,
                                        std::size_t strategy) {
  std::vector<GraphPipeRun>& runs = runs_[shape];
  if (runs.empty()) {
    runs.resize(runs_of_shape_);
    price(form_.shapes[shape], runs.data());
  }
  return runs.data() + rows_[group * problem_.strategies.size() + strategy].first;
}

/// All runs of a shape.
void GraphPipeRuns::price(const GraphPipeShape& shape, GraphPipeRun* runs) const {
  for (const Row& row : rows_) {
    GraphPipeRun* run = runs + row.first;
    for (std::size_t i = 0; i < row.shares.size(); ++i, ++run) {
      *run = is_useless(shape, row, i, runs) ? GraphPipeRun() : run_of(shape, row, row.shares[i]);
    }
  }
}

/// Whether an earlier strategy of its kind is no slower and fits with the whole batch in flight:
/// recomputing what there is room for.
bool GraphPipeRuns::is_useless(const GraphPipeShape& shape, const Row& row, std::size_t index,
                               const GraphPipeRun* runs) const {
  for (const std::size_t other : row.earlier) {
    const Row& earlier = rows_[other];
    if (runs[earlier.first + index].roomy &&
        passes_no_longer(shape, earlier.strategy, row.strategy, row.shares[index]) &&
        shape.bytes[earlier.strategy].gradient <= shape.bytes[row.strategy].gradient &&
        shape.bytes[earlier.strategy].expert_gradient <=
            shape.bytes[row.strategy].expert_gradient) {
      return true;
    }
  }
  return false;
}

GraphPipeRun GraphPipeRuns::run_of(const GraphPipeShape& shape, const Row& row,
                                   const GraphPipeShare& share) const {
  const auto fits = [&](std::int64_t in_flight) {
    return graphpipe_memory_bytes(shape, row.strategy, row.group, share.replicas, in_flight) <=
           strategies_[row.strategy].memory_bytes;
  };
  GraphPipeRun run;
  run.roomy = fits(problem_.batch);
  if (!run.roomy && !fits(row.least)) return run;
  run.compute_s =
      passes_s(shape, row.strategy, share) / static_cast<double>(row.group.micro_batch) +
      (share.synced * shape.bytes[row.strategy].gradient +
       share.experts_synced * shape.bytes[row.strategy].expert_gradient) /
          share.sync_bytes_per_s / static_cast<double>(problem_.batch);
  run.time_s = time_s(shape, run.compute_s, share, row.strategy, 0, 0);
  return run;
}

/// Of a forward and a backward pass.
double GraphPipeRuns::passes_s(const GraphPipeShape& shape, std::size_t strategy,
                               const GraphPipeShare& share) const {
  const std::size_t i =
      strategy * problem_.device_samples.size() + static_cast<std::size_t>(share.samples);
  return shape.forward_s[i] + shape.backward_s[i];
}

/// Of both together and, where paths out and back count, of each.
bool GraphPipeRuns::passes_no_longer(const GraphPipeShape& shape, std::size_t strategy,
                                     std::size_t other, const GraphPipeShare& share) const {
  if (passes_s(shape, strategy, share) > passes_s(shape, other, share)) return false;
  const std::size_t samples = problem_.device_samples.size();
  const auto i = static_cast<std::size_t>(share.samples);
  return problem_.in_flight == InFlight::table ||
         (shape.forward_s[strategy * samples + i] <= shape.forward_s[other * samples + i] &&
          shape.backward_s[strategy * samples + i] <= shape.backward_s[other * samples + i]);
}

double GraphPipeRuns::time_s(const GraphPipeShape& shape, double compute_s,
                             const GraphPipeShare& share, std::size_t strategy, std::int32_t before,
                             std::int32_t after) const {
  const auto times = [&](std::int32_t place) {
    return static_cast<double>(levels_.copies[static_cast<std::size_t>(place)]);
  };
  const double received_bytes = times(levels_.place[strategy]) * (shape.in_bytes + shape.out_bytes);
  const double sent_bytes = times(before) * shape.in_bytes + times(after) * shape.out_bytes;
  const double network_s = std::max(received_bytes, sent_bytes) / share.stage_bytes_per_s;
  return problem_.overlap ? std::max(compute_s, network_s) : compute_s + network_s;
}

std::vector<double> GraphPipeRuns::attained_s(double least_s, double limit_s) const {
  std::vector<double> times_s;
  const auto most = static_cast<std::int32_t>(levels_.copies.size());
  std::vector<GraphPipeRun> runs(runs_of_shape_);
  for (const GraphPipeShape& shape : form_.shapes) {
    price(shape, runs.data());
    const GraphPipeRun* run = runs.data();
    for (const Row& row : rows_) {
      for (const GraphPipeShare& share : row.shares) {
        const double compute_s = run->compute_s;
        double last_s = (run++)->time_s;
        if (last_s >= limit_s) continue;
        if (last_s >= least_s) times_s.push_back(last_s);
        for (std::int32_t pair = 1; pair < most * most; ++pair) {
          const double time =
              time_s(shape, compute_s, share, row.strategy, pair / most, pair % most);
          if (time == last_s || time < least_s || time >= limit_s) continue;
          last_s = time;
          times_s.push_back(time);
        }
      }
    }
  }
  return times_s;
}

std::vector<double> GraphPipeRuns::fastest_s(double least_s, double limit_s) const {
  std::vector<double> times_s;
  const std::size_t levels = devices_.size();
  for (std::size_t i = 0; i < least_s_.size(); ++i) {
    const double time = least_s_[i];
    const bool new_one = i % levels == 0 || time < least_s_[i - 1];
    if (new_one && time >= least_s && time < limit_s) times_s.push_back(time);
  }
  return times_s;
}

double graphpipe_memory_bytes(const GraphPipeShape& shape, std::size_t strategy,
                              const PassGroup& group, std::int64_t replicas,
                              std::int64_t in_flight) {
  const GraphPipeShape::Bytes& bytes = shape.bytes[strategy];
  return graphpipe_memory_bytes(in_flight, replicas, group.micro_batch, bytes.fixed, bytes.stash,
                                bytes.working);
}

}  // namespace braid
