#include "braid/backend/halide/module/halide_network.h"

#include <algorithm>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

/// Sizes as Halide has them: the innermost first.
std::vector<int> halide_sizes(const Shape& shape) { return {shape.rbegin(), shape.rend()}; }

int stride(const std::vector<int>& sizes, std::size_t dimension) {
  int numbers = 1;
  for (std::size_t d = 0; d < dimension; ++d) numbers *= sizes[d];
  return numbers;
}

/// A compiled loop nest. It is called directly: what the library does around a call takes longer
/// than many kernels.
class HalideKernel : public ComputeKernel {
 public:
  /// Parameters are those of the job's inputs, then the constants'.
  HalideKernel(Halide::Pipeline pipeline, const std::vector<Halide::ImageParam>& inputs,
               HalideConstants constants, std::vector<std::shared_ptr<const DenseTensor>> weights,
               const Halide::Target& target)
      : constants_(std::move(constants)), weights_(std::move(weights)) {
    std::vector<Halide::Argument> arguments;
    for (const auto* list : {&inputs, &constants_.parameters()}) {
      for (const Halide::ImageParam& each : *list) arguments.push_back(each);
    }
    const Halide::Module module = pipeline.compile_to_module(arguments, "braid_kernel", target);
    code_ = Halide::Internal::JITModule(module, module.get_function_by_name("braid_kernel"));
    function_ = code_.argv_function();
  }

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    if (buffers_.empty()) bind(inputs, output);
    for (std::size_t i = 0; i < inputs.size(); ++i) set_data(buffers_[i], inputs[i]->data.data());
    set_data(buffers_.back(), output.data.data());
    if (function_(arguments_.data()) != 0) throw Error("a loop nest of Halide has failed");
  }

 private:
  static void set_data(Halide::Runtime::Buffer<float>& buffer, const std::byte* data) {
    // What is only read is not written, but buffers have no other way to say that.
    buffer.raw_buffer()->host = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(data));
  }

  /// Buffers for the sizes, which are the same at every call.
  void bind(std::span<const DenseTensor* const> inputs, const DenseTensor& output) {
    for (const DenseTensor* each : inputs) {
      buffers_.emplace_back(static_cast<float*>(nullptr), halide_sizes(each->shape));
    }
    for (const Halide::Buffer<float>& each : constants_.numbers()) buffers_.push_back(*each.get());
    buffers_.emplace_back(static_cast<float*>(nullptr), halide_sizes(output.shape));
    for (Halide::Runtime::Buffer<float>& each : buffers_) arguments_.push_back(each.raw_buffer());
  }

  HalideConstants constants_;
  std::vector<std::shared_ptr<const DenseTensor>> weights_;  ///< That constants are views of.
  Halide::Internal::JITModule code_;
  Halide::Internal::JITModule::argv_wrapper function_ = nullptr;
  std::vector<Halide::Runtime::Buffer<float>> buffers_;  ///< Of inputs, constants and the output.
  std::vector<const void*> arguments_;
};

/// Puts a job's nodes together, one after the other.
class Network {
 public:
  Network(const KernelJob& job, const HalideMachine& machine, const HalideTile& tile)
      : job_(job), machine_(machine), tile_(tile), tensors_(job.region.values.size()) {
    for (std::size_t v = 0; v < tensors_.size(); ++v) {
      tensors_[v].shape = job.forms[v].shape;
      if (job.region.values[v].constant) add_constant(v);
    }
    for (const ProgramInput& each : job.region.inputs) add_input(at(each.value));
    for (const ProgramNode& node : job.region.nodes) add(node);
  }

