#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "braid/run/stage_math.h"
#include "braid/schedule/work_order.h"

namespace braid::test {

/// Passes everything on, and notes which passes are computed and how many are kept at most.
class ObservedMath : public StageMath {
 public:
  explicit ObservedMath(StageMath& math) : math_(math) {}

  std::vector<Work> passes;
  std::map<std::int32_t, std::int64_t> most;  ///< By part.

  const TensorArithmetic& arithmetic() const override { return math_.arithmetic(); }
  TensorHandle room_for(ValueId value, std::int64_t samples, std::int64_t rows) const override {
    return math_.room_for(value, samples, rows);
  }
  std::vector<TensorHandle> forward(const PassOf& pass,
                                    std::span<const TensorHandle> received) override {
    note(WorkKind::forward, pass);
    most[pass.part] = std::max(most[pass.part], ++kept_[pass.part]);
    return math_.forward(pass, received);
  }
  std::vector<TensorHandle> backward(const PassOf& pass, std::span<const TensorHandle> gradients,
                                     PassHalf half) override {
    note(half == PassHalf::both     ? WorkKind::backward
         : half == PassHalf::inputs ? WorkKind::input_gradient
                                    : WorkKind::weight_gradient,
         pass);
    if (half != PassHalf::weights) --kept_[pass.part];
    return math_.backward(pass, gradients, half);
  }
  double take_loss() override { return math_.take_loss(); }
  std::int64_t row_length(std::size_t group) const override { return math_.row_length(group); }
  TensorHandle gradients(std::size_t group) override { return math_.gradients(group); }
  TensorHandle weights(std::size_t group) override { return math_.weights(group); }
  void step(std::size_t group, const TensorHandle& gradients, std::int64_t first) override {
    math_.step(group, gradients, first);
  }
  void set_weights(std::size_t group, const TensorHandle& row) override {
    math_.set_weights(group, row);
  }
  void clear_gradients() override { math_.clear_gradients(); }
  void gather_weights(std::size_t group, const TensorHandle& row) override {
    math_.gather_weights(group, row);
  }
  void release_weights(std::size_t group) override { math_.release_weights(group); }
  TensorHandle row_room(std::int64_t length) const override { return math_.row_room(length); }
  TensorHandle row_of_numbers(const DenseTensor& numbers) const override {
    return math_.row_of_numbers(numbers);
  }
  DenseTensor numbers(const TensorHandle& row) const override { return math_.numbers(row); }
  TensorHandle moment(std::size_t group, std::size_t which) const override {
    return math_.moment(group, which);
  }
  void restore(std::size_t group, std::span<const TensorHandle> rows, std::int64_t steps) override {
    math_.restore(group, rows, steps);
  }
  DenseTensor piece(std::size_t group, std::size_t piece) const override {
    return math_.piece(group, piece);
  }

 private:
  void note(WorkKind kind, const PassOf& pass) {
    passes.push_back({kind, pass.part, pass.micro_batch});
  }
  StageMath& math_;
  std::map<std::int32_t, std::int64_t> kept_;
};

}  // namespace braid::test
