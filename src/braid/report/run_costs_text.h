#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/plan/run_costs.h"

namespace braid {

/// A run's figures with their names, each as people read it: time, goodput, device-hours, price and
/// energy; "-" where one is not known. Tables of several plans have them all.
std::vector<std::pair<std::string, std::string>> run_figures(const RunCosts& costs);

/// Those that are known.
std::vector<std::pair<std::string, std::string>> known_run_figures(const RunCosts& costs);

/// For people: the known figures, one a line, and what they depend on.
std::string run_costs_text(const RunCosts& costs);

}  // namespace braid
