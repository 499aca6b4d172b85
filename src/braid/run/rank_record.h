#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/run/rank_engine.h"

namespace braid {

/// What a rank leaves behind of a run.
struct RankRecord {
  std::vector<double> losses;             ///< [iteration]
  std::vector<RankIteration> iterations;  ///< The last of them, up to kRecordedIterations.
  double peak_memory_bytes = 0;           ///< Of the process, at its fullest (VmHWM).
};
inline constexpr std::int64_t kRecordedIterations = 32;

std::string rank_record_text(const RankRecord& record);
/// Throws Error.
RankRecord read_rank_record(const std::string& file);

}  // namespace braid
