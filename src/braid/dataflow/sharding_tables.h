#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/chip/tile_curve.h"
#include "braid/dataflow/dataflow_job.h"
#include "braid/dataflow/shard_messages.h"
#include "braid/dataflow/sharding.h"

namespace braid {

/// Every way to divide each kernel of a job's layer, and what it costs, looked up fast.
struct ShardingTables {
  struct Option {
    KernelDims dims;
    KernelShare share;
    double alone_s = 0;     ///< Computing with the whole chip.
    std::size_t curve = 0;  ///< Its tile curve, with whole tiles.
  };
  struct Tensor {
    std::size_t from = 0, to = 0;
    double buffers = 2;
    std::vector<ShardMessage> changes;  ///< By option of the writer, then of the reader.
  };

  /// At most 64 options for a kernel.
  ShardingTables(const DataflowSetup& setup, const JobRules& job, const MappingRules& mapping);

  const ShardMessage& change(const Tensor& tensor, std::size_t from, std::size_t to) const {
    return tensor.changes[from * options[tensor.to].size() + to];
  }
  /// The option that is a sharding of the kernel.
  std::size_t option_of(std::size_t kernel, const KernelDims& dims) const;

  std::vector<std::vector<Option>> options;  ///< By kernel; none is empty.
  std::vector<Tensor> tensors;
  std::vector<TileCurve> curves;  ///< Of all sizes that options leave, each once.
};

/// Shardings that have one of these options for each kernel: a bit mask of options each.
using ShardingBox = std::vector<std::uint64_t>;

/// Work that no sharding of a box has less of, in no kernel, tensor or message: a mapping of any of
/// them takes at least the time that it takes with this work. Messages are counted at the kernel
/// that reads, least over its own options and its writers'. With one option for each kernel it is
/// the work of that sharding, to the last digits of the messages' sums.
struct BoxWork {
  ChipWork work;
  std::vector<TileCurve> curves;  ///< Of the kernels, with whole tiles.
};
BoxWork box_work(const ShardingTables& tables, const ShardingBox& box, const DataflowSetup& setup,
                 const JobRules& job, const MappingRules& mapping);

}  // namespace braid
