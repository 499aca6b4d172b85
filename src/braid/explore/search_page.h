#pragma once

#include <string>

#include "braid/explore/system_search.h"

namespace braid {

/// One self-contained page of what a search found: the best systems, what was planned as a plot
/// over price and power with the Pareto-optimal of it marked, and maps of what the architectures
/// reach or at most reach, relative to the best.
std::string search_page(const Space& space, const SystemSearchResult& found);

}  // namespace braid
