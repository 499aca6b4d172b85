#pragma once

#include <cstddef>
#include <cstdint>

#include "braid/serve/cache/decode_step.h"
#include "braid/serve/cache/decode_traffic.h"
#include "braid/serve/cache/decode_trial.h"

namespace braid::test {

/// Bytes that all ranks together send for one step of the trial by decode_traffic()'s rules, in
/// f64, `done` steps after its start: with homes and keepers as they are, not in the mean.
inline double trial_traffic(const DecodeTrial& trial, DecodeScheme scheme, std::int64_t done) {
  const AttentionHeads& heads = trial.heads;
  const DecodeLayer layer{static_cast<double>(heads.query_size()),
                          static_cast<double>(heads.heads),
                          static_cast<double>(heads.kv_heads),
                          static_cast<double>(heads.head_dim),
                          sizeof(double),
                          sizeof(double)};
  DecodeStep step{scheme, trial.home, trial.prefixes};
  for (std::int64_t& place : step.places) place += done;
  double moved = 0;
  for (std::size_t b = 0; b < step.home.size(); ++b) {
    moved += keeper_of(step, b, trial.ranks) != step.home[b] ? 1 : 0;
  }
  const auto batch = static_cast<double>(step.home.size());
  const double devices = trial.ranks;
  return devices * decode_traffic(layer, scheme, devices, batch, DeviceJoint::switched,
                                  batch > 0 ? moved / batch : 0)
                       .total();
}

}  // namespace braid::test
