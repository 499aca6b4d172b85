#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "braid/search/partition.h"

namespace braid {

/// What data parallelism costs a stage with `dense` and `expert` parameters on each device, at the
/// least: bandwidth alone, in seconds for each of them.
struct MixedRates {
  struct PerParameter {
    double dense = 0, expert = 0;
    double of(double dense_parameters, double expert_parameters) const {
      return dense_parameters * dense + expert_parameters * expert;
    }
  };
  PerParameter gather;  ///< Once, before the first forward pass and hidden behind its last part.
  PerParameter reduce;  ///< Once, behind the last backward pass and hidden behind its first part.
  PerParameter optimizer;          ///< After that.
  double optimizer_s = 0;          ///< Whatever the parameters.
  PerParameter forward, backward;  ///< In every pass, hidden behind its layers (ZeRO-2 and 3).
  double overlap_loss = 0;         ///< Share of what hides behind layers that is lost all the same.
};

/// One way to run the layers of a stage; ways of a form differ in what memory they need.
struct MixedWay {
  std::vector<ChainLayer> layers;
  MemoryForm memory;
  /// Trades time for memory: not to be taken where a way that does not fits.
  bool saves_memory = false;
};

/// A stage on devices of certain kinds, whichever layers it takes.
struct MixedForm {
  std::vector<std::int32_t> takes;  ///< Devices of each kind.
  std::vector<MixedWay> ways;
};

/// A pipeline of stages in any number, of any of the forms, on devices of several kinds. From the
/// last stage to the first each takes the next devices of the kinds that it is on; `used` below is
/// what the stages behind it have taken of each kind.
struct MixedProblem {
  std::int64_t micro_batches = 1;
  std::vector<std::int32_t> capacity;  ///< Devices of each kind.
  std::vector<MixedForm> forms;
  std::int32_t least_stages = 1;
  std::int32_t most_stages = std::numeric_limits<std::int32_t>::max();

  /// [layer]: those behind it that it hands something to. Empty: each to the next, and perhaps to
  /// more. Else stages need not follow one another, and what is said of paths through all of them
  /// need not hold.
  std::vector<std::vector<std::int32_t>> readers;

  /// Cuts that hand over the same bytes are of one class; [layer behind the cut].
  std::vector<std::int32_t> cut_class;
  std::int32_t cut_classes = 1;

  /// Whether a stage of this form may lie there.
  std::function<bool(std::span<const std::int32_t> used, std::int32_t form)> allows;
  /// One direction, from a stage of form `above` to the one behind it, of form `below`, which lies
  /// at `used`.
  std::function<double(std::span<const std::int32_t> used, std::int32_t below, std::int32_t above,
                       std::int32_t cut_class)>
      handover_s;
  std::function<MixedRates(std::span<const std::int32_t> used, std::int32_t form, std::int32_t way)>
      rates;
  /// What summing the gradients of parameters that the first and the last layer share takes a first
  /// stage of form `first`, which lies at `used` and is not the only one, with a last one of form
  /// `last`, run in whichever way. Empty: nothing.
  std::function<double(std::span<const std::int32_t> used, std::int32_t first, std::int32_t way,
                       std::int32_t last)>
      exchange_s;
  /// What no first stage on the devices that form `first` takes there has to exchange less with a
  /// last one on the devices that form `last` takes, whatever forms on them the two have. Empty:
  /// not known.
  std::function<double(std::span<const std::int32_t> used, std::int32_t first, std::int32_t last)>
      least_exchange_s;
};

struct MixedStage {
  std::int32_t form = 0, way = 0;
  std::int32_t begin = 0, end = 0;  ///< Layers.
  std::vector<std::int32_t> used;   ///< By the stages behind it.
  friend bool operator==(const MixedStage&, const MixedStage&) = default;
};

/// Stages in pipeline order and what bounds their time.
struct MixedPipeline {
  std::vector<MixedStage> stages;
  double base_s = 0;  ///< All stages' times, handovers both ways, the first stage's head and tail.
  double excess_s = 0;  ///< The longest detour of any stage, see stage_excess_s.
  double end_s = 0;     ///< Of the path that is longest with its stage's own head and tail.
  double bound_s() const { return std::max(base_s + excess_s, end_s); }
};

}  // namespace braid
