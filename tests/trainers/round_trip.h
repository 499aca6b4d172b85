#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/evaluate/stated_plan.h"
#include "braid/frontend/model.h"
#include "braid/system/system.h"

namespace braid::test {

/// A job and a configuration of it that are written for a trainer and read back.
struct RoundTripCase {
  std::string model, cluster;  ///< Names of the catalogues, "dgx-h100:16".
  std::string precision = "bf16";
  StatedConfiguration stated;
  std::int64_t global_batch = 64;
  std::int64_t seq_len = 2048;
};

/// What became of one case.
struct RoundTripOutcome {
  /// Neither the plan nor the trainer takes the configuration: what they say; empty: it was
  /// written.
  std::string refused;
  /// What is not as it was: the configuration, the layers of the chunks, time or memory, and
  /// arguments that the reader does not know. Empty: all is equal bit for bit.
  std::string difference;
};

/// Plans the case for `trainer`, exports it to `target`, reads that, and plans what was read; where
/// the file says the model's sizes, also of the model that they make. The
/// order of axes that have one rank, the schedule of one stage, and the ZeRO stage of one rank say
/// nothing and do not count. Where a warning says that the file has another order of ranks, that is
/// what comes back. DeepSpeed's file says neither pipeline stages nor which layers recompute,
/// Accelerate's no batches, and recomputation only with FSDP: these are given beside it, as options
/// would.
RoundTripOutcome round_trip(const RoundTripCase& one, const std::string& trainer,
                            const std::string& target);

/// Cases of every model of the zoo that has a sequence, on clusters with nodes of 4 and 8 and with
/// and without Transformer Engine: degrees, recomputation, ZeRO stages, precisions, offloads.
std::vector<RoundTripCase> round_trip_cases();

/// Whom a failed expectation is about.
std::string name_of(const RoundTripCase& one);

}  // namespace braid::test
