#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/json.h"
#include "braid/cli/profile_options.h"
#include "braid/planners/phaze/placement.h"
#include "braid/planners/phaze/problem.h"

namespace braid {

/// One profile, memory size and choice of kept or recomputed activations.
struct PhazeRun {
  std::string profile;
  PhazeProblem problem;
  std::optional<PhazePlacement> placement;
  std::optional<PhazeShortfall> shortfall;  ///< Where there is no placement and it is asked for.
  double time_s = 0;                        ///< By the objective.
  double simulated_s = 0;
  double time_unit_s = 1;  ///< Of the profile.
  bool of_phaze = true;
  std::string assumption;
};

/// The runs that the command line names, and the one of least time.
struct PhazeAnswer {
  PhazeOptions options;
  std::vector<PhazeRun> runs;
  std::size_t best = 0;
  double wall_s = 0;
};

/// Another plan for the problem of a run, to compare with.
struct PhazeReference {
  PhazePlacement placement;
  double own_s = 0;  ///< What the program says that it takes; 0: nothing.
  double simulated_s = 0;
  bool fits = false;
};

/// What the best run is compared with, where there is any.
struct PhazeReferences {
  std::optional<PhazeReference> expert, program;
};

/// Whether costs are those of the published program.
bool by_program(const ProfileOptions& options);

/// What `braid plan --planner phaze --profile --json` prints.
Json phaze_json(const ProfileOptions& options, const PhazeAnswer& answer,
                const PhazeReferences& references);

/// The same for people, of an answer with a placement.
std::string phaze_text(const ProfileOptions& options, const PhazeAnswer& answer,
                       const PhazeReferences& references);

}  // namespace braid
