#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/serve/launch/launch_reader.h"
#include "braid/serve/serving_plan.h"

namespace braid {

/// A service that is stated, as a plan without its times.
struct StatedService {
  ServingPlan plan;
  /// Those of the plan's workers, with the shares of memory and the blocks that their command lines
  /// say. Chunks and sequences at once are in the plan's BatchLimits.
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::string> not_given;  ///< What was taken for what is not said.
};

/// For what a command line leaves open.
struct StatedBasis {
  const ServedModel& model;
  std::int64_t devices = 0;  ///< That there are: as many workers as fit.
  std::string precision;     ///< Of the user; empty: as the line, the model's name or bf16 has it.
};

/// Throws Error where degrees do not divide the model (naming `file`), or where the workers take
/// more devices than there are.
StatedService stated_service(const LaunchedService& launched, const StatedBasis& basis,
                             const std::string& file);

}  // namespace braid
