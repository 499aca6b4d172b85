#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/program/dense_tensor.h"
#include "braid/program/program.h"

namespace braid {

/// A tensor of the library that computes: only its own sources know what is inside.
class LibraryTensor {
 public:
  virtual ~LibraryTensor() = default;
};
using TensorHandle = std::shared_ptr<LibraryTensor>;

/// Arithmetic that handing over and summing need.
class TensorArithmetic {
 public:
  virtual ~TensorArithmetic() = default;
  /// Along a dimension, of which the first is that of samples: a copy that shares nothing, and one
  /// after the other.
  virtual TensorHandle slice(const TensorHandle& x, int dimension, std::int64_t first,
                             std::int64_t count) const = 0;
  virtual TensorHandle join(std::span<const TensorHandle> parts, int dimension) const = 0;
  virtual TensorHandle sum(const TensorHandle& a, const TensorHandle& b) const = 0;
  /// Size of the first dimension.
  virtual std::int64_t length(const TensorHandle& x) const = 0;
};

enum class PassHalf : std::uint8_t { both, inputs, weights };

/// Which pass: a part's, of the samples from `first_sample` on, counted over all iterations.
struct PassOf {
  std::int32_t part = 0;
  std::int64_t micro_batch = 0;
  std::int64_t first_sample = 0;
};

/// What one rank computes: passes of its parts, and its parameters. Lists of tensors are in the
/// order of StagePart::received and StagePart::handed.
class StageMath {
 public:
  virtual ~StageMath() = default;
  virtual const TensorArithmetic& arithmetic() const = 0;

  /// Room for so many samples of a value, of so many rows each.
  virtual TensorHandle room_for(ValueId value, std::int64_t samples, std::int64_t rows) const = 0;

  /// Returns what the part hands over. Keeps what the backward pass needs.
  virtual std::vector<TensorHandle> forward(const PassOf& pass,
                                            std::span<const TensorHandle> received) = 0;
  /// Takes the gradients of what was handed over and returns those of what was received; adds those
  /// of parameters to what passes before have added. The second half takes and returns none.
  virtual std::vector<TensorHandle> backward(const PassOf& pass,
                                             std::span<const TensorHandle> gradients,
                                             PassHalf half) = 0;

  /// Of all passes since the last call, divided by the samples of an iteration.
  virtual double take_loss() = 0;

  // A group's pieces of parameters as one row, filled up with zeros to a multiple of its ranks.
  virtual std::int64_t row_length(std::size_t group) const = 0;
  virtual TensorHandle gradients(std::size_t group) = 0;
  virtual TensorHandle weights(std::size_t group) = 0;
  /// Updates the row from `first` on with as many gradients as there are.
  virtual void step(std::size_t group, const TensorHandle& gradients, std::int64_t first) = 0;
  virtual void set_weights(std::size_t group, const TensorHandle& row) = 0;
  virtual void clear_gradients() = 0;

  // Of a group whose ranks keep but their parts (is_gathered), weights() is the own part between
  // its passes, and step() updates it.
  /// Makes the parameters whole for a pass, from the row of all parts, …
  virtual void gather_weights(std::size_t group, const TensorHandle& row) = 0;
  /// … and frees their memory.
  virtual void release_weights(std::size_t group) = 0;

  // For checkpoints. Rows are in the type that the optimizer updates: f64 or f32.
  /// Room for a row of so many numbers, a row of these numbers, and the numbers of one.
  virtual TensorHandle row_room(std::int64_t length) const = 0;
  virtual TensorHandle row_of_numbers(const DenseTensor& numbers) const = 0;
  virtual DenseTensor numbers(const TensorHandle& row) const = 0;
  /// Adam's first or second moments as far as step() keeps them; zeros before the first step.
  virtual TensorHandle moment(std::size_t group, std::size_t which) const = 0;
  /// Weights as weights() and set_weights() have them, and moments behind them, after so many
  /// steps.
  virtual void restore(std::size_t group, std::span<const TensorHandle> rows,
                       std::int64_t steps) = 0;

  /// The numbers of a piece of a group as f64, in the piece's shape.
  virtual DenseTensor piece(std::size_t group, std::size_t piece) const = 0;
};

}  // namespace braid
