#pragma once

#include <string>
#include <vector>

#include "braid/cli/job_options.h"
#include "braid/evaluate/stated_plan.h"
#include "braid/plan/trainer_file.h"

namespace braid {

/// What says of a configuration what the options of a job (its degrees, …) do not.
struct StatedOptions {
  std::string layout, offload, order;
};

void add_stated_options(Verb& verb, StatedOptions& options);

/// The configuration that the options state. What they leave out is as the trainer usually has it;
/// `not_given` gets a line for each of these. Throws Error naming the option.
StatedConfiguration stated_configuration(const JobOptions& job, const StatedOptions& options,
                                         const TrainerUsual& usual, const Graph& graph,
                                         std::vector<std::string>& not_given);

}  // namespace braid
