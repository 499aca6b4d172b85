#pragma once

#include <vector>

#include "braid/base/infinity.h"
#include "braid/plan/chain_layer.h"
#include "braid/plan/gradient_placeholders.h"
#include "braid/plan/per_parameter.h"
#include "braid/plan/stash_peak.h"

namespace braid {

struct DataParallelContext;

/// Bytes of parameter state on one device for each parameter of a stage, by kind: divided by the
/// ZeRO stage (Rajbhandari et al. 2020, §5), on the device or in the host's memory.
struct StateBytes {
  PerParameter weights, gradients, optimizer;
  /// For each parameter of the stage's largest layer: copies that are whole while it runs.
  double per_largest_layer_parameter = 0;
  bool weights_on_host = false, optimizer_on_host = false;
};
StateBytes state_bytes_of(const DataParallelContext& context);

/// Device memory of a stage as a linear form in what its layers add up to; the same figure as
/// memory_of().device_total().
struct MemoryForm {
  double per_dense_parameter = 0, per_expert_parameter = 0;  ///< Bytes of all state.
  double per_largest_layer_parameter = 0;                    ///< Gathered copies.
  double available_bytes = 0;
  double host_per_dense_parameter = 0, host_per_expert_parameter = 0;  ///< Of what is offloaded.
  double host_available_bytes = kInfinity;
  /// [shape of weights]: of a gradient placeholder; null: there are none.
  const std::vector<double>* placeholder_bytes = nullptr;

  friend bool operator==(const MemoryForm&, const MemoryForm&) = default;
};
/// The sum of state_bytes_of() by where it lies. The device's share of host memory is that of the
/// context's chip.
MemoryForm memory_form(const DataParallelContext& context, double available_bytes);

/// What does not depend on how many micro-batches are in flight.
inline double standing_bytes(const RunSums& sums, const MemoryForm& form) {
  return sums.dense_parameters * form.per_dense_parameter +
         sums.expert_parameters * form.per_expert_parameter +
         sums.largest_layer_parameters * form.per_largest_layer_parameter + sums.working_bytes +
         sums.fixed_bytes +
         (form.placeholder_bytes == nullptr
              ? 0
              : placeholder_bytes(sums.weight_shapes, *form.placeholder_bytes));
}
inline double device_bytes(const RunSums& sums, double in_flight, const MemoryForm& form) {
  return standing_bytes(sums, form) + (sums.stash_bytes - sums.offloaded_bytes) * in_flight +
         slot_bytes(sums.offloaded_bytes, in_flight);
}
inline double standing_host_bytes(const RunSums& sums, const MemoryForm& form) {
  return sums.dense_parameters * form.host_per_dense_parameter +
         sums.expert_parameters * form.host_per_expert_parameter;
}
inline double host_bytes(const RunSums& sums, double in_flight, const MemoryForm& form) {
  return standing_host_bytes(sums, form) + sums.offloaded_bytes * in_flight;
}
/// Whether the run fits the device's memory, and what it offloads its share of the host's.
inline bool fits(const RunSums& sums, double in_flight, const MemoryForm& form) {
  return device_bytes(sums, in_flight, form) <= form.available_bytes &&
         host_bytes(sums, in_flight, form) <= form.host_available_bytes;
}

}  // namespace braid
