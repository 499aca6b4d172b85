#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// Shapes of the weights that GEMMs of a model's layers read, experts' one by one. A trainer with
/// gradient placeholders (TrainerBehaviour) keeps one tensor of each shape that a stage has, in the
/// weights' format, from one micro-batch to the next: what stands for gradients that kernels have
/// added to those of earlier micro-batches already (Transformer Engine's get_dummy_wgrad();
/// Megatron-LM's output projection makes one anew each time, when memory is fullest).
class WeightShapes {
 public:
  /// Cost: linear in the graph times the shapes.
  explicit WeightShapes(const Graph& graph);

  /// [kind of layer]: its shapes, a bit each. Shapes beyond the 63rd share the last bit.
  const std::vector<std::uint64_t>& of_kind() const { return of_kind_; }
  /// [shape]: of a placeholder on one device, where layers run as `how` with weights of this type.
  std::vector<double> bytes(const Execution& how, Dtype weight) const;

 private:
  struct Shape {
    std::array<std::int64_t, 2> size = {0, 0};
    Split split = Split::replicated;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  static std::vector<Shape> shapes_of(const Operator& op);

  std::vector<Shape> shapes_;
  std::vector<std::uint64_t> of_kind_;
};

/// Bytes of all shapes in a set.
inline double placeholder_bytes(std::uint64_t shapes, const std::vector<double>& bytes) {
  double sum = 0;
  for (std::size_t shape = 0; shapes != 0; ++shape, shapes >>= 1U) {
    if ((shapes & 1U) != 0) sum += bytes[shape];
  }
  return sum;
}

/// Adds the placeholders of each stage's shapes to its memory: to the fixed bytes of the first
/// layer that has each. `graph` is the plan's model. Plans on devices of one kind.
void add_gradient_placeholders(const Graph& graph, Plan& plan);

}  // namespace braid
