#include "braid/search/fitting_layers.h"

#include <cstddef>
#include <cstdint>

#include "braid/search/amp_window.h"
#include "braid/search/layer_windows.h"

namespace braid {

namespace {

/// A figure of each layer that is a stage by itself.
template <typename Bytes>
std::vector<double> bytes_of_each(std::span<const ChainLayer> layers, const Bytes& bytes) {
  std::vector<double> each;
  each.reserve(layers.size());
  for (const ChainLayer& layer : layers) {
    RunSums alone;
    alone.add(layer);
    each.push_back(bytes(alone));
  }
  return each;
}

/// Placeholders of the gradients of all shapes of weights in a window of layers whose ends only
/// move right.
class PlaceholderWindow {
 public:
  explicit PlaceholderWindow(const MemoryForm& form) : of_shape_(form.placeholder_bytes) {
    if (of_shape_ != nullptr) behind_last_.assign(of_shape_->size(), 0);
  }
  void add(std::size_t layer, std::uint64_t shapes) {
    for (std::size_t shape = 0; shape < behind_last_.size(); ++shape) {
      if ((shapes >> shape & 1U) != 0) behind_last_[shape] = layer + 1;
    }
  }
  /// Of the layers from `left` on.
  double bytes(std::size_t left) const {
    double sum = 0;
    for (std::size_t shape = 0; shape < behind_last_.size(); ++shape) {
      if (behind_last_[shape] > left) sum += (*of_shape_)[shape];
    }
    return sum;
  }

 private:
  const std::vector<double>* of_shape_;
  std::vector<std::size_t> behind_last_;  ///< [shape]: 1 + the last layer that has it; 0: none has.
};

}  // namespace

std::vector<double> additive_layer_bytes(std::span<const ChainLayer> layers, const MemoryForm& form,
                                         double in_flight) {
  return bytes_of_each(layers, [&](RunSums alone) {
    alone.working_bytes = 0;
    alone.largest_layer_parameters = 0;
    alone.weight_shapes = 0;
    return device_bytes(alone, in_flight, form);
  });
}

std::vector<std::int32_t> first_fitting_layers(std::span<const ChainLayer> layers,
                                               const MemoryForm& form, double in_flight) {
  std::vector<std::int32_t> first(layers.size() + 1, 0);
  const std::vector<double> before_bytes =
      running_sums(additive_layer_bytes(layers, form, in_flight));
  const std::vector<double> before_host_bytes = running_sums(bytes_of_each(
      layers, [&](const RunSums& alone) { return host_bytes(alone, in_flight, form); }));
  WindowMax working, parameters;
  std::size_t left = 0;
  PlaceholderWindow placeholders(form);
  const auto too_much = [&](std::size_t right) {
    return before_bytes[right] - before_bytes[left] + working.with(0) +
                   form.per_largest_layer_parameter * parameters.with(0) +
                   placeholders.bytes(left) >
               form.available_bytes ||
           before_host_bytes[right] - before_host_bytes[left] > form.host_available_bytes;
  };
  for (std::size_t right = 1; right < first.size(); ++right) {
    const ChainLayer& layer = layers[right - 1];
    const auto added = static_cast<std::int32_t>(right - 1);
    working.add(added, layer.working_bytes);
    parameters.add(added, layer.dense_parameters + layer.expert_parameters);
    placeholders.add(right - 1, layer.weight_shapes);
    while (left < right && too_much(right)) {
      ++left;
      working.drop_before(static_cast<std::int32_t>(left));
      parameters.drop_before(static_cast<std::int32_t>(left));
    }
    first[right] = static_cast<std::int32_t>(left);
  }
  return first;
}

}  // namespace braid
