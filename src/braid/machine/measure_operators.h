#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/measure/measurement.h"
#include "braid/machine/sample_operators.h"

namespace braid {

/// How a machine is split into devices.
struct DeviceSplit {
  std::int64_t devices = 1, threads = 1;  ///< Threads of each device.
};

/// An operator and how long it takes on one device while all devices run it.
struct MeasuredOperator {
  SampleOperator operation;
  double time_s = 0;
  double backward_s = 0;  ///< Of its gradients; 0: not measured.
};

struct OperatorMeasurements {
  std::vector<MeasuredOperator> operators;
  std::vector<std::string> unmeasured;  ///< Operators that no kernel ran, and why.
};

/// Measures each operator by the fastest kernels of the backends (place_program.h), in as many
/// processes at once as there are devices, so that they share caches, memory and the clock as they
/// will when a plan runs. The time is the mean of the devices'. Where a process fails the operator
/// is unmeasured. `backends` were found for `split.threads`.
OperatorMeasurements measure_operators(std::vector<SampleOperator> operators,
                                       const std::vector<FoundBackend>& backends,
                                       const DeviceSplit& split, const MeasureOptions& options);

}  // namespace braid
