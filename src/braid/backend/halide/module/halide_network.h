#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <Halide.h>

#include "braid/backend/halide/halide_module.h"
#include "braid/program/node_call.h"

namespace braid {

using HalideExprs = std::vector<Halide::Expr>;

/// The element of a tensor at coordinates in the order of its shape.
using HalideElement = std::function<Halide::Expr(const HalideExprs&)>;

/// A tensor of a job while its loop nest is put together.
struct HalideTensor {
  HalideElement element;
  Shape shape;
  bool is_direct = false;  ///< It lies in memory as it is: nothing is computed on reading.
  bool is_open = false;    ///< Computed in the loops of a stage.
  std::shared_ptr<const DenseTensor> constant;
};

/// Numbers that loops read and that are known beforehand: weights as they are, or packed. They are
/// parameters of the loops, as constants in the code would take long to compile.
class HalideConstants {
 public:
  /// The parameter that stands for them, of the sizes that the buffer has.
  Halide::ImageParam add(const Halide::Buffer<float>& numbers);

  const std::vector<Halide::ImageParam>& parameters() const { return parameters_; }
  const std::vector<Halide::Buffer<float>>& numbers() const { return numbers_; }

 private:
  std::vector<Halide::ImageParam> parameters_;
  std::vector<Halide::Buffer<float>> numbers_;
};

/// A parameter for a buffer without gaps, with sizes from the innermost to the outermost.
Halide::ImageParam halide_parameter(const std::vector<int>& sizes);

/// A node with its operands and what it is to give.
struct HalideNode {
  const NodeCall* call = nullptr;  ///< With its constants alone as operands.
  HalideConstants* constants = nullptr;
  std::vector<HalideTensor> operands;
  Shape shape;  ///< Of its result.

  std::size_t rank() const { return shape.size(); }
};

/// Gives a function's loops their order, once all that is computed in them is known. Its variables
/// are those of `variables_of` its rank.
using HalideSchedule = std::function<void(Halide::Func& stage)>;

/// A product, convolution or computation of rows: elements that loops of their own compute.
struct HalideStage {
  HalideElement element;
  HalideSchedule schedule;
};

/// What loops are made for.
struct HalideMachine {
  Halide::Target target;
  int vector = 8;  ///< Numbers in a vector register.
  int threads = 1;
};

/// Variables of a function over a tensor's dimensions, from the last dimension, which is the
/// innermost, to the first.
std::vector<Halide::Var> halide_variables(std::size_t rank);

/// The element of a function with halide_variables().
HalideElement element_of(const Halide::Func& function);

/// The element of an operand that is spread over the result, as NumPy does: its sizes of 1 have one
/// element.
Halide::Expr spread_element(const HalideTensor& operand, const HalideExprs& at_result);

/// What a node gives where it needs no loops of its own; nullopt for other nodes. Throws Error for
/// attributes that are not done.
std::optional<HalideElement> pointwise_element(const HalideNode& node);
std::optional<HalideElement> movement_element(const HalideNode& node);

// Loops of their own; nullopt for other nodes. Throw Error for what is not done.
std::optional<HalideStage> product_stage(const HalideNode& node, const HalideMachine& machine,
                                         const HalideTile& tile);
std::optional<HalideStage> convolution_stage(const HalideNode& node, const HalideMachine& machine,
                                             const HalideTile& tile);
std::optional<HalideStage> rows_stage(const HalideNode& node, const HalideMachine& machine);

/// Loops for what is computed element by element.
void schedule_elements(Halide::Func& stage, const Shape& shape, const HalideMachine& machine);

/// A function over a whole tensor that is computed before all that read it.
HalideTensor stored_before(const HalideTensor& tensor, const HalideMachine& machine);

/// Whether an operation is known to pointwise_element(), and to any of the above.
bool works_by_element(const std::string& operation);
bool is_halide_operation(const std::string& operation);

/// The job as one loop nest, compiled. Throws Error, or what Halide throws, for what is not done.
std::unique_ptr<ComputeKernel> halide_kernel(const KernelJob& job, const HalideMachine& machine,
                                             const HalideTile& tile);

/// Whether halide_kernel() could do the job, without compiling it.
bool halide_computes(const KernelJob& job);

}  // namespace braid
