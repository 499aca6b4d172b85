#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/schedule/timed_graph.h"
#include "braid/schedule/work_order.h"

namespace braid {

/// Something that crossed an edge between two devices.
struct PartEvent {
  double start_s = 0, end_s = 0;
  std::int32_t edge = 0;
  bool backward = false;  ///< A gradient.
  std::int64_t part = 0;  ///< Counted in parts of the edge, over all rounds.
  friend bool operator==(const PartEvent&, const PartEvent&) = default;
};

/// Hears of everything that a run does: of a device in its order, of each work before the parts
/// that it starts.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void worked(std::size_t device, const Work& work, double start_s, double end_s) = 0;
  virtual void sent(const PartEvent& part) = 0;
};

/// What a device takes for work of that kind.
inline double work_s(const StageCost& cost, WorkKind kind) {
  switch (kind) {
    case WorkKind::forward:
      return cost.forward_s;
    case WorkKind::backward:
      return cost.backward_s();
    case WorkKind::input_gradient:
      return cost.input_gradient_s;
    case WorkKind::weight_gradient:
      return cost.weight_gradient_s;
    case WorkKind::reduce_gradients:
      return cost.reduce_gradients_s;
    case WorkKind::optimizer:
      return cost.optimizer_s;
  }
  return 0;
}

/// What a run has beside a timed graph and an order.
struct RunSettings {
  /// Micro-batches are handed over whole, whatever their sizes: the parts of an edge are the
  /// sender's micro-batches, and all of the receiver's that share samples with one wait for it.
  bool whole_micro_batches = false;
  std::span<const double> backward_transfer_s = {};  ///< [edge]: of gradients; empty: as forward.
  RunObserver* observer = nullptr;
};

struct DeviceProgress {
  std::size_t done = 0;         ///< Works, of its order.
  double start_s = 0;           ///< Of its first.
  double free_s = 0;            ///< End of its passes and optimizer steps.
  double reduced_s = 0;         ///< End of its reductions.
  double parameter_wait_s = 0;  ///< By which parameters delayed first forward passes.
};

/// The first micro-batch (or part) of `others` samples that shares samples with the k-th of
/// `samples`.
inline std::int64_t first_sharing(std::int64_t k, std::int64_t samples, std::int64_t others) {
  return samples == others ? k : k * samples / others;
}

/// Calls visit(i) for all that do, ascending.
template <class Visit>
void for_each_sharing(std::int64_t k, std::int64_t samples, std::int64_t others,
                      const Visit& visit) {
  if (samples == others) return visit(k);
  std::int64_t i = first_sharing(k, samples, others);
  for (; i * others < (k + 1) * samples; ++i) visit(i);
}

/// The simulation of every order of passes: each device does what is next as soon as what it needs
/// is there (docs/timeline.md, docs/schedules.md, "When things start"), as far as it gets. The
/// order has every pass of the graph once, on its stage's device; any micro-batch may come first.
/// [device]. Deterministic; linear in passes and parts.
std::vector<DeviceProgress> run_order(const TimedGraph& timed, const WorkOrder& order,
                                      const RunSettings& form = {});

/// Throws Error: the work, of a stage that users count from 1, waits for ever. `detail`: which one
/// it is beside that.
[[noreturn]] void throw_stuck(std::int64_t stage, const Work& work, const std::string& detail = "");

/// The first of the works that wait for ever, null when `run` came to its end.
const Work* stuck_at(const WorkOrder& order, std::span<const DeviceProgress> run);

}  // namespace braid
