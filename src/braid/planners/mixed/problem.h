#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "braid/plan/sync_rates.h"
#include "braid/search/partition.h"

namespace braid {

/// How a stage may run its layers; the variants of a config differ in what memory they need.
struct MixedVariant {
  std::span<const ChainLayer> layers;  ///< They outlive the problem.
  MemoryForm memory;
  /// Trades time for memory: not to be taken where a variant that does not fits.
  bool saves_memory = false;
};

/// A stage on devices of certain kinds, whichever layers it takes.
struct MixedConfig {
  std::vector<std::int32_t> takes;  ///< Devices of each kind.
  std::vector<MixedVariant> variants;
};

/// What stages may do and cost where they lie. `used` is what the stages behind a stage have taken
/// of each kind of device: from the last stage to the first each takes the next ones of the kinds
/// that it is on.
class MixedCosts {
 public:
  using Used = std::span<const std::int32_t>;

  virtual ~MixedCosts() = default;

  /// Whether a stage of this config may lie there.
  virtual bool allows(Used used, std::int32_t config) = 0;
  /// One direction, from a stage of config `above` to the one behind it, of config `below`, which
  /// lies at `used`.
  virtual double handover_s(Used used, std::int32_t below, std::int32_t above,
                            std::int32_t cut_class) = 0;
  virtual SyncRates rates(Used used, std::int32_t config, std::int32_t variant) = 0;
  /// Whether the first and the last layer share parameters.
  virtual bool exchanges() const { return false; }
  /// What summing their gradients takes a first stage of config `first`, which lies at `used` and
  /// is not the only one, with a last one of config `last`, run in whichever variant.
  virtual double exchange_s(Used /*used*/, std::int32_t /*first*/, std::int32_t /*variant*/,
                            std::int32_t /*last*/) {
    return 0;
  }
  /// What no first stage on the devices that config `first` takes there has to exchange less with a
  /// last one on the devices that config `last` takes, whatever configs on them the two have.
  virtual double least_exchange_s(Used /*used*/, std::int32_t /*first*/, std::int32_t /*last*/) {
    return 0;
  }
  /// What working all these out has taken so far, as stages that are tried in that time.
  virtual std::int64_t work() const { return 0; }
};

/// A pipeline of stages in any number, of any of the configs, on devices of several kinds.
struct MixedProblem {
  std::int64_t micro_batches = 1;
  std::vector<std::int32_t> capacity;  ///< Devices of each kind.
  std::vector<MixedConfig> configs;
  std::int32_t least_stages = 1;
  std::int32_t most_stages = std::numeric_limits<std::int32_t>::max();

  /// [layer]: those behind it that it hands something to. Empty: each to the next, and perhaps to
  /// more. Else stages need not follow one another, and what is said of paths through all of them
  /// need not hold.
  std::vector<std::vector<std::int32_t>> readers;

  /// Cuts that hand over the same bytes are of one class; [layer behind the cut].
  std::vector<std::int32_t> cut_class;
  std::int32_t cut_classes = 1;

  MixedCosts* costs = nullptr;  ///< Outlives the problem.
};

struct MixedStage {
  std::int32_t config = 0, variant = 0;
  std::int32_t begin = 0, end = 0;  ///< Layers.
  std::vector<std::int32_t> used;   ///< By the stages behind it.
  friend bool operator==(const MixedStage&, const MixedStage&) = default;
};

/// Stages in pipeline order and what bounds their time.
struct MixedPipeline {
  std::vector<MixedStage> stages;
  double base_s = 0;  ///< All stages' times, handovers both ways, the first stage's head and tail.
  double excess_s = 0;  ///< The longest detour of any stage, OneFOneBTurns::excess_s.
  double end_s = 0;     ///< Of the path that is longest with its stage's own head and tail.
  double bound_s() const { return std::max(base_s + excess_s, end_s); }
};

}  // namespace braid
