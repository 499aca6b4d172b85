#pragma once

#include <algorithm>
#include <cstdint>

#include "braid/plan/stash_peak.h"

namespace braid {

/// What a device holds while passes come and go: state that stays, what stays on the device of each
/// stash in flight, and slots for stashes on their way to or from the host.
class HeldStashes {
 public:
  /// Of one more stage on the device: what stays, and what one of its stashes keeps on the host.
  void add_stage(double fixed_bytes, double offloaded_bytes) {
    fixed_bytes_ += fixed_bytes;
    offloaded_bytes_ = std::max(offloaded_bytes_, offloaded_bytes);
  }
  void take(double kept_bytes) {
    kept_bytes_ += kept_bytes;
    ++stashes_;
  }
  /// Frees part of a stash; the last part with drop().
  void shrink(double kept_bytes) { kept_bytes_ -= kept_bytes; }
  void drop(double kept_bytes) {
    shrink(kept_bytes);
    if (--stashes_ == 0) kept_bytes_ = 0;  // Rounding leaves no residue behind.
  }
  double bytes() const {
    return fixed_bytes_ + kept_bytes_ + slot_bytes(offloaded_bytes_, static_cast<double>(stashes_));
  }

 private:
  double fixed_bytes_ = 0, kept_bytes_ = 0;
  double offloaded_bytes_ = 0;  ///< Of one stash.
  std::int64_t stashes_ = 0;
};

}  // namespace braid
