#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "braid/search/partition.h"

namespace braid {

/// partition_one_f_one_b for many pipelines and memories over one chain: sums over the layers are
/// made once, and places of the stages once for each pipeline.
class OneFOneBPartitioner {
 public:
  explicit OneFOneBPartitioner(std::span<const ChainLayer> layers);  ///< Which must outlive it.
  ~OneFOneBPartitioner();
  OneFOneBPartitioner(OneFOneBPartitioner&& other) noexcept;
  OneFOneBPartitioner& operator=(OneFOneBPartitioner&& other) noexcept;
  OneFOneBPartitioner(const OneFOneBPartitioner&) = delete;
  OneFOneBPartitioner& operator=(const OneFOneBPartitioner&) = delete;

  /// Handover times and micro-batches of the splits from here on.
  void set_pipeline(const Handovers& handovers, std::int64_t micro_batches);

  /// The best split for this pipeline. `least_excess_s`: the excess of that within more memory, if
  /// known.
  std::optional<Partition> within(const MemoryForm& memory, double least_excess_s = 0);

 private:
  class Chain;
  std::unique_ptr<Chain> chain_;
};

}  // namespace braid
