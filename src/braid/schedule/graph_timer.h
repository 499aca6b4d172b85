#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/index.h"
#include "braid/schedule/graph_time.h"

namespace braid {

/// What the timers behind graph_time_s share: one for stages of one chunk, one for interleaving.
class GraphTimer {
 public:
  GraphTimer(const Pipeline& pipeline, GraphWorkspace& workspace)
      : p_(pipeline), w_(workspace), pp_(pipeline.pp), m_(pipeline.num_micro_batches) {}

 protected:
  using Way = GraphWorkspace::Way;
  using Ways = GraphWorkspace::Ways;

  static std::int32_t narrow(std::size_t value) { return static_cast<std::int32_t>(value); }
  /// max of times, in the form that compilers turn into one instruction.
  static double later(double a, double b) { return a > b ? a : b; }

  static std::span<const Way> of(const Ways& ways, std::int32_t chunk) {
    const std::int32_t first = ways.first[at(chunk)];
    return std::span(ways.ways).subspan(at(first), at(ways.first[at(chunk) + 1] - first));
  }

  /// Makes room for ways grouped by `chunk_of`, [way] below `chunks`. w_.grouped[i]: the one that
  /// is the i-th then.
  void group(std::span<const std::int32_t> chunk_of, std::size_t chunks, Ways& ways);

  /// Numbers the links, one for each ordered pair of w_.senders and w_.receivers, as w_.link.
  /// Returns how many there are.
  std::int32_t number_links();

  void start_stages();

  /// End of a stage's first pass, which may have to wait for its parameters.
  double hold_for_parameters(std::int32_t s, double end_s) {
    const double held_s = later(end_s, w_.ready_s[at(s)]);
    w_.stages[at(s)].parameter_wait_s = held_s - end_s;
    return held_s;
  }

  /// Fills in the stages, whose devices are free at `device`; the time of the iteration.
  double finish(const double* device);

  const Pipeline& p_;
  GraphWorkspace& w_;
  const std::int32_t pp_;
  const std::int64_t m_;
};

/// graph_time_s of an interleaved pipeline; negative when a transfer leads back.
double interleaved_graph_time_s(const Pipeline& pipeline, GraphWorkspace& workspace);

}  // namespace braid
