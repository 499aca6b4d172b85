#include "collage_network.h"

#include <memory>
#include <utility>
#include <vector>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/program_builder.h"
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
    for (const Value& each : root["nodes"].elements()) add(each);
    Program program = builder_.finish({values_[at(root["output"].as_int())]});
    program.name = std::string(root["network"].as_string());
    fill_missing_weights(program, 1);
    return program;
  }

 private:
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
      values_.back() = builder_.input(shape_of(each["shape"]));
    } else if (op == "const") {
      values_.back() = builder_.weight(shape_of(each["shape"]));
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
      if (op == relay) return builder_.node(onnx, inputs);
    }
    if (op == "nn.dense") return builder_.node("Gemm", inputs, {{"transB", std::int64_t{1}}});
    if (op == "nn.batch_matmul") {
      return builder_.node("MatMul", {inputs[0], builder_.node("Transpose", {inputs[1]},
                                                               {{"perm", Shape{0, 2, 1}}})});
    }
    const Value attrs = each["attrs"];
    if (op == "nn.conv2d" || op == "nn.conv3d") {
      return builder_.node("Conv", inputs,
                           {{"strides", shape_of(attrs["strides"])},
                            {"pads", shape_of(attrs["padding"])},
                            {"dilations", shape_of(attrs["dilation"])},
                            {"group", attrs["groups"].as_int()}});
    }
    if (op == "nn.max_pool2d" || op == "nn.avg_pool2d") {
      return builder_.node(op == "nn.max_pool2d" ? "MaxPool" : "AveragePool", inputs,
                           {{"kernel_shape", shape_of(attrs["pool_size"])},
                            {"strides", shape_of(attrs["strides"])},
                            {"pads", shape_of(attrs["padding"])}});
    }
    if (op == "concatenate")
      return builder_.node("Concat", inputs, {{"axis", attrs["axis"].as_int()}});
    if (op == "transpose")
      return builder_.node("Transpose", inputs, {{"perm", shape_of(attrs["axes"])}});
    if (op == "reshape")
      return builder_.node("Reshape", {inputs[0], builder_.integers(shape_of(attrs["newshape"]))});
    if (op == "image.resize") {
      Shape sizes = shape_of(each["shape"]);
      return builder_.node("Resize", {inputs[0], -1, -1, builder_.integers(sizes)},
                           {{"mode", std::string("nearest")},
                            {"nearest_mode", std::string("floor")},
                            {"coordinate_transformation_mode", std::string("asymmetric")}});
    }
    if (op == "mean") return builder_.node("ReduceMean", inputs, {{"axes", Shape{-1}}});
    if (op == "variance") {
      const ValueId squares = builder_.node(
          "ReduceSumSquare", {builder_.node("Sub", {inputs[0], inputs[1]})}, {{"axes", Shape{-1}}});
      const Shape& shape = shapes_[at(each["inputs"][std::size_t{0}].as_int())];
      return builder_.node("Div", {squares, builder_.real(static_cast<double>(shape.back() - 1))});
    }
    throw Error("the operator " + op + " is not known here");
  }

  ProgramBuilder builder_{""};
  std::vector<ValueId> values_;               ///< By node of the network.
  std::vector<std::vector<ValueId>> fields_;  ///< Of tuples.
  std::vector<Shape> shapes_;
};

}  // namespace

Program collage_network(const std::string& path) { return NetworkReader().read(path); }

}  // namespace braid
