#include "frontend/onnx_model_builder.h"

#include <onnx/onnx_pb.h>

namespace braid {
namespace {

void set_type(onnx::ValueInfoProto& info, const std::string& name,
              const OnnxModelBuilder::Dims& dims, int type) {
  info.set_name(name);
  onnx::TypeProto::Tensor* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const OnnxModelBuilder::Dim& dim : dims) {
    onnx::TensorShapeProto::Dimension* added = tensor->mutable_shape()->add_dim();
    if (const auto* small = std::get_if<int>(&dim)) added->set_dim_value(*small);
    if (const auto* size = std::get_if<std::int64_t>(&dim)) added->set_dim_value(*size);
    if (const auto* symbol = std::get_if<std::string>(&dim)) added->set_dim_param(*symbol);
  }
}

}  // namespace

OnnxModelBuilder::OnnxModelBuilder(std::int64_t opset)
    : model_(std::make_unique<onnx::ModelProto>()) {
  model_->set_ir_version(8);
  model_->add_opset_import()->set_version(opset);
  model_->mutable_graph()->set_name("model");
}

OnnxModelBuilder::~OnnxModelBuilder() = default;

void OnnxModelBuilder::input(const std::string& name, const Dims& dims, int type) {
  set_type(*model_->mutable_graph()->add_input(), name, dims, type);
}

void OnnxModelBuilder::output(const std::string& name) {
  model_->mutable_graph()->add_output()->set_name(name);
}

void OnnxModelBuilder::declare(const std::string& name, const Dims& dims, int type) {
  set_type(*model_->mutable_graph()->add_value_info(), name, dims, type);
}

void OnnxModelBuilder::weight(const std::string& name, const std::vector<std::int64_t>& dims,
                              int type) {
  onnx::TensorProto* tensor = model_->mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const std::int64_t size : dims) tensor->add_dims(size);
}

void OnnxModelBuilder::integer(const std::string& name, std::int64_t value) {
  weight(name, {}, 7);
  model_->mutable_graph()->mutable_initializer()->rbegin()->add_int64_data(value);
}

void OnnxModelBuilder::integers(const std::string& name, const std::vector<std::int64_t>& values) {
  weight(name, {static_cast<std::int64_t>(values.size())}, 7);
  onnx::TensorProto& tensor = *model_->mutable_graph()->mutable_initializer()->rbegin();
  for (const std::int64_t value : values) tensor.add_int64_data(value);
}

void OnnxModelBuilder::scalar(const std::string& name, float value) {
  weight(name, {}, 1);
  model_->mutable_graph()->mutable_initializer()->rbegin()->add_float_data(value);
}

void OnnxModelBuilder::node(const std::string& operation, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const Attributes& attributes) {
  onnx::NodeProto* node = model_->mutable_graph()->add_node();
  node->set_op_type(operation);
  for (const std::string& each : inputs) node->add_input(each);
  for (const std::string& each : outputs) node->add_output(each);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    if (const auto* integer = std::get_if<int>(&value)) {
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*integer);
    } else if (const auto* real = std::get_if<float>(&value)) {
      attribute->set_type(onnx::AttributeProto::FLOAT);
      attribute->set_f(*real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      attribute->set_type(onnx::AttributeProto::STRING);
      attribute->set_s(*text);
    } else {
      attribute->set_type(onnx::AttributeProto::INTS);
      for (const std::int64_t each : std::get<std::vector<std::int64_t>>(value)) {
        attribute->add_ints(each);
      }
    }
  }
}

std::string OnnxModelBuilder::bytes() const { return model_->SerializeAsString(); }

}  // namespace braid
