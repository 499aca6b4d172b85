#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"
#include "braid/trust/confidence.h"

namespace braid {

/// How sure a candidate's time and memory are, for people: the 80 % intervals, in what the job is
/// beyond all measured runs, and the nearest of these. Lines without their ends; none for a plan
/// whose times are those of a profile.
std::vector<std::string> confidence_lines(const Candidate& candidate);

/// "1.105 to 1.382 s"
std::string time_range_text(double least_s, double most_s);

/// "74.7 to 76.5 GiB": with so many decimals that the ends differ; one figure where these are
/// three.
std::string memory_range_text(double least_bytes, double most_bytes);

/// The interval of the time as time_range_text(); empty where there is none.
std::string interval_text(const Confidence& confidence, const Metrics& metrics);

/// Of the other candidates those whose times measured runs do not tell apart from the first one's
/// (ratio_interval): their indices, ascending. None where times are those of a profile.
std::vector<std::size_t> not_told_apart(const std::vector<Candidate>& candidates);

/// The same for people, with how far off ratios are: a line, or nothing where there is none.
std::string not_told_apart_text(const std::vector<Candidate>& candidates);

}  // namespace braid
