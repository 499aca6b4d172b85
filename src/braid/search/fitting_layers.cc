#include "braid/search/fitting_layers.h"

#include <cstddef>

#include "braid/search/amp_window.h"
#include "braid/search/layer_windows.h"

namespace braid {

std::int32_t first_of_longest_run(std::span<const ChainLayer> layers, const MemoryForm& form,
                                  double in_flight) {
  RunSums sums;
  std::size_t left = layers.size();
  for (; left > 0; --left) {
    sums.add(layers[left - 1]);
    if (!fits(sums, in_flight, form)) break;
  }
  return static_cast<std::int32_t>(left);
}

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
  WindowMax working, parameters;
  std::size_t left = 0;
  for (std::size_t right = 1; right < first.size(); ++right) {
    const ChainLayer& layer = layers[right - 1];
    const auto added = static_cast<std::int32_t>(right - 1);
    working.add(added, layer.working_bytes);
    parameters.add(added, layer.dense_parameters + layer.expert_parameters);
    while (left < right && before_bytes[right] - before_bytes[left] + working.with(0) +
                                   form.per_largest_layer_parameter * parameters.with(0) >
                               form.available_bytes) {
      ++left;
      working.drop_before(static_cast<std::int32_t>(left));
      parameters.drop_before(static_cast<std::int32_t>(left));
    }
    first[right] = static_cast<std::int32_t>(left);
  }
  return first;
}

}  // namespace braid
