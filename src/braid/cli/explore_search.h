#pragma once

#include <string>

#include "braid/explore/point_store.h"
#include "braid/explore/space.h"

namespace braid {

/// How `braid explore` shows what a search finds.
struct ExploreSearchOptions {
  std::string out;     ///< Folder for files; empty: none.
  std::string plans;   ///< Folder for the plans of the systems that are listed; empty: none.
  bool joint = false;  ///< Also what choosing the system first and the plan afterwards comes to.
  int hysteresis = 0;  ///< Also what Phaze's rule finds with so many buckets; 0: not.
  bool json = false, progress = false;
};

/// Searches a space that has a search, prints what was found and writes points.csv (all points that
/// were planned), best.csv and index.html. Returns the exit status.
int run_search(const Space& space, PointStore* store, const ExploreSearchOptions& options);

}  // namespace braid
