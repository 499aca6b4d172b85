#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/place/place_program.h"

namespace braid {

/// A program with the kernels of a placement, ready to run any number of times.
///
///   PlacedProgram placed(fixed, place_program(fixed, backends, nullptr), backends);
///   const std::vector<DenseTensor> out = placed.run(inputs);
class PlacedProgram {
 public:
  /// Makes the kernels. Throws Error where a group names a backend or pattern that is not there or
  /// does not match, and where a tensor that a group reads is not turned to its layout.
  PlacedProgram(const FixedProgram& fixed, const ProgramPlacement& placement,
                const std::vector<FoundBackend>& backends);
  PlacedProgram(const PlacedProgram&) = delete;
  PlacedProgram& operator=(const PlacedProgram&) = delete;
  ~PlacedProgram();

  /// Inputs in the order of the program's, of the fixed types and shapes.
  std::vector<DenseTensor> run(std::span<const DenseTensor> inputs);

 private:
  struct Step;
  class Builder;
  /// Tensors of one layout by value; those of kernels and turns are kept.
  using Tensors = std::vector<std::shared_ptr<DenseTensor>>;

  void run_reference(const Step& step, std::span<const DenseTensor* const> operands);

  Program program_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::array<Tensors, all_layouts.size()> tensors_;
  std::vector<const DenseTensor*> fed_;  ///< Inputs of this run, by value.
};

}  // namespace braid
