#pragma once

#include <cstdint>
#include <memory>

#include "braid/run/rank_link.h"
#include "braid/serve/cache/decode_trial.h"

namespace braid {

/// Exchanges messages of decoding over a link of ranks, which must outlive it.
std::unique_ptr<DecodeLink> decode_link(RankLink& over, std::int32_t rank, std::int32_t ranks);

/// What steps of a trial by processes took and sent.
struct DecodeRun {
  double step_s = 0;            ///< Least over steps of the slowest process.
  double computing_s = 0;       ///< Least over steps of a process's own CPU time, of the busiest.
  std::int64_t sent_bytes = 0;  ///< By all processes, all steps.
  /// Most that a number differs from one process's, where that was checked.
  double apart = 0;
};

/// Decodes `steps` tokens of each sequence by trial.ranks processes of this machine, forked here
/// and joined by Gloo, each with one thread. `check` decodes all by one process too. Throws
/// std::runtime_error where a process fails. This process must not have used libtorch's threads.
DecodeRun decode_by_processes(const DecodeTrial& trial, DecodeScheme scheme, int steps, bool check);

}  // namespace braid
