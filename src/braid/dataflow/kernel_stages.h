#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/mapping.h"

namespace braid {

/// What a kernel asks of the stage of a pipeline that runs it, in seconds a micro-batch.
struct StageKernel {
  double compute_s = 0, memory_s = 0, network_s = 0;
  bool backward = false;
  friend bool operator==(const StageKernel&, const StageKernel&) = default;
};

/// Kernel `to` is on the same stage as `from` or a later one, and each stage between hands
/// `output` on, whichever way it goes.
struct StageTensor {
  std::int32_t from = 0, to = 0;
  std::int32_t output = 0;
};

/// Kernels to be split among the stages of a pipeline, which stand in a row.
struct StageJob {
  std::vector<StageKernel> kernels;
  std::vector<StageTensor> tensors;  ///< A directed acyclic graph.
  std::vector<double> message_s;     ///< To hand each output on to a neighbour.
  std::int64_t stages = 1;
  PartitionOverlap overlap = PartitionOverlap::all;
  /// An output is handed on once for all its readers; false: once for each. All tensors of one
  /// begin or end at one kernel.
  bool share_messages = true;
};

/// Forward kernels run on stages [0, forward_end), backward ones on [backward_begin, stages): the
/// two halves, of an odd number both with the one in the middle. All stages without backward
/// kernels.
struct StageHalves {
  std::int64_t forward_end = 1, backward_begin = 0;
};
StageHalves stage_halves(const StageJob& job);

struct StageTime {
  double compute_s = 0, memory_s = 0, network_s = 0;
  double message_s = 0;  ///< Of what it hands on, its own and what passes through.
  double time_s = 0;
};

/// Times of the stages of a partition: sums over the kernels of each; a tensor is handed on by each
/// stage from its writer's to the one before its reader's (DFModel, section IV-B: matrix L). A
/// stage takes the longest of the four (equation 7), with memory traffic beside the paper's three;
/// without overlap their sum, with compute_memory max(compute, memory) + network + messages.
std::vector<StageTime> stage_times(const StageJob& job, std::span<const std::int32_t> stage_of);

struct KernelStages {
  std::vector<std::int32_t> stage_of;  ///< For each kernel; tensors go to the same or a later one.
  double time_s = 0;                   ///< Of the slowest stage.
  double lower_bound_s = 0;            ///< No partition's slowest stage takes less.
  bool optimal = true;                 ///< Within a part in 1e9.
  std::int64_t sets = 0;               ///< Sets of kernels looked at.
};

/// The partition whose slowest stage is fastest; stages may be empty.
///
/// Begins with the best cuts of linear orders, each exact by dynamic programming. Then, between
/// their time and a bound, by halves: is there a partition within a time? Downsets are reached
/// stage by stage, each as early as it can be, since a stage may stand idle; the least time that
/// was rejected is the next bound. At the end the partition is optimal, or `most_sets` sets of
/// kernels were looked at and lower_bound_s says how much better another could be.
KernelStages find_stages(const StageJob& job, std::int64_t most_sets = 300'000);

}  // namespace braid
