#include "braid/cli/measure_trained.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/cli/worker_program.h"
#include "braid/run/process_watch.h"
#include "braid/run/trained_times.h"

namespace braid {
namespace {

/// What all processes found together.
TrainedTimes times_of(const TrainedTimesJob& job) {
  const TemporaryFolder folder;
  write_file(trained_times_job_file(folder.path()), trained_times_job_text(job));
  const std::string program = worker_program();
  std::vector<ProcessStart> starts;
  for (std::int64_t p = 0; p < job.processes; ++p) {
    starts.push_back({{program, "measure", folder.path(), std::to_string(p)},
                      fmt::format("measuring process {}", p)});
  }
  const ProcessEnd end = watch_processes(starts, [](std::size_t, const std::string&) {});
  if (!end.failure.empty()) throw Error("this machine cannot be measured: " + end.failure);
  std::vector<TrainedTimes> times;
  for (std::int64_t p = 0; p < job.processes; ++p) {
    times.push_back(read_trained_times(trained_times_file(folder.path(), p)));
  }
  return mean_of(times);
}

TrainedTimesJob job_of(const DeviceSplit& split, std::int64_t samples, double cache_bytes) {
  TrainedTimesJob job;
  job.devices = split.devices;
  job.processes = std::max<std::int64_t>(2, split.devices);
  job.threads = split.threads;
  job.samples = samples;
  job.cache_bytes = cache_bytes;
  return job;
}

}  // namespace

TrainedMachine measure_trained(std::vector<SampleOperator> operators, const DeviceSplit& split,
                               std::int64_t samples, double cache_bytes) {
  TrainedTimesJob job = job_of(split, samples, cache_bytes);
  for (const SampleOperator& each : operators) job.graphs.push_back(each.graph);
  job.batches.assign(job.graphs.size(), 1);
  const TrainedTimes times = times_of(job);
  TrainedMachine machine;
  machine.blas = times.blas;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    machine.operators.push_back(
        {std::move(operators[i]), times.graphs[i].forward_s, times.graphs[i].backward_s});
  }
  for (const BytesTime& each : times.messages)
    machine.messages.push_back({each.bytes, each.time_s});
  for (const BytesTime& each : times.sums) {
    // By a ring every process sends 2 (n - 1) messages of a share of the bytes each.
    const std::int64_t messages = 2 * (job.processes - 1);
    machine.messages.push_back({messages * each.bytes / job.processes, each.time_s, messages});
  }
  return machine;
}

std::vector<TrainedTime> measure_layers(const std::vector<TrainedLayer>& layers,
                                        const DeviceSplit& split, std::int64_t samples,
                                        double cache_bytes) {
  TrainedTimesJob job = job_of(split, samples, cache_bytes);
  for (const TrainedLayer& each : layers) {
    job.graphs.push_back(each.graph);
    job.batches.push_back(each.batch);
  }
  job.largest_bytes = 4;  // Messages are not asked for.
  return times_of(job).graphs;
}

}  // namespace braid
