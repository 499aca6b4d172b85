#include "braid/search/fitting_layers.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "braid/search/amp_window.h"

namespace braid {
namespace {

/// The largest value of a window whose ends only move right.
class SlidingLargest {
 public:
  void push(std::size_t index, double value) {
    while (!rising_.empty() && rising_.back().second <= value) rising_.pop_back();
    rising_.emplace_back(index, value);
  }
  double from(std::size_t first) {
    while (!rising_.empty() && rising_.front().first < first) rising_.pop_front();
    return rising_.empty() ? 0 : rising_.front().second;
  }

 private:
  std::deque<std::pair<std::size_t, double>> rising_;
};

}  // namespace

std::vector<double> additive_layer_bytes(std::span<const ChainLayer> layers, const MemoryForm& form,
                                         double in_flight) {
  std::vector<double> bytes;
  bytes.reserve(layers.size());
  for (const ChainLayer& layer : layers) {
    RunSums alone;
    alone.add(layer);
    alone.working_bytes = 0;
    alone.largest_layer_parameters = 0;
    bytes.push_back(device_bytes(alone, in_flight, form));
  }
  return bytes;
}

std::vector<std::int32_t> first_fitting_layers(std::span<const ChainLayer> layers,
                                               const MemoryForm& form, double in_flight) {
  std::vector<std::int32_t> first(layers.size() + 1, 0);
  const std::vector<double> before_bytes =
      running_sums(additive_layer_bytes(layers, form, in_flight));
  SlidingLargest working, parameters;
  std::size_t left = 0;
  for (std::size_t right = 1; right < first.size(); ++right) {
    const ChainLayer& layer = layers[right - 1];
    working.push(right - 1, layer.working_bytes);
    parameters.push(right - 1, layer.dense_parameters + layer.expert_parameters);
    while (left < right && before_bytes[right] - before_bytes[left] + working.from(left) +
                                   form.per_largest_layer_parameter * parameters.from(left) >
                               form.available_bytes) {
      ++left;
    }
    first[right] = static_cast<std::int32_t>(left);
  }
  return first;
}

}  // namespace braid
