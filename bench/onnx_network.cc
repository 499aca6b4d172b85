#include "onnx_network.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

namespace braid {

std::string onnx_network(std::int64_t blocks, std::int64_t width) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(15);
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::ValueInfoProto* input = graph->add_input();
  input->set_name("x");
  onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("batch");
  type->mutable_shape()->add_dim()->set_dim_value(width);
  const auto weight = [&](const std::string& name, bool matrix) {
    onnx::TensorProto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value("weights.bin");
    if (matrix) tensor->add_dims(width);
    tensor->add_dims(width);
    return name;
  };
  const auto node = [&](const char* operation, const std::string& a, const std::string& b,
                        const std::string& out) {
    onnx::NodeProto* added = graph->add_node();
    added->set_op_type(operation);
    added->set_name(out + "_" + operation);
    added->add_input(a);
    if (!b.empty()) added->add_input(b);
    added->add_output(out);
    return out;
  };
  std::string x = "x";
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::string block = fmt::format("block{}.", i);
    std::string y = node("MatMul", x, weight(block + "weight", true), block + "product");
    y = node("Add", y, weight(block + "bias", false), block + "sum");
    y = node(i % 10 == 5 ? "Tanh" : "Relu", y, "", block + "active");
    x = node("Add", x, y, block + "out");
  }
  graph->add_output()->set_name(x);
  return model.SerializeAsString();
}

}  // namespace braid
