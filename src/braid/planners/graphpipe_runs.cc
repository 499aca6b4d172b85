#include "braid/planners/graphpipe_runs.h"

#include <algorithm>

namespace braid {
namespace {

GraphPipeRun run_of(const GraphPipeProblem& problem, const GraphPipeShape& shape,
                    const PassGroup& group, std::size_t u) {
  const std::int64_t samples = problem.device_samples[u];
  if (group.micro_batch % samples != 0) return {};
  const std::int64_t devices = group.micro_batch / samples;
  if (devices > std::min(problem.devices, problem.most_stage_devices)) return {};
  if (devices < problem.least_stage_devices) return {};
  const std::int64_t least = problem.in_flight == InFlight::table
                                 ? std::min(group.k * group.micro_batch, problem.batch)
                                 : group.micro_batch;
  if (graphpipe_memory_bytes(shape, group, devices, least) > problem.memory_bytes) return {};
  const auto d = static_cast<double>(devices);
  const double compute_s =
      (shape.forward_s[u] + shape.backward_s[u]) / static_cast<double>(group.micro_batch) +
      2 * (d - 1) / d * shape.gradient_bytes /
          (graphpipe_sync_bytes_per_s(problem, devices) * static_cast<double>(problem.batch));
  const double network_s = (shape.in_bytes + shape.out_bytes) / (problem.bandwidth_bytes_per_s * d);
  return {problem.overlap ? std::max(compute_s, network_s) : compute_s + network_s,
          static_cast<std::int32_t>(devices)};
}

}  // namespace

GraphPipeRuns::GraphPipeRuns(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                             const std::vector<PassGroup>& groups)
    : groups_(groups.size()), samples_(problem.device_samples.size()) {
  runs_.reserve(form.shapes.size() * groups_ * samples_);
  for (const GraphPipeShape& shape : form.shapes) {
    for (const PassGroup& group : groups) {
      for (std::size_t u = 0; u < samples_; ++u) runs_.push_back(run_of(problem, shape, group, u));
    }
  }
}

std::vector<std::size_t> GraphPipeRuns::keeping(double time_s) const {
  std::vector<std::size_t> counts(runs_.size() / samples_);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::size_t u = samples_;
    while (u > 0 && runs_[i * samples_ + u - 1].time_s > time_s) --u;
    counts[i] = u;
  }
  return counts;
}

double graphpipe_memory_bytes(const GraphPipeShape& shape, const PassGroup& group,
                              std::int64_t devices, std::int64_t in_flight) {
  return graphpipe_memory_bytes(in_flight, devices, group.micro_batch, shape.fixed_bytes,
                                shape.stash_bytes, shape.working_bytes);
}

}  // namespace braid
