#include "braid/frontend/graph_translator.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

/// Has all operations that are written here: RMSNormalization (23) and Swish (24) are the latest.
constexpr std::int64_t opset = 24;

}  // namespace

GraphTranslator::GraphTranslator(const Graph& graph, bool with_experts, AttentionForm attention)
    : graph_(graph),
      with_experts_(with_experts),
      attention_(attention),
      builder_(graph.name, opset),
      written_(graph.tensors.size()) {}

LayeredProgram GraphTranslator::program() {
  std::vector<bool> is_read(graph_.tensors.size(), false);
  for (const Operator& op : graph_.operators) {
    // What a loss reads is what inference gives.
    if (std::holds_alternative<Loss>(op.kind)) continue;
    for (const TensorId input : op.inputs) is_read[at(input)] = true;
    add(op);
  }
  std::vector<ValueId> outputs;
  for (const Operator& op : graph_.operators) {
    if (std::holds_alternative<Loss>(op.kind)) continue;
    const TensorId id = op.outputs.front();
    const bool is_output =
        std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
    if (!is_read[at(id)] || is_output) outputs.push_back(written_[at(id)].value);
  }
  LayeredProgram result;
  result.program = builder_.finish(std::move(outputs));
  list_values(result);
  result.operators = std::move(op_of_node_);
  return result;
}

