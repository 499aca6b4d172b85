#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Samples of an image at the places of a grid.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

struct GridRule {
  std::string mode, padding;
  bool align_corners = false;
};

/// From [-1, 1] to elements: the outermost ones' centres with aligned corners, else their edges.
double element_position(const GridRule& rule, double x, std::int64_t size) {
  const auto count = static_cast<double>(size);
  return rule.align_corners ? (x + 1) / 2 * (count - 1) : ((x + 1) * count - 1) / 2;
}

/// A position outside thrown back from the borders until it is inside.
double reflected(const GridRule& rule, double x, std::int64_t size) {
  const double low = rule.align_corners ? 0 : -0.5;
  const double high = static_cast<double>(size) - (rule.align_corners ? 1 : 0.5);
  const double range = high - low;
  if (range <= 0) return 0;
  const double off = std::fmod(std::abs(x - low), 2 * range);
  return low + (off > range ? 2 * range - off : off);
}

/// The element that stands at `index`, outside as the padding says; -1 for a zero.
std::int64_t grid_index(const GridRule& rule, std::int64_t index, std::int64_t size) {
  if (index >= 0 && index < size) return index;
  if (rule.padding == "zeros") return -1;
  if (rule.padding == "border") return std::clamp<std::int64_t>(index, 0, size - 1);
  const double inside = reflected(rule, static_cast<double>(index), size);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::nearbyint(inside)), 0, size - 1);
}

struct GridTap {
  std::int64_t index = -1;
  double weight = 0;
};

/// Elements along one dimension and their weights at `x` in [-1, 1].
std::vector<GridTap> grid_taps(const GridRule& rule, double x, std::int64_t size) {
  double position = element_position(rule, x, size);
  if (rule.mode != "bicubic" && rule.mode != "cubic") {
    // The position itself is moved inside, for cubic ones each of the neighbours.
    if (rule.padding == "border") {
      position = std::clamp(position, 0.0, static_cast<double>(size - 1));
    } else if (rule.padding == "reflection") {
      position = std::clamp(reflected(rule, position, size), 0.0, static_cast<double>(size - 1));
    }
  }
  const double base = std::floor(position);
  const double t = position - base;
  const auto first = static_cast<std::int64_t>(base);
  std::vector<GridTap> taps;
  if (rule.mode == "nearest") {
    taps = {{static_cast<std::int64_t>(std::nearbyint(position)), 1}};
  } else if (rule.mode == "bilinear" || rule.mode == "linear") {
    taps = {{first, 1 - t}, {first + 1, t}};
  } else {
    constexpr double a = -0.75;  // Keys 1981, as PyTorch has it.
    const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    taps = {{first - 1, far(1 + t)},
            {first, near(t)},
            {first + 1, near(1 - t)},
            {first + 2, far(2 - t)}};
  }
  for (GridTap& tap : taps) tap.index = grid_index(rule, tap.index, size);
  return taps;
}

/// [N, C, H, W] at the places of [N, H', W', 2], which are (x, y).
Tensors grid_sample(const NodeCall& call) {
  call.need_inputs(2, 2);
  call.need_rank(0, 4, 4);
  call.need_rank(1, 4, 4);
  const GridRule rule{call.text("mode", "bilinear"), call.text("padding_mode", "zeros"),
                      call.flag("align_corners", false)};
  const Shape& in = call.shape(0);
  const Shape& grid = call.shape(1);
  if (grid[0] != in[0] || grid[3] != 2) {
    call.fail(fmt::format("the grid {} does not fit {}", shape_text(grid), shape_text(in)));
  }
  const std::vector<double> numbers = call.reals(0);
  const std::vector<double> places = call.reals(1);
  const Shape out{in[0], in[1], grid[1], grid[2]};
  std::vector<double> results(at(element_count(out)), 0.0);
  const std::int64_t points = grid[1] * grid[2];
  for (std::int64_t i = 0; i < in[0] * points; ++i) {
    const auto columns = grid_taps(rule, places[at(2 * i)], in[3]);
    const auto rows = grid_taps(rule, places[at(2 * i + 1)], in[2]);
    for (std::int64_t channel = 0; channel < in[1]; ++channel) {
      const std::int64_t plane = i / points * in[1] + channel;
      double sum = 0;
      for (const GridTap& row : rows) {
        for (const GridTap& column : columns) {
          if (row.index < 0 || column.index < 0) continue;
          sum += row.weight * column.weight *
                 numbers[at((plane * in[2] + row.index) * in[3] + column.index)];
        }
      }
      results[at(plane * points + i % points)] = sum;
    }
  }
  return {tensor_of(call.type(0), out, results)};
}

constexpr std::array<ReferenceEntry, 1> grid_sample_entries{{{"GridSample", grid_sample}}};

}  // namespace

std::span<const ReferenceEntry> grid_sample_kernels() { return grid_sample_entries; }

}  // namespace braid
