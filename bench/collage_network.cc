#include "collage_network.h"

#include <memory>
#include <utility>
#include <vector>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"
#include "braid/program/random_tensor.h"

namespace braid {
namespace {

Shape shape_of(const Value& value) {
  Shape shape;
  for (const Value& each : value.elements()) shape.push_back(each.as_int());
  return shape;
}

class NetworkReader {
 public:
  Program read(const std::string& path) {
    const Document document = Document::parse_file(path);
    const Value root = document.root();
    program_.name = std::string(root["network"].as_string());
    program_.opset = 17;
    for (const Value& each : root["nodes"].elements()) add(each);
    program_.outputs = {values_[at(root["output"].as_int())]};
    fill_missing_weights(program_, 1);
    return std::move(program_);
  }

 private:
  ValueId value() {
    program_.values.push_back({"v" + std::to_string(program_.values.size()), nullptr});
    return static_cast<ValueId>(program_.values.size()) - 1;
  }

  ValueId constant(const Shape& numbers) {
    const ValueId id = value();
    program_.values[at(id)].constant = std::make_shared<const DenseTensor>(
        tensor_of(ElementType::i64, {static_cast<std::int64_t>(numbers.size())}, numbers));
    return id;
  }

  ValueId real(double number) {
    const ValueId id = value();
    program_.values[at(id)].constant = std::make_shared<const DenseTensor>(
        tensor_of(ElementType::f32, {}, std::vector<double>{number}));
    return id;
  }

  ValueId node(const std::string& operation, std::vector<ValueId> inputs,
               std::vector<Attribute> attributes = {}) {
    const ValueId id = value();
    program_.nodes.push_back({operation + std::to_string(id),
                              "",
                              operation,
                              std::move(inputs),
                              {id},
                              std::move(attributes)});
    return id;
  }

  void add(const Value& each) {
    const std::string op(each["op"].as_string());
    std::vector<ValueId> inputs;
    for (const Value& input : each["inputs"].elements()) {
      const std::int64_t number = input.as_int();
      if (fields_[at(number)].empty()) {
        inputs.push_back(values_[at(number)]);
      } else {
        inputs.insert(inputs.end(), fields_[at(number)].begin(), fields_[at(number)].end());
      }
    }
    fields_.emplace_back();
    values_.push_back(-1);
    if (op == "tuple") {
      fields_.back() = inputs;
    } else if (op == "input") {
      values_.back() = value();
      program_.inputs.push_back({values_.back(), ElementType::f32, shape_of(each["shape"])});
    } else if (op == "const") {
      values_.back() = value();
      program_.missing.push_back({values_.back(), ElementType::f32, shape_of(each["shape"])});
    } else {
      values_.back() = computed(op, each, inputs);
    }
    shapes_.push_back(op == "tuple" ? Shape() : shape_of(each["shape"]));
  }

  ValueId computed(const std::string& op, const Value& each, const std::vector<ValueId>& inputs) {
    static const std::vector<std::pair<std::string, std::string>> same{
        {"nn.relu", "Relu"}, {"add", "Add"},         {"subtract", "Sub"},
        {"multiply", "Mul"}, {"divide", "Div"},      {"sqrt", "Sqrt"},
        {"tanh", "Tanh"},    {"sigmoid", "Sigmoid"}, {"nn.softmax", "Softmax"}};
    for (const auto& [relay, onnx] : same) {
      if (op == relay) return node(onnx, inputs);
    }
    if (op == "nn.dense") return node("Gemm", inputs, {{"transB", std::int64_t{1}}});
    if (op == "nn.batch_matmul") {
      return node("MatMul",
                  {inputs[0], node("Transpose", {inputs[1]}, {{"perm", Shape{0, 2, 1}}})});
    }
    const Value attrs = each["attrs"];
    if (op == "nn.conv2d" || op == "nn.conv3d") {
      return node("Conv", inputs,
                  {{"strides", shape_of(attrs["strides"])},
                   {"pads", shape_of(attrs["padding"])},
                   {"dilations", shape_of(attrs["dilation"])},
                   {"group", attrs["groups"].as_int()}});
    }
    if (op == "nn.max_pool2d" || op == "nn.avg_pool2d") {
      return node(op == "nn.max_pool2d" ? "MaxPool" : "AveragePool", inputs,
                  {{"kernel_shape", shape_of(attrs["pool_size"])},
                   {"strides", shape_of(attrs["strides"])},
                   {"pads", shape_of(attrs["padding"])}});
    }
    if (op == "concatenate") return node("Concat", inputs, {{"axis", attrs["axis"].as_int()}});
    if (op == "transpose") return node("Transpose", inputs, {{"perm", shape_of(attrs["axes"])}});
    if (op == "reshape") return node("Reshape", {inputs[0], constant(shape_of(attrs["newshape"]))});
    if (op == "image.resize") {
      Shape sizes = shape_of(each["shape"]);
      return node("Resize", {inputs[0], -1, -1, constant(sizes)},
                  {{"mode", std::string("nearest")},
                   {"nearest_mode", std::string("floor")},
                   {"coordinate_transformation_mode", std::string("asymmetric")}});
    }
    if (op == "mean") return node("ReduceMean", inputs, {{"axes", Shape{-1}}});
    if (op == "variance") {
      const ValueId squares =
          node("ReduceSumSquare", {node("Sub", {inputs[0], inputs[1]})}, {{"axes", Shape{-1}}});
      const Shape& shape = shapes_[at(each["inputs"][std::size_t{0}].as_int())];
      return node("Div", {squares, real(static_cast<double>(shape.back() - 1))});
    }
    throw Error("the operator " + op + " is not known here");
  }

  Program program_;
  std::vector<ValueId> values_;               ///< By node of the network.
  std::vector<std::vector<ValueId>> fields_;  ///< Of tuples.
  std::vector<Shape> shapes_;
};

}  // namespace

Program collage_network(const std::string& path) { return NetworkReader().read(path); }

}  // namespace braid