void GraphTranslator::list_values(LayeredProgram& result) const {
  result.shapes.resize(result.program.values.size());
  for (std::size_t t = 0; t < written_.size(); ++t) {
    const Written& written = written_[t];
    if (written.value < 0) continue;
    if (graph_.tensors[t].is_parameter) {
      result.parameters.push_back(written.value);
    } else {
      result.shapes[at(written.value)] = written.shape;
    }
  }
  for (const Operator& op : graph_.operators) {
    if (!std::holds_alternative<Loss>(op.kind)) continue;
    const ValueId read = written_[at(op.inputs.front())].value;
    if (read >= 0) result.logits.push_back(read);
  }
  for (std::vector<ValueId>* list : {&result.parameters, &result.logits}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

void GraphTranslator::add(const Operator& op) {
  op_ = &op;
  nodes_of_op_ = 0;
  if (op.pass != Pass::forward) refuse("it belongs to training");
  if (op.outputs.size() != 1) refuse("it has several results");
  Written result = std::visit([&](const auto& kind) { return this->result(kind); }, op.kind);
  if (element_count(result.shape) != element_count(output().dims)) {
    refuse(fmt::format("nothing explains how its result gets the shape {}",
                       shape_text(output().dims)));
  }
  written_[at(op.outputs.front())] = std::move(result);
}

void GraphTranslator::refuse(const std::string& why) const {
  throw Error(fmt::format("{} cannot be run: {}: {}", graph_.name, op_->name, why),
              "give the model as an ONNX file");
}

bool GraphTranslator::is_parameter(std::size_t operand) const {
  return graph_.tensors[at(op_->inputs[operand])].is_parameter;
}

const Tensor& GraphTranslator::output() const { return graph_.tensors[at(op_->outputs.front())]; }

Shape GraphTranslator::output_shape() const {
  Shape shape = output().dims;
  const bool is_map = shape.size() == 3 && graph_.samples == 1;
  if (is_map) shape.insert(shape.begin(), 1);
  return shape;
}

const GraphTranslator::Written& GraphTranslator::operand(std::size_t number) {
  if (number >= operands()) refuse("an operand is missing");
  const TensorId id = op_->inputs[number];
  const Tensor& tensor = graph_.tensors[at(id)];
  Written& written = written_[at(id)];
  if (written.value >= 0) return written;
  written.shape = tensor.dims;
  if (tensor.is_parameter) {
    written.value = builder_.weight(written.shape, tensor.name);
  } else {
    if (written.shape.size() == 3 && graph_.samples == 1) {
      written.shape.insert(written.shape.begin(), 1);
    }
    const bool is_whole = tensor.dtype == Dtype::i64 || tensor.dtype == Dtype::i32;
    written.value =
        builder_.input(written.shape, is_whole ? ElementType::i64 : ElementType::f32, tensor.name);
  }
  return written;
}

ValueId GraphTranslator::node(const std::string& operation, std::vector<ValueId> inputs,
                              std::vector<Attribute> attributes, const std::string& domain) {
  const std::string name =
      nodes_of_op_ == 0 ? op_->name : fmt::format("{}.{}", op_->name, nodes_of_op_);
  ++nodes_of_op_;
  op_of_node_.push_back(static_cast<OperatorId>(op_ - graph_.operators.data()));
  return builder_.node(operation, std::move(inputs), std::move(attributes), name, domain);
}

ValueId GraphTranslator::reshaped(ValueId x, const Shape& shape) {
  return node("Reshape", {x, builder_.integers(shape)});
}

ValueId GraphTranslator::sliced(ValueId x, std::int64_t axis, std::int64_t first,
                                std::int64_t last) {
  return node("Slice", {x, builder_.integers(Shape{first}), builder_.integers(Shape{last}),
                        builder_.integers(Shape{axis})});
}

GraphTranslator::Written GraphTranslator::result(const MatMul& kind) {
  Written a = operand(0);
  Written b = operand(1);
  const Shape rows = kind.batch > 1 ? Shape{kind.batch, kind.m, kind.k} : Shape{kind.m, kind.k};
  const Shape columns = kind.batch > 1 ? Shape{kind.batch, kind.k, kind.n} : Shape{kind.k, kind.n};
  if (element_count(a.shape) != element_count(rows) ||
      element_count(b.shape) != element_count(columns)) {
    refuse("its operands are of other sizes than its product");
  }
  if (a.shape != rows) a.value = reshaped(a.value, rows);
  const bool lies_turned = kind.batch == 1 && b.shape == Shape{kind.n, kind.k} && kind.n != kind.k;
  if (!lies_turned && b.shape != columns) b.value = reshaped(b.value, columns);
  Shape shape = rows;
  shape.back() = kind.n;
  if (lies_turned) {
    std::vector<ValueId> inputs{a.value, b.value};
    if (kind.bias) inputs.push_back(operand(2).value);
    return {node("Gemm", inputs, {{"transB", std::int64_t{1}}}), shape};
  }
  ValueId y = node("MatMul", {a.value, b.value});
  if (kind.bias) y = node("Add", {y, operand(2).value});
  return {y, shape};
}

GraphTranslator::Written GraphTranslator::result(const Softmax&) {
  const Written& x = operand(0);
  return {node("Softmax", {x.value}, {{"axis", std::int64_t{-1}}}), x.shape};
}

GraphTranslator::Written GraphTranslator::result(const Normalization& kind) {
  const Written x = operand(0);
  if (element_count(x.shape) != kind.elements) refuse("it normalises a part of its operand");
  if (x.shape.size() == 4 && x.shape.back() != kind.width) return normalized_channels(x);
  if (x.shape.back() != kind.width) refuse("it does not normalise rows");
  const ValueId scale = operands() > 1 ? operand(1).value : builder_.weight({kind.width});
  if (kind.rms) return {node("RMSNormalization", {x.value, scale}), x.shape};
  std::vector<ValueId> inputs{x.value, scale};
  if (operands() > 2) inputs.push_back(operand(2).value);
  return {node("LayerNormalization", inputs), x.shape};
}

/// At inference means and variances are constants.
GraphTranslator::Written GraphTranslator::normalized_channels(const Written& x) {
  const Shape channels{x.shape[1]};
  std::vector<ValueId> inputs{x.value};
  for (std::size_t i = 1; i < 3; ++i) {
    if (i >= operands() || operand(i).shape != channels) refuse("it has no scale by channel");
    inputs.push_back(operand(i).value);
  }
  inputs.push_back(builder_.weight(channels, op_->name + ".mean"));
  inputs.push_back(builder_.weight(channels, op_->name + ".variance"));
  return {node("BatchNormalization", inputs), x.shape};
}

GraphTranslator::Written GraphTranslator::result(const Elementwise& kind) {
  if (operands() == 1) return one_operand(kind);
  if (operands() == 2) return two_operands();
  refuse("it is a function of more than two operands");
}

GraphTranslator::Written GraphTranslator::one_operand(const Elementwise& kind) {
  using Keeps = Elementwise::Keeps;
  Written x = operand(0);
  if (element_count(x.shape) == 2 * element_count(output().dims)) return gated();
  // A dropout multiplies by a mask and a scale, and does nothing at inference.
  if (kind.keeps == Keeps::mask && kind.flops_per_element == 2) return x;
  if (kind.keeps == Keeps::mask) return {node("Relu", {x.value}), x.shape};
  if (kind.flops_per_element == kGeluFlops) return {node("Gelu", {x.value}), x.shape};
  if (kind.flops_per_element == kSiluFlops) return {node("Swish", {x.value}), x.shape};
  return {node("Mul", {x.value, builder_.weight({x.shape.back()})}), x.shape};
}

/// Swish of one half of the columns times the other.
GraphTranslator::Written GraphTranslator::gated() {
  const Written x = operand(0);
  const std::int64_t width = x.shape.back() / 2;
  const std::int64_t axis = static_cast<std::int64_t>(x.shape.size()) - 1;
  const ValueId gate = sliced(x.value, axis, 0, width);
  const ValueId up = sliced(x.value, axis, width, 2 * width);
  Shape shape = x.shape;
  shape.back() = width;
  return {node("Mul", {node("Swish", {gate}), up}), shape};
}

GraphTranslator::Written GraphTranslator::two_operands() {
  Written a = operand(0);
  Written b = operand(1);
  if (is_parameter(1) && a.shape.size() == 2 && b.shape.size() == 2 && b.shape[0] > a.shape[0] &&
      b.shape[1] == a.shape[1]) {
    b.value = sliced(b.value, 0, 0, a.shape[0]);
    b.shape = a.shape;
  }
  const bool broadcast =
      element_count(b.shape) == 1 || (b.shape.size() == 1 && b.shape.back() == a.shape.back());
  if (a.shape != b.shape && !broadcast) refuse("its operands are of different shapes");
  return {node("Add", {a.value, b.value}), a.shape};
}

GraphTranslator::Written GraphTranslator::result(const Embedding& kind) {
  Written ids = operand(0);
  const Written table = operand(1);
  if (kind.pooling > 1 &&
      (element_count(ids.shape) != kind.lookups || kind.lookups % kind.pooling != 0)) {
    refuse("it looks up another number of rows than it has indices");
  }
  if (kind.pooling == 1) {
    Shape shape = ids.shape;
    shape.push_back(kind.width);
    const ValueId rows = node("Gather", {table.value, ids.value});
    const Shape out = output_shape();
    // The rows of a bag may lie side by side.
    const bool is_joined = out.back() != kind.width && element_count(out) == element_count(shape);
    return is_joined ? Written{reshaped(rows, out), out} : Written{rows, shape};
  }
  const std::int64_t count = kind.lookups / kind.pooling;
  const ValueId bags = reshaped(ids.value, {count, kind.pooling});
  const ValueId rows = node("Gather", {table.value, bags});
  return {node("ReduceSum", {rows, builder_.integers(Shape{1})}, {{"keepdims", std::int64_t{0}}}),
          {count, kind.width}};
}

GraphTranslator::Written GraphTranslator::result(const DataMovement&) {
  if (operands() > 1) return joined();
  const Written x = operand(0);
  const Shape shape = output_shape();
  if (element_count(x.shape) == element_count(shape)) return {reshaped(x.value, shape), shape};
  // The first rows.
  Shape rows = x.shape;
  rows[0] = shape[0];
  if (rows != shape || shape[0] > x.shape[0]) refuse("nothing says which elements it moves");
  return {sliced(x.value, 0, 0, shape[0]), shape};
}

/// Operands one after the other along the only dimension in which they may differ.
GraphTranslator::Written GraphTranslator::joined() {
  const Shape shape = output_shape();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::int64_t sum = 0;
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < operands(); ++i) {
      const Written& each = operand(i);
      Shape expected = shape;
      if (each.shape.size() != shape.size()) break;
      expected[axis] = each.shape[axis];
      if (expected != each.shape) break;
      sum += each.shape[axis];
      inputs.push_back(each.value);
    }
    if (inputs.size() == operands() && sum == shape[axis]) {
      return {node("Concat", inputs, {{"axis", static_cast<std::int64_t>(axis)}}), shape};
    }
  }
  refuse("nothing says how it joins its operands");
}

