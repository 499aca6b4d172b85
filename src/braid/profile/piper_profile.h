#pragma once

#include <cstdint>
#include <string>

#include "braid/base/document.h"
#include "braid/profile/profile.h"

namespace braid {

/// A profile in the format of Piper's published planner (Tarnawski et al. 2021; JSON with `nodes`
/// that have `TMPCs`, and `edges`), with the limits that the file sets; 0: not given.
struct PiperProfile {
  /// Layers renumbered topologically, else in file order. An option's time for a micro-batch, both
  /// passes in one figure, is its forward compute time, in the unit of the file (the format does
  /// not say which: `time_unit_s` is 1); memoryUsageA is its stash, memoryUsageB its fixed_bytes,
  /// parameterSize its gradient_bytes; "activation recomp" is full recomputation. syncTimeFw of a
  /// predecessor is the forward_bytes of the entering edge, syncTimeBw of a successor the
  /// backward_bytes of the leaving edge; zeros are left out.
  Profile profile;
  std::int64_t devices = 0;
  std::int64_t micro_batches = 0;
  double memory_bytes = 0;
  double bandwidth_bytes = 0;  ///< Per time unit.
};

/// Is this a file of that format, and not one of braid's own?
bool is_piper_profile(const Value& root);

/// Throws Error with file, line and key: ids that repeat or that an edge names in vain, edges that
/// repeat or close a cycle, layers without options, negative numbers, re-layouts that do not match
/// the edges.
PiperProfile piper_profile_from_json(const Value& root);

}  // namespace braid
