#include "braid/report/row_lanes.h"

#include <algorithm>

namespace braid {

std::vector<std::size_t> lanes_of(std::size_t rows, const RowEdges& edges) {
  std::vector<std::size_t> lane(rows);
  std::vector<std::size_t> last(rows);  // Row down to which the lane of a row is taken.
  std::vector<bool> continued(rows, false);
  for (std::size_t r = 0; r < rows; ++r) last[r] = r;
  for (const auto& [from, to] : edges) last[from] = std::max(last[from], to);
  for (std::size_t r = 0; r < rows; ++r) {
    std::set<std::size_t> taken;
    std::size_t heir = rows;
    for (std::size_t before = 0; before < r; ++before) {
      const bool feeds = edges.count({before, r}) > 0;
      if (feeds && !continued[before] && heir == rows) {
        heir = before;
        continue;
      }
      if (last[before] > r || (last[before] == r && !feeds)) taken.insert(lane[before]);
    }
    if (heir < rows && taken.count(lane[heir]) == 0) {
      continued[heir] = true;
      lane[r] = lane[heir];
      continue;
    }
    if (heir < rows) taken.insert(lane[heir]);
    while (taken.count(lane[r]) > 0) ++lane[r];
  }
  return lane;
}

}  // namespace braid