GraphTranslator::Written GraphTranslator::result(const Recurrent&) {
  refuse("recurrent cells are not written as operations");
}
GraphTranslator::Written GraphTranslator::result(const MoeRouter& kind) {
  if (!with_experts_) refuse("which expert takes which token is known only at run time");
  const Written x = operand(0);
  const Written weight = operand(1);
  if (x.shape != Shape{kind.tokens, kind.hidden} ||
      weight.shape != Shape{kind.hidden, kind.experts}) {
    refuse("its operands are of other sizes than its scores");
  }
  return {node("MatMul", {x.value, weight.value}), {kind.tokens, kind.experts}};
}
GraphTranslator::Written GraphTranslator::result(const MoeExperts& kind) {
  if (!with_experts_) refuse("which expert takes which token is known only at run time");
  if (kind.padded) refuse("which tokens it drops depends on which others there are");
  if (kind.clamped) refuse("nothing says at what its activation is clamped");
  const Written x = operand(0);
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < operands(); ++i) inputs.push_back(operand(i).value);
  if (operands() != (kind.biased ? 4U : 3U) || x.shape != Shape{kind.tokens, kind.hidden} ||
      operand(2).shape != Shape{kind.experts, kind.matrices, kind.hidden, kind.inner}) {
    refuse("its operands are of other sizes than its experts");
  }
  return {node("Experts", inputs, {{"top_k", kind.top_k}}, kBraidDomain), x.shape};
}
GraphTranslator::Written GraphTranslator::result(const Loss&) { refuse("it belongs to training"); }
GraphTranslator::Written GraphTranslator::result(const OptimizerStep&) {
  refuse("it belongs to training");
}

}  // namespace braid
