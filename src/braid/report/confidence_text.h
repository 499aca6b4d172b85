#pragma once

#include <string>
#include <vector>

#include "braid/plan/outcome.h"
#include "braid/trust/confidence.h"

namespace braid {

/// How sure a candidate's time and memory are, for people: the 80 % intervals, in what the job is
/// beyond all measured runs, and the nearest of these. Lines without their ends; none for a plan
/// whose times are those of a profile.
std::vector<std::string> confidence_lines(const Candidate& candidate);

/// The interval of the time as "1.105 to 1.382 s"; empty where there is none.
std::string interval_text(const Confidence& confidence, const Metrics& metrics);

}  // namespace braid
