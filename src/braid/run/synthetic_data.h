#pragma once

#include <cstdint>
#include <vector>

#include "braid/frontend/graph_program.h"

namespace braid {

/// Data to train on that every process can make by itself: four iterations' samples, again and
/// again. Whole numbers are ids of rows in the tables that they look up. What is to be learnt: the
/// class of each row of logits is a function of the id that the model is given in its place, where
/// there is one for each row; else it is fixed for each sample. Results of one column are to be
/// numbers between -1 and 1.
class SyntheticData {
 public:
  /// Throws Error for an input that is no number, or without a shape. `batch`: samples of an
  /// iteration.
  SyntheticData(const LayeredProgram& model, std::uint64_t seed, std::int64_t batch);

  /// One sample's input, in the order of Program::inputs; whole numbers or reals by its type.
  /// `sample` is counted over all iterations.
  std::vector<std::int64_t> ids(std::size_t input, std::int64_t sample) const;
  std::vector<double> reals(std::size_t input, std::int64_t sample) const;

  /// What the whole numbers of an input are below.
  std::int64_t bound(std::size_t input) const { return bounds_[input]; }

  /// What a loss wants, one for each row of one sample's result.
  std::vector<std::int64_t> classes(ValueId result, std::int64_t sample) const;
  std::vector<double> targets(ValueId result, std::int64_t sample) const;

  /// Columns of a result: 1 is for targets(), more are for classes().
  std::int64_t columns(ValueId result) const;

 private:
  std::int64_t rows(ValueId result) const;
  std::uint64_t bits(std::uint64_t stream, std::int64_t sample, std::size_t index) const;

  std::vector<std::int64_t> counts_;  ///< [input]: numbers of a sample.
  std::vector<std::int64_t> bounds_;  ///< [input]: ids are below.
  std::vector<Shape> shapes_;         ///< By value.
  std::uint64_t seed_ = 0;
  std::int64_t set_samples_ = 1;
};

}  // namespace braid
