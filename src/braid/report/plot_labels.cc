#include "braid/report/plot_labels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace braid {
namespace {

constexpr double kLabelLetter = 7.9;  ///< Of bold 12 px, on average, in wide fonts.
constexpr double kLabelHeight = 13;

struct PlotLine {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

/// On which side of a line a point is.
double side_of(const PlotLine& line, double x, double y) {
  return (line.x2 - line.x1) * (y - line.y1) - (line.y2 - line.y1) * (x - line.x1);
}

bool cross(const PlotLine& a, const PlotLine& b) {
  return side_of(a, b.x1, b.y1) * side_of(a, b.x2, b.y2) < 0 &&
         side_of(b, a.x1, a.y1) * side_of(b, a.x2, a.y2) < 0;
}

/// From a point to the nearest one of a line.
double distance(const PlotLine& line, double x, double y) {
  const double dx = line.x2 - line.x1, dy = line.y2 - line.y1;
  const double length = dx * dx + dy * dy;
  const double along =
      length > 0 ? std::clamp(((x - line.x1) * dx + (y - line.y1) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(x - line.x1 - along * dx, y - line.y1 - along * dy);
}

bool crosses(const PlotLine& line, const PlotBox& box) {
  const auto inside = [&box](double x, double y) {
    return x > box.left && x < box.right && y > box.top && y < box.bottom;
  };
  return inside(line.x1, line.y1) || inside(line.x2, line.y2) ||
         cross(line, {box.left, box.top, box.right, box.bottom}) ||
         cross(line, {box.left, box.bottom, box.right, box.top});
}

double letters_of(const std::string& text) {
  return static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// What lines may do, from what is wanted to what is borne.
enum class Lines : std::uint8_t { touch_nothing, cross_each_other, run_below_labels };

class LabelPlacer {
 public:
  LabelPlacer(const std::vector<LabelledSpot>& spots, const PlotBox& plot,
              const std::vector<PlotBox>& taken)
      : spots_(spots), plot_(plot), taken_(taken) {}

  /// Near the mark, else further and further away. `crowded`: other marks are near it.
  bool place(const LabelledSpot& spot, const std::string& text, bool crowded, Lines lines) {
    constexpr int kTurns = 24;
    constexpr double kNear = 8, kApart = 20, kStep = 12;
    constexpr int kSteps = 41;
    const double half_width = kLabelLetter * letters_of(text) / 2;
    for (int step = 0; step < kSteps; ++step) {
      const double far = (crowded ? kApart : kNear) + kStep * step;
      for (int turn = 0; turn < kTurns; ++turn) {
        const double angle = 2 * std::numbers::pi * (turn + 0.5) / kTurns;
        const double x = spot.x + std::cos(angle) * (far + half_width) - half_width;
        const double y = spot.y + std::sin(angle) * (far + kLabelHeight / 2) + 4;
        if (put({x, y, text, crowded || far > kNear, spot.x, spot.y, 0, 0}, lines)) return true;
      }
    }
    return false;
  }

  std::vector<PlotLabel> take() { return std::move(labels_); }

 private:
  bool put(PlotLabel label, Lines lines) {
    const PlotBox box = text_box(label.x, label.y, label.text);
    const auto on_box = [&box](const PlotBox& other) { return box.touches(other); };
    const bool inside = box.left >= plot_.left && box.right <= plot_.right &&
                        box.top >= plot_.top && box.bottom <= plot_.bottom;
    if (!inside || std::any_of(taken_.begin(), taken_.end(), on_box) ||
        std::any_of(boxes_.begin(), boxes_.end(), on_box)) {
      return false;
    }
    if (lines < Lines::run_below_labels &&
        std::any_of(leaders_.begin(), leaders_.end(),
                    [&](const PlotLine& line) { return crosses(line, box); })) {
      return false;
    }
    if (label.has_leader) {
      label.end_x = std::clamp(label.mark_x, box.left + 1, box.right - 1);
      label.end_y = std::clamp(label.mark_y, box.top + 1, box.bottom - 1);
      const PlotLine leader{label.mark_x, label.mark_y, label.end_x, label.end_y};
      if (!is_free(leader, lines)) return false;
      leaders_.push_back(leader);
    }
    boxes_.push_back(box);
    labels_.push_back(std::move(label));
    return true;
  }

  bool is_free(const PlotLine& leader, Lines lines) const {
    // Which of the marks that a line runs over is its own?
    constexpr double kBeside = 3, kOwn = 0.1;
    const bool is_clear = std::none_of(spots_.begin(), spots_.end(), [&](const LabelledSpot& spot) {
      return std::hypot(spot.x - leader.x1, spot.y - leader.y1) > kOwn &&
             distance(leader, spot.x, spot.y) < kBeside;
    });
    return (is_clear || lines > Lines::touch_nothing) &&
           (lines == Lines::run_below_labels ||
            std::none_of(boxes_.begin(), boxes_.end(),
                         [&](const PlotBox& other) { return crosses(leader, other); })) &&
           (lines > Lines::touch_nothing ||
            std::none_of(leaders_.begin(), leaders_.end(),
                         [&](const PlotLine& other) { return cross(leader, other); }));
  }

  const std::vector<LabelledSpot>& spots_;
  PlotBox plot_;
  const std::vector<PlotBox>& taken_;
  std::vector<PlotBox> boxes_;
  std::vector<PlotLine> leaders_;
  std::vector<PlotLabel> labels_;
};

bool is_crowded(const std::vector<LabelledSpot>& spots, const LabelledSpot& spot) {
  constexpr double kClose = 16;
  return std::count_if(spots.begin(), spots.end(), [&spot](const LabelledSpot& other) {
           return std::abs(other.x - spot.x) < kClose && std::abs(other.y - spot.y) < kClose;
         }) > 1;
}

}  // namespace

PlotBox text_box(double x, double y, const std::string& text) {
  constexpr double kAbove = 10, kBelow = 3, kBeside = 3;
  return {x - kBeside, y - kAbove, x + kLabelLetter * letters_of(text) + kBeside, y + kBelow};
}

std::vector<PlotLabel> placed_labels(const std::vector<LabelledSpot>& spots, const PlotBox& plot,
                                     const std::vector<PlotBox>& taken) {
  LabelPlacer placer(spots, plot, taken);
  for (const LabelledSpot& spot : spots) {
    const bool crowded = is_crowded(spots, spot);
    const auto place_any = [&](Lines lines) {
      return std::any_of(spot.texts.begin(), spot.texts.end(), [&](const std::string& text) {
        return placer.place(spot, text, crowded, lines);
      });
    };
    for (const Lines lines :
         {Lines::touch_nothing, Lines::cross_each_other, Lines::run_below_labels}) {
      if (place_any(lines)) break;
    }
  }
  return placer.take();
}

}  // namespace braid
