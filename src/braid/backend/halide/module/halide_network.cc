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

/// A compiled loop nest.
class HalideKernel : public ComputeKernel {
 public:
  HalideKernel(Halide::Pipeline pipeline, std::vector<Halide::ImageParam> inputs,
               std::vector<std::shared_ptr<const DenseTensor>> constants, Halide::Target target)
      : pipeline_(std::move(pipeline)),
        inputs_(std::move(inputs)),
        constants_(std::move(constants)),
        target_(std::move(target)) {
    pipeline_.compile_jit(target_);
  }

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      // Only read, but buffers have no other way to say that.
      auto* data = const_cast<float*>(inputs[i]->as<float>().data());
      inputs_[i].set(Halide::Buffer<float>(data, halide_sizes(inputs[i]->shape)));
    }
    Halide::Buffer<float> out(output.as<float>().data(), halide_sizes(output.shape));
    pipeline_.realize(out, target_);
  }

 private:
  Halide::Pipeline pipeline_;
  std::vector<Halide::ImageParam> inputs_;
  std::vector<std::shared_ptr<const DenseTensor>> constants_;  ///< That the loops read.
  Halide::Target target_;
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
    return std::make_unique<HalideKernel>(Halide::Pipeline(output), inputs_, constants_,
                                          machine_.target);
  }

 private:
  static int stride(const std::vector<int>& sizes, std::size_t dimension) {
    int numbers = 1;
    for (std::size_t d = 0; d < dimension; ++d) numbers *= sizes[d];
    return numbers;
  }

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
    constants_.push_back(tensor.constant);
    auto* data = const_cast<float*>(tensor.constant->as<float>().data());
    const Halide::Buffer<float> buffer(data, halide_sizes(tensor.shape));
    tensor.element = [buffer](const HalideExprs& c) {
      return buffer(HalideExprs(c.rbegin(), c.rend()));
    };
  }

  void add_input(std::size_t value) {
    HalideTensor& tensor = tensors_[value];
    tensor.is_direct = true;
    const std::vector<int> sizes = halide_sizes(tensor.shape);
    Halide::ImageParam input(Halide::Float(32), static_cast<int>(sizes.size()));
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      input.dim(static_cast<int>(d)).set_bounds(0, sizes[d]).set_stride(stride(sizes, d));
    }
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
  std::vector<std::shared_ptr<const DenseTensor>> constants_;
  HalideSchedule schedule_;  ///< Of the stage.
};

}  // namespace

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
