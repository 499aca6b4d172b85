#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/order_form.h"

namespace braid {
namespace {

/// One device's passes of ZB-V, in the making: the way out is leg 0, the way back leg 1.
class DeviceOrder {
 public:
  DeviceOrder(std::int32_t out, std::int32_t back, std::int64_t micro_batches)
      : stages_{out, back}, micro_batches_(micro_batches) {}

  void forward(int leg) { add(WorkKind::forward, leg, forwards_[leg]++); }
  void input_gradient(int leg) { add(WorkKind::input_gradient, leg, inputs_[leg]++); }
  void weight_gradient(int leg) {
    if (weights_[leg] < inputs_[leg]) add(WorkKind::weight_gradient, leg, weights_[leg]++);
  }
  void backward(int leg) {
    input_gradient(leg);
    weight_gradient(leg);
  }
  std::int64_t forwards(int leg) const { return forwards_[leg]; }
  std::int64_t inputs(int leg) const { return inputs_[leg]; }

  /// What is left of both legs, then the updates.
  std::vector<Work> finish() {
    for (const int leg : {1, 0}) {
      while (weights_[leg] < inputs_[leg]) weight_gradient(leg);
      append_update(order_, stages_[leg]);
    }
    return std::move(order_);
  }

 private:
  /// The pattern is made for enough micro-batches to fill the pipeline; of fewer it keeps those
  /// that there are.
  void add(WorkKind kind, int leg, std::int64_t micro_batch) {
    if (micro_batch < micro_batches_) order_.push_back({kind, stages_[leg], micro_batch});
  }

  std::int32_t stages_[2];
  std::int64_t micro_batches_;
  std::int64_t forwards_[2] = {0, 0}, inputs_[2] = {0, 0}, weights_[2] = {0, 0};
  std::vector<Work> order_;
};

/// Device r of p: 2(p-r)-1 forward passes out, r pairs back and out, p-r pairs of forward and
/// backward on the way back; then rounds of all; then the input gradients before the weights', as
/// soon as the devices further out wait for them.
std::vector<Work> device_passes(std::int64_t r, std::int64_t p, std::int64_t micro_batches) {
  const std::int64_t m = std::max(micro_batches, 2 * p);
  DeviceOrder order(static_cast<std::int32_t>(r), static_cast<std::int32_t>(2 * p - 1 - r),
                    micro_batches);
  for (std::int64_t i = 0; i < 2 * (p - r) - 1; ++i) order.forward(0);
  for (std::int64_t i = 0; i < r; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (std::int64_t i = 0; i < p - r; ++i) {
    order.forward(1);
    order.backward(1);
  }
  while (order.forwards(1) < m) {
    if (order.forwards(0) < m) order.forward(0);
    order.backward(0);
    order.forward(1);
    order.backward(1);
  }
  for (std::int64_t i = 0; i < r; ++i) {
    order.input_gradient(0);
    order.input_gradient(1);
  }
  while (order.inputs(0) < m) order.backward(0);
  return order.finish();
}

}  // namespace

WorkOrder zero_bubble_v_order(const StageGraph& graph) {
  const char* name = "ZB-V";
  require_one_round(graph, name);
  const std::size_t stages = graph.stages.size();
  require_chain(graph, name, [&](std::size_t q) { return std::min(q, stages - 1 - q); });
  require_one_size(graph, name);
  const auto p = static_cast<std::int64_t>(device_count(graph));
  if (stages % 2 != 0) {
    throw Error("stage " + std::to_string(stages / 2 + 1) + " has no mirror image",
                "ZB-V is defined for two stages on every device");
  }
  WorkOrder order;
  order.devices.reserve(static_cast<std::size_t>(p));
  for (std::int64_t r = 0; r < p; ++r) {
    order.devices.push_back(device_passes(r, p, graph.micro_batches(0)));
  }
  return order;
}

}  // namespace braid
