#include "braid/backend/place/fold_normalization.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "braid/base/index.h"
#include "braid/program/node_call.h"
#include "braid/program/numbers.h"

namespace braid {
namespace {

/// y = factor · x + offset, by channel.
struct ChannelLine {
  std::vector<double> factor, offset;
};

class Folding {
 public:
  explicit Folding(FixedProgram& fixed) : fixed_(fixed), program_(fixed.program) {
    readers_.assign(program_.values.size(), 0);
    for (const ProgramNode& node : program_.nodes) {
      for (const ValueId input : node.inputs)
        readers_[at(std::max(input, 0))] += input >= 0 ? 1 : 0;
    }
    for (const ValueId output : program_.outputs) ++readers_[at(output)];
  }

  void run() {
    std::vector<ProgramNode> before = std::move(program_.nodes);
    const std::vector<double> before_s = std::move(fixed_.reference_s);
    program_.nodes.clear();
    fixed_.reference_s.clear();
    for (std::size_t n = 0; n < before.size(); ++n) {
      const auto line = line_of(before[n]);
      if (!line) {
        add(std::move(before[n]), before_s[n]);
      } else if (ProgramNode* convolution = foldable(before[n].inputs[0])) {
        fold(*convolution, *line, before[n].outputs[0]);
      } else {
        add_line(before[n], *line, before_s[n]);
      }
    }
  }

 private:
  const DenseTensor* constant(ValueId value) const {
    return value < 0 ? nullptr : program_.values[at(value)].constant.get();
  }

  std::optional<ChannelLine> line_of(const ProgramNode& node) const {
    if (node.operation != "BatchNormalization" || !node.domain.empty()) return std::nullopt;
    if (node.inputs.size() != 5 || fixed_.forms[at(node.outputs[0])].type != ElementType::f32) {
      return std::nullopt;
    }
    const NodeCall call(program_, node, {});
    // Before version 7 it trains unless told otherwise, and `spatial` may be off.
    if (call.opset() < 7 || call.integer("training_mode", 0) != 0 || !call.flag("spatial", true)) {
      return std::nullopt;
    }
    for (std::size_t i = 1; i < node.outputs.size(); ++i) {
      if (node.outputs[i] >= 0) return std::nullopt;
    }
    std::vector<std::vector<double>> numbers;
    for (std::size_t i = 1; i < 5; ++i) {
      const DenseTensor* each = constant(node.inputs[i]);
      if (each == nullptr) return std::nullopt;
      numbers.push_back(numbers_of<double>(*each));
    }
    const double epsilon = call.real("epsilon", 1e-5);
    ChannelLine line;
    for (std::size_t c = 0; c < numbers[0].size(); ++c) {
      line.factor.push_back(numbers[0][c] / std::sqrt(numbers[3][c] + epsilon));
      line.offset.push_back(numbers[1][c] - numbers[2][c] * line.factor.back());
    }
    return line;
  }

  /// The convolution that computes a value for its one reader; nullptr where there is none such.
  ProgramNode* foldable(ValueId value) {
    if (readers_[at(value)] != 1) return nullptr;
    for (ProgramNode& node : program_.nodes) {
      if (node.outputs.front() != value) continue;
      const bool is_convolution = node.domain.empty() && node.operation == "Conv" &&
                                  constant(node.inputs[1]) != nullptr &&
                                  constant(node.inputs[1])->type == ElementType::f32 &&
                                  (node.inputs.size() < 3 || constant(node.inputs[2]) != nullptr);
      return is_convolution ? &node : nullptr;
    }
    return nullptr;
  }

  void fold(ProgramNode& convolution, const ChannelLine& line, ValueId result) {
    DenseTensor weight = *constant(convolution.inputs[1]);
    std::vector<double> bias(line.offset.size(), 0);
    if (convolution.inputs.size() > 2) {
      bias = numbers_of<double>(*constant(convolution.inputs[2]));
    }
    const std::span<float> numbers = weight.as<float>();
    const std::size_t width = numbers.size() / line.factor.size();
    for (std::size_t c = 0; c < line.factor.size(); ++c) {
      for (std::size_t i = 0; i < width; ++i) {
        numbers[c * width + i] = static_cast<float>(numbers[c * width + i] * line.factor[c]);
      }
      bias[c] = bias[c] * line.factor[c] + line.offset[c];
    }
    const auto channels = static_cast<std::int64_t>(bias.size());
    const ValueId x = convolution.inputs[0];
    convolution.inputs = {x, new_constant(std::move(weight)),
                          new_constant(tensor_of(ElementType::f32, {channels}, bias))};
    convolution.outputs = {result};
  }

  void add_line(const ProgramNode& node, const ChannelLine& line, double reference_s) {
    const TensorForm form = fixed_.forms[at(node.outputs[0])];
    Shape shape(form.shape.size() < 2 ? 1 : form.shape.size() - 1, 1);
    shape.front() = static_cast<std::int64_t>(line.factor.size());
    const ValueId factor = new_constant(tensor_of(ElementType::f32, shape, line.factor));
    const ValueId offset = new_constant(tensor_of(ElementType::f32, shape, line.offset));
    const ValueId product = new_value(form);
    add({node.name + ".scale", "", "Mul", {node.inputs[0], factor}, {product}, {}},
        reference_s / 2);
    add({node.name, "", "Add", {product, offset}, {node.outputs[0]}, {}}, reference_s / 2);
  }

  void add(ProgramNode node, double reference_s) {
    program_.nodes.push_back(std::move(node));
    fixed_.reference_s.push_back(reference_s);
  }

  ValueId new_value(const TensorForm& form) {
    program_.values.push_back({"folded" + std::to_string(program_.values.size()), nullptr});
    fixed_.forms.push_back(form);
    readers_.push_back(1);
    return static_cast<ValueId>(program_.values.size()) - 1;
  }

  ValueId new_constant(DenseTensor tensor) {
    const ValueId id = new_value(form_of(tensor));
    program_.values[at(id)].constant = std::make_shared<const DenseTensor>(std::move(tensor));
    return id;
  }

  FixedProgram& fixed_;
  Program& program_;
  std::vector<int> readers_;  ///< By value; the program's outputs count as read.
};

}  // namespace

void fold_batch_normalizations(FixedProgram& fixed) { Folding(fixed).run(); }

}  // namespace braid