  std::unique_ptr<ComputeKernel> kernel() {
    const HalideTensor& result = tensors_[at(job_.region.outputs.front())];
    Func output = stage_of(result, "result");
    const std::vector<int> sizes = halide_sizes(result.shape);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      output.bound(output.args()[d], 0, sizes[d]);
      output.output_buffer().dim(static_cast<int>(d)).set_bounds(0, sizes[d]);
      output.output_buffer().dim(static_cast<int>(d)).set_stride(stride(sizes, d));
    }
    return std::make_unique<HalideKernel>(Halide::Pipeline(output), inputs_, std::move(constants_),
                                          std::move(weights_), machine_.target);
  }

 private:
  void add_constant(std::size_t value) {
    HalideTensor& tensor = tensors_[value];
    tensor.constant = job_.region.values[value].constant;
    if (tensor.constant->type != ElementType::f32) return;
    tensor.is_direct = true;
    if (tensor.constant->count() == 1) {
      tensor.element = [number = tensor.constant->as<float>()[0]](const HalideExprs&) {
        return Expr(number);
      };
      return;
    }
    weights_.push_back(tensor.constant);
    auto* data = const_cast<float*>(tensor.constant->as<float>().data());
    const Halide::Buffer<float> numbers(data, halide_sizes(tensor.shape));
    // Only those that are read are parameters: of some, loops read a packed form.
    const auto parameter = std::make_shared<std::optional<Halide::ImageParam>>();
    tensor.element = [parameter, numbers, constants = &constants_](const HalideExprs& c) {
      if (!*parameter) *parameter = constants->add(numbers);
      return (**parameter)(HalideExprs(c.rbegin(), c.rend()));
    };
  }

  void add_input(std::size_t value) {
    HalideTensor& tensor = tensors_[value];
    tensor.is_direct = true;
    const Halide::ImageParam input = halide_parameter(halide_sizes(tensor.shape));
    inputs_.push_back(input);
    tensor.element = [input](const HalideExprs& c) {
      return input(HalideExprs(c.rbegin(), c.rend()));
    };
  }

  void add(const ProgramNode& node) {
    HalideTensor& result = tensors_[at(node.outputs.front())];
    // In the loops of a stage stays what works on the same elements; others read what they store.
    const bool is_pointwise = works_by_element(node.operation);
    for (const ValueId input : node.inputs) {
      if (input < 0 || !tensors_[at(input)].is_open) continue;
      if (is_pointwise && tensors_[at(input)].shape == result.shape) {
        result.is_open = true;
      } else {
        store(tensors_[at(input)]);
      }
    }
    std::vector<const DenseTensor*> constants;
    HalideNode each;
    for (const ValueId input : node.inputs) {
      constants.push_back(input < 0 ? nullptr : tensors_[at(input)].constant.get());
      if (input >= 0) each.operands.push_back(tensors_[at(input)]);
    }
    const NodeCall call(job_.region, node, constants);
    each.call = &call;
    each.constants = &constants_;
    each.shape = result.shape;
    std::optional<HalideElement> element = pointwise_element(each);
    if (!element) element = movement_element(each);
    if (element) {
      result.element = *element;
      return;
    }
    auto stage = product_stage(each, machine_, tile_);
    if (!stage) stage = convolution_stage(each, machine_, tile_);
    if (!stage) stage = rows_stage(each, machine_);
    if (!stage) call.fail("is not done");
    result.element = stage->element;
    result.is_open = true;
    schedule_ = stage->schedule;
  }

  /// What the loops of a stage compute is kept for those behind it.
  void store(HalideTensor& tensor) {
    Func stored = stage_of(tensor, "stored");
    stored.compute_root();
    tensor.element = element_of(stored);
    tensor.is_direct = true;
    tensor.is_open = false;
  }

  /// A function over all of a tensor with loops in their order.
  Func stage_of(const HalideTensor& tensor, const std::string& name) {
    Func stage(name);
    const std::vector<Var> v = halide_variables(tensor.shape.size());
    stage(v) = tensor.element(HalideExprs(v.rbegin(), v.rend()));
    if (tensor.is_open) {
      schedule_(stage);
    } else {
      schedule_elements(stage, tensor.shape, machine_);
    }
    return stage;
  }

  const KernelJob& job_;
  HalideMachine machine_;
  HalideTile tile_;
  std::vector<HalideTensor> tensors_;  ///< By value of the region.
  std::vector<Halide::ImageParam> inputs_;
  HalideConstants constants_;
  std::vector<std::shared_ptr<const DenseTensor>> weights_;  ///< That constants are views of.
  HalideSchedule schedule_;                                  ///< Of the stage.
};

}  // namespace

Halide::ImageParam halide_parameter(const std::vector<int>& sizes) {
  Halide::ImageParam parameter(Halide::Float(32), static_cast<int>(sizes.size()));
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    parameter.dim(static_cast<int>(d)).set_bounds(0, sizes[d]).set_stride(stride(sizes, d));
  }
  return parameter;
}

Halide::ImageParam HalideConstants::add(const Halide::Buffer<float>& numbers) {
  std::vector<int> sizes(static_cast<std::size_t>(numbers.dimensions()));
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] = numbers.dim(static_cast<int>(d)).extent();
  }
  parameters_.push_back(halide_parameter(sizes));
  numbers_.push_back(numbers);
  return parameters_.back();
}

std::vector<Var> halide_variables(std::size_t rank) {
  std::vector<Var> variables;
  for (std::size_t d = 0; d < rank; ++d) variables.emplace_back("dim" + std::to_string(d));
  return variables;
}

HalideElement element_of(const Func& function) {
  return [function](const HalideExprs& c) { return function(HalideExprs(c.rbegin(), c.rend())); };
}

void schedule_elements(Func& stage, const Shape& shape, const HalideMachine& machine) {
  const std::vector<Var> v = stage.args();
  if (v.empty()) return;
  const std::int64_t row = shape.back();
  if (row >= machine.vector) {
    stage.vectorize(v[0], machine.vector, Halide::TailStrategy::ShiftInwards);
  } else if (row > 1) {
    stage.vectorize(v[0], static_cast<int>(row));
  }
  if (machine.threads > 1 && v.size() > 1) stage.parallel(v.back());
}

HalideTensor stored_before(const HalideTensor& tensor, const HalideMachine& machine) {
  Func stored("stored");
  const std::vector<Var> v = halide_variables(tensor.shape.size());
  stored(v) = tensor.element(HalideExprs(v.rbegin(), v.rend()));
  schedule_elements(stored, tensor.shape, machine);
  stored.compute_root();
  HalideTensor result = tensor;
  result.element = element_of(stored);
  result.is_direct = true;
  return result;
}

std::unique_ptr<ComputeKernel> halide_kernel(const KernelJob& job, const HalideMachine& machine,
                                             const HalideTile& tile) {
  return Network(job, machine, tile).kernel();
}

bool halide_computes(const KernelJob& job) {
  const bool operations =
      std::all_of(job.region.nodes.begin(), job.region.nodes.end(), [](const ProgramNode& node) {
        return node.domain.empty() && is_halide_operation(node.operation) &&
               node.outputs.size() == 1;
      });
  const bool inputs = std::all_of(
      job.region.inputs.begin(), job.region.inputs.end(),
      [&](const ProgramInput& each) { return job.form(each.value).type == ElementType::f32; });
  const TensorForm& output = job.output_form();
  return operations && inputs && output.type == ElementType::f32 && !output.shape.empty() &&
         output.count() > 0 && output.count() < (std::int64_t{1} << 30);
}

}  // namespace braid
