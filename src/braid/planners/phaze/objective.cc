#include "braid/planners/phaze/objective.h"

#include <string>

#include "braid/base/error.h"

namespace braid {

std::string_view name_of(PhazeObjective objective) {
  switch (objective) {
    case PhazeObjective::program:
      return "program";
    case PhazeObjective::simulated:
      return "simulated";
    case PhazeObjective::flush:
      break;
  }
  return "flush";
}

PhazeObjective parse_phaze_objective(std::string_view name) {
  for (const PhazeObjective objective :
       {PhazeObjective::program, PhazeObjective::flush, PhazeObjective::simulated}) {
    if (name == name_of(objective)) return objective;
  }
  throw Error(Where{"", 0, "--objective"}, "unknown objective \"" + std::string(name) + "\"",
              "use flush, simulated or program");
}

}  // namespace braid
