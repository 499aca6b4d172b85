#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/trust/evidence.h"
#include "braid/trust/interval.h"

namespace braid {

/// How well a plan's time and memory are known, and from what.
struct Confidence {
  std::optional<ErrorInterval> time, memory;  ///< Nullopt: nothing tells.
  std::string memory_from;  ///< "22 runs on b200": whose peaks the memory's interval depends on.
  /// In what the job is beyond all measured runs, a clause each ("no measured run on more than 512
  /// h100-sxm").
  std::vector<std::string> beyond;
  std::vector<RunError> nearest;  ///< At most three, of different models, clusters or sources.
};

Confidence confidence_of(const JobTraits& job, const Evidence& runs = evidence());

/// Of a plan whose layers' times are estimated; nullopt for one that depends on a profile.
std::optional<Confidence> confidence_of(const Plan& plan, const Metrics& metrics);

}  // namespace braid
