#pragma once

#include <string>
#include <vector>

namespace braid {

/// A part of a picture.
struct PlotBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool touches(const PlotBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// A line of text in 12 px whose base line begins at (x, y).
PlotBox text_box(double x, double y, const std::string& text);

/// The middle of a mark, and what may stand beside it: the best first, the last in any case.
struct LabelledSpot {
  double x = 0, y = 0;
  std::vector<std::string> texts;
};

struct PlotLabel {
  double x = 0, y = 0;  ///< Left end of the base line.
  std::string text;
  bool has_leader =
      false;  ///< A line from the mark to (end_x, end_y), where the label is not near.
  double mark_x = 0, mark_y = 0, end_x = 0, end_y = 0;
};

/// A label for each spot, in their order, inside of the plot, where it touches no other label and
/// nothing of `taken` (marks, other texts), as near as that can be. Leaders cross no label, no
/// other leader and no other mark's middle as long as there is room without that; labels are to be
/// drawn after them. A spot for which there is no room at all has no label.
std::vector<PlotLabel> placed_labels(const std::vector<LabelledSpot>& spots, const PlotBox& plot,
                                     const std::vector<PlotBox>& taken);

}  // namespace braid
