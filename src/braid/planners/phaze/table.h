#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/graph/downsets.h"
#include "braid/planners/phaze/placement.h"
#include "braid/planners/phaze/stage.h"
#include "braid/search/downset_lattice.h"

namespace braid {

/// The ways to cut a layer graph in two with, beside the lattice, all pairs of cuts between which a
/// stage may lie.
struct PhazeLattice : DownsetLattice {
  std::vector<DownsetPair> pairs;  ///< Sorted by inner.
};
/// All when options allow so many, else those of order_lattice(). Throws Error when even these are
/// too many.
PhazeLattice phaze_lattice(const PhazeProblem& problem, const PhazeOptions& options);

/// A set of layers between two cuts, run as one stage. Loads as PhazeStageCost has them.
struct PhazeCandidate {
  std::uint32_t inner = 0, outer = 0;  ///< Cuts.
  std::int32_t branches = 1;
  std::int32_t most_from_end = 0;  ///< Memory allows it as the s-th stage from the end up to here.
  std::int64_t devices = 1;
  double load_s = 0, last_load_s = 0;
  double backward_s = 0, last_backward_s = 0;
  double gradients_s = 0;  ///< weight_bytes / bandwidth.
};

/// Candidates that fit memory somewhere, with one width; sorted by inner cut.
struct PhazeCandidates {
  std::vector<PhazeCandidate> all;
  std::vector<std::size_t> offset;  ///< By inner cut, one more than there are cuts.
  /// Whether those from each cut come by rising outer cuts, loads and devices and falling
  /// most_from_end, as in nearly all linear graphs: where one is too much, all behind it are.
  bool rising = false;

  std::span<const PhazeCandidate> from(std::size_t cut) const {
    return std::span(all).subspan(offset[cut], offset[cut + 1] - offset[cut]);
  }
};
/// What PhazeCandidates::rising says of sorted candidates.
bool is_rising(const PhazeCandidates& candidates);

/// `branches` only for graphs that are not linear.
PhazeCandidates phaze_candidates(const PhazeProblem& problem, const PhazeWidth& width,
                                 const PhazeLattice& lattice, bool branches);

/// The candidate of a stage that fits memory as the last stage.
PhazeCandidate phaze_candidate(const PhazeProblem& problem, const PhazeStageCost& cost,
                               std::size_t inner, std::size_t outer, std::int32_t branches);

/// Least longest load of the layers behind a cut, for what it takes in devices.
struct PhazeEntry {
  std::int64_t devices = 0;
  double longest_s = 0;

  static bool no_worse(const PhazeEntry& a, const PhazeEntry& b) {
    return a.devices <= b.devices && a.longest_s <= b.longest_s;
  }
};

/// For s stages behind each cut: the undominated entries, by rising devices (falling longest_s).
class PhazeTable {
 public:
  PhazeTable(const PhazeCandidates& candidates, std::size_t cuts, std::int64_t most_stages,
             std::int64_t most_devices);

  std::int64_t stages() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  std::span<const PhazeEntry> at(std::int64_t stages, std::size_t cut) const {
    const auto& offset = offsets_[static_cast<std::size_t>(stages)];
    return std::span(entries_[static_cast<std::size_t>(stages)])
        .subspan(offset[cut], offset[cut + 1] - offset[cut]);
  }
  /// Of all layers; infinity when `devices` are too few.
  double least_longest_s(std::int64_t stages, std::int64_t devices) const;

 private:
  std::vector<std::vector<PhazeEntry>> entries_;  ///< [stages]
  std::vector<std::vector<std::size_t>> offsets_;
};

}  // namespace braid
