#include "braid/chip/systolic/loop_nest.h"

#include <algorithm>

#include "braid/base/index.h"

namespace braid {
namespace {

bool has_window(const LoopNest& nest, NestOperand operand) {
  return nest.window.used && nest.window.operand == operand;
}

/// Words of p positions, for each element of the other dimension.
double window_words(const NestWindow& window, double positions) {
  return std::min(positions, window.slope * positions + window.offset);
}

}  // namespace

double tile_words(const LoopNest& nest, NestOperand operand, const std::array<double, 3>& extent) {
  const auto lacking = static_cast<std::size_t>(operand);
  const std::size_t first = lacking == 0 ? 1 : 0;
  const std::size_t second = lacking == 2 ? 1 : 2;
  if (!has_window(nest, operand)) return extent[first] * extent[second];
  const auto positions = static_cast<std::size_t>(nest.window.positions);
  return window_words(nest.window, extent[positions]) * extent[positions == first ? second : first];
}

double swept_words(const LoopNest& nest, NestOperand operand,
                   const std::array<std::int64_t, 3>& pieces) {
  const std::array<std::int64_t, 3> sizes = {nest.m, nest.n, nest.k};
  const std::array<double, 3> extent = {static_cast<double>(nest.m), static_cast<double>(nest.n),
                                        static_cast<double>(nest.k)};
  if (!has_window(nest, operand)) return tile_words(nest, operand, extent);
  const auto positions = static_cast<std::size_t>(nest.window.positions);
  const std::int64_t small = sizes[positions] / pieces[positions];
  const std::int64_t larger = sizes[positions] % pieces[positions];
  std::array<double, 3> other = extent;
  other[positions] = static_cast<double>(small);
  const double of_small = tile_words(nest, operand, other);
  other[positions] = static_cast<double>(small + 1);
  return static_cast<double>(larger) * tile_words(nest, operand, other) +
         static_cast<double>(pieces[positions] - larger) * of_small;
}

double compulsory_words(const LoopNest& nest) {
  double words = 0;
  for (int operand = 0; operand < kNestDims; ++operand) {
    words += swept_words(nest, static_cast<NestOperand>(operand), {1, 1, 1});
  }
  return static_cast<double>(nest.batch) * words;
}

double compulsory_hbm_words(const LoopNest& nest) {
  double words = 0;
  for (int d = 0; d < kNestDims; ++d) {
    const auto operand = static_cast<NestOperand>(d);
    if (!is_on_chip(nest, operand)) words += swept_words(nest, operand, {1, 1, 1});
  }
  return static_cast<double>(nest.batch) * words;
}

}  // namespace braid
