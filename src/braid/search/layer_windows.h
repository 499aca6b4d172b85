#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/search/partition.h"

namespace braid {

// Figures of windows over a chain of layers.

/// Rounds values so that they and all sums of neighbours are multiples of one unit that doubles
/// hold exactly: sums then do not depend on the order of adding, and differences of prefix sums are
/// exact. Changes the values by less than 1e-15 of their total; whole numbers of a total below 2^51
/// stay as they are.
class ExactSums {
 public:
  ExactSums() = default;
  ExactSums(std::span<const ChainLayer> layers, double ChainLayer::*field) {
    double total = 0;
    for (const ChainLayer& layer : layers) total += std::abs(layer.*field);
    int exponent = 0;
    std::frexp(total, &exponent);
    // Adding and taking away what has ulps of one unit rounds to units; there are 2^51 at most.
    const double rounder = std::ldexp(1.5, std::max(exponent, -900) + 1);
    before_.reserve(layers.size() + 1);
    before_.push_back(0);
    for (const ChainLayer& layer : layers) {
      before_.push_back(before_.back() + ((layer.*field + rounder) - rounder));
    }
  }

  double of(std::int32_t left, std::int32_t right) const {
    return before_[static_cast<std::size_t>(right)] - before_[static_cast<std::size_t>(left)];
  }
  double total() const { return before_.back(); }

 private:
  std::vector<double> before_;  ///< [l]: sum of the first l values.
};

/// The largest value in a window over the layers whose ends only move left, or only right.
class WindowMax {
 public:
  void restart() { candidates_.clear(), first_ = 0; }
  /// Of the next layer on the side where the window goes.
  void add(std::int32_t layer, double value) {
    while (candidates_.size() > first_ && candidates_.back().value <= value) candidates_.pop_back();
    candidates_.push_back({layer, value});
  }
  void drop_from(std::int32_t right) {
    while (candidates_.size() > first_ && candidates_[first_].layer >= right) ++first_;
  }
  void drop_before(std::int32_t left) {
    while (candidates_.size() > first_ && candidates_[first_].layer < left) ++first_;
  }
  /// Or a value, if that is larger.
  double with(double value) const {
    return candidates_.size() > first_ ? std::max(candidates_[first_].value, value) : value;
  }

 private:
  struct Candidate {
    std::int32_t layer = 0;
    double value = 0;
  };
  std::vector<Candidate> candidates_;
  std::size_t first_ = 0;
};

}  // namespace braid
