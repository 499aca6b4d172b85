#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/base/document.h"

namespace braid {

//   batch,m,n,k,one_core,all_cores
//   1,2048,1024,1024,40960,40960

/// What another mapper says that `batch` GEMMs of m × k with k × n take, in cycles of the chip's
/// clock, in place of ours.
struct StatedLatency {
  std::array<std::int64_t, 4> shape = {1, 1, 1, 1};  ///< Batch, m, n and k.
  std::optional<double> one_core, all_cores;         ///< On that many tensor cores; nullopt: ours.
  friend bool operator==(const StatedLatency&, const StatedLatency&) = default;
};

/// Latencies by rising shape, each shape once.
using StatedLatencies = std::vector<StatedLatency>;

/// The entry of a shape; null: there is none. Logarithmic.
const StatedLatency* find_latency(std::span<const StatedLatency> latencies,
                                  const std::array<std::int64_t, 4>& shape);

/// Reads a table with the columns m, n, k, one_core and all_cores, and perhaps batch (default 1);
/// an empty field of the last two leaves it to our mapper. Throws Error naming the line for other
/// columns, sizes that are no whole numbers from 1 to 2^40, cycles that are not above 0, rows with
/// neither, and shapes that come twice. `file` is for messages.
StatedLatencies parse_latencies(const std::string& text, const std::string& file);

/// [[batch, m, n, k, one_core, all_cores], …] by rising shape, null for nullopt. Throws Error as
/// parse_latencies does.
StatedLatencies latencies_from_json(const Value& value);

}  // namespace braid
