#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// What processes are told to measure together: layers as `braid run` trains them, and messages.
struct TrainedTimesJob {
  std::vector<Graph> graphs;  ///< Of one layer each, measured by all of the first `devices`.
  std::vector<std::int64_t> batches;  ///< By graph: so many times its samples at once.
  std::int64_t processes = 2;
  std::int64_t devices = 2;
  std::int64_t threads = 1;  ///< Of each process.
  std::int64_t samples = 11;
  double cache_bytes = 0;  ///< The machine's largest cache; 0: not known.
  std::int64_t largest_bytes = std::int64_t{16} << 20;  ///< Of a message.
  double timeout_s = 300;
};

/// A pass forward that keeps what gradients need, and the pass back. Medians.
struct TrainedTime {
  double forward_s = 0, backward_s = 0;
  friend bool operator==(const TrainedTime&, const TrainedTime&) = default;
};

struct BytesTime {
  std::int64_t bytes = 0;
  double time_s = 0;
  friend bool operator==(const BytesTime&, const BytesTime&) = default;
};

/// What a process found. Of messages: each process sends to the next of a ring while it receives;
/// of sums: an all-reduce over all processes.
struct TrainedTimes {
  std::vector<TrainedTime> graphs;  ///< Empty where the process only took part in messages.
  std::vector<BytesTime> messages, sums;
  std::string blas;  ///< What computed the GEMMs (LoadedBlas); empty where that is not known.
  friend bool operator==(const TrainedTimes&, const TrainedTimes&) = default;
};

// Files in the processes' folder.
std::string trained_times_job_file(const std::string& folder);
std::string trained_times_file(const std::string& folder, std::int64_t process);

std::string trained_times_job_text(const TrainedTimesJob& job);
/// Throws Error.
TrainedTimesJob read_trained_times_job(const std::string& file);

std::string trained_times_text(const TrainedTimes& times);
/// Throws Error.
TrainedTimes read_trained_times(const std::string& file);

/// Means over processes. Precondition: there are some, and they measured the same.
TrainedTimes mean_of(const std::vector<TrainedTimes>& times);

}  // namespace braid
