#include "braid/search/even_splits.h"

#include <algorithm>
#include <cassert>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {

EvenSplits::EvenSplits(std::span<const ChainLayer> layers) {
  for (const ChainLayer& layer : layers) add_layer(layer.time_s());
}

EvenSplits::EvenSplits(std::span<const std::int32_t> kind_of_layer,
                       std::span<const ChainLayer> kinds) {
  for (const std::int32_t kind : kind_of_layer) {
    add_layer(kinds[static_cast<std::size_t>(kind)].time_s());
  }
}

void EvenSplits::add_layer(double time_s) {
  if (runs_.empty() || runs_.back().time_s != time_s) runs_.push_back({time_s, layers_});
  ++layers_;
  total_s_ += time_s;
  slowest_s_ = std::max(slowest_s_, time_s);
}

bool EvenSplits::fill(int pieces, double bound, Ends* ends, double& next_bound) const {
  next_bound = kInfinity;
  std::int32_t left = layers_;
  auto run = runs_.end() - 1;  // Of the layer before `left`.
  // Of a piece of this run's layers alone: how many keep within the bound, and what one more makes.
  auto counted = runs_.end();
  std::int32_t most = 0;
  double one_more_s = 0;
  for (std::int32_t i = pieces - 1; i >= 0; --i) {
    if (ends != nullptr) (*ends)[static_cast<std::size_t>(i)] = left;
    if (run != counted) {
      counted = run;
      most = 0;
      one_more_s = run->time_s;
      for (double time_s = 0; one_more_s <= bound && most < left - run->begin; ++most) {
        time_s = one_more_s;
        one_more_s = time_s + run->time_s;
      }
    }
    if (left - run->begin > most && left - most > i) {
      left -= most;
      next_bound = std::min(next_bound, one_more_s);
      continue;
    }
    double time_s = 0;
    while (left > i) {
      if (left == run->begin) --run;
      const double larger = time_s + run->time_s;
      if (larger > bound) {
        next_bound = std::min(next_bound, larger);
        break;
      }
      time_s = larger;
      --left;
    }
    if (left > 0 && left == run->begin) --run;
  }
  return left == 0;
}

double EvenSplits::split(int pieces, Ends* ends) const {
  assert(pieces <= layers_);
  if (ends != nullptr) ends->resize(static_cast<std::size_t>(pieces));
  // A bound below the slowest layer would not place it.
  double bound = std::max(slowest_s_, total_s_ / pieces * kBelowRounding);
  double next_bound = kInfinity;
  while (!fill(pieces, bound, ends, next_bound)) {
    assert(next_bound > bound);
    bound = next_bound;
  }
  return bound;
}

}  // namespace braid
