#include "braid/frontend/onnx_program.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/index.h"
#include "braid/base/text.h"
#include "braid/frontend/onnx_model.h"
#include "braid/frontend/onnx_names.h"
#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_types.h"

namespace braid {
namespace {

std::optional<DenseTensor> dense(const OnnxTensor& tensor) {
  const auto type = element_type_of(tensor.type);
  if (!type || tensor.bytes == nullptr) return std::nullopt;
  DenseTensor result(*type, tensor.dims);
  if (!tensor.bytes->empty()) {
    std::memcpy(result.data.data(), tensor.bytes->data(), tensor.bytes->size());
  }
  if (*type == ElementType::boolean) {
    for (std::byte& each : result.data) each = std::byte{each != std::byte{0}};
  }
  return result;
}

class ProgramReader {
 public:
  ProgramReader(OnnxModel model, const std::string& file,
                const std::map<std::string, std::int64_t>& dims)
      : model_(std::move(model)), file_(file), dims_(dims) {}

  Program read() {
    program_.name = std::filesystem::path(file_).stem().string();
    for (const auto& [domain, version] : model_.opsets) {
      if (domain.empty() || domain == "ai.onnx") program_.opset = version;
    }
    for (const std::string& value : model_.values) program_.values.push_back({value, nullptr});
    defined_.resize(model_.values.size(), false);
    for (OnnxInitializer& each : model_.initializers) read_initializer(each);
    for (const OnnxDeclaration& each : model_.inputs) read_input(each);
    const std::vector<std::string> names = node_names(model_);
    for (std::size_t i = 0; i < names.size(); ++i) read_node(model_.nodes[i], names[i]);
    for (const OnnxDeclaration& each : model_.outputs) {
      if (!defined_[at(each.value)]) fail("output " + name(each.value), "nothing computes it");
      program_.outputs.push_back(each.value);
    }
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         const std::string& remedy = {}) const {
    throw Error(Where{file_, 0, key}, message, remedy);
  }

  std::string name(OnnxValueId id) const { return in_quotes(model_.values[at(id)]); }

  void define(OnnxValueId id, const std::string& where) {
    if (defined_[at(id)]) fail(where, "defines " + name(id) + ", which is defined already");
    defined_[at(id)] = true;
  }

  ElementType need_type(OnnxType type, const std::string& where) const {
    const auto known = element_type_of(type);
    if (known) return *known;
    fail(where, "its type is not supported",
         "numbers are, except complex ones and those of less than 16 bits that are not whole");
  }

  void read_initializer(OnnxInitializer& each) {
    const std::string where = "initializer " + name(each.value);
    define(each.value, where);
    const ElementType type = need_type(each.tensor.type, where);
    if (!sizes_fit(each.tensor.dims)) {
      fail(where, "its shape " + text_of(each.tensor.dims) + " does not fit in 64 bits");
    }
    auto tensor = dense(each.tensor);
    if (!tensor && element_count(each.tensor.dims) == 0)
      tensor = DenseTensor(type, each.tensor.dims);
    if (tensor) {
      program_.values[at(each.value)].constant =
          std::make_shared<const DenseTensor>(*std::move(tensor));
    } else {
      program_.missing.push_back({each.value, type, each.tensor.dims});
    }
    each.tensor.bytes.reset();
  }

  void read_input(const OnnxDeclaration& each) {
    if (defined_[at(each.value)]) return;  // Old files list initializers among the inputs too.
    const std::string where = "input " + name(each.value);
    define(each.value, where);
    if (!each.is_tensor) fail(where, "is no tensor", "only models of tensors are supported");
    ProgramInput input{each.value, need_type(each.type, where), std::nullopt};
    if (each.dims) {
      Shape shape;
      for (const OnnxDim& dim : *each.dims) {
        const auto given = dims_.find(dim.symbol);
        if (!dim.size && given == dims_.end()) break;
        shape.push_back(dim.size ? *dim.size : given->second);
      }
      if (!sizes_fit(shape)) fail(where, "its shape " + text_of(shape) + " does not fit");
      if (shape.size() == each.dims->size()) input.shape = std::move(shape);
    }
    program_.inputs.push_back(std::move(input));
  }

  void read_node(OnnxNode& node, const std::string& node_name) {
    const std::string where = "node " + in_quotes(node_name);
    const OnnxOperation& operation = model_.operations[at(node.operation)];
    for (const OnnxValueId id : node.inputs) {
      if (id >= 0 && !defined_[at(id)]) {
        fail(where, "reads " + name(id) + " before it is computed",
             "list nodes after those that they read from, without cycles");
      }
    }
    for (const OnnxValueId id : node.outputs) {
      if (id >= 0) define(id, where);
    }
    ProgramNode read{.name = node_name,
                     .domain = operation.domain,
                     .operation = operation.name,
                     .inputs = std::move(node.inputs),
                     .outputs = std::move(node.outputs),
                     .attributes = {}};
    for (OnnxAttribute& each : node.attributes) {
      read.attributes.push_back({std::move(each.name), value_of(each)});
    }
    program_.nodes.push_back(std::move(read));
  }

  static AttributeValue value_of(OnnxAttribute& attribute) {
    return std::visit(
        []<typename Value>(Value& value) -> AttributeValue {
          if constexpr (std::is_same_v<Value, OnnxOther>) {
            return std::monostate();
          } else if constexpr (std::is_same_v<Value, std::unique_ptr<OnnxTensor>>) {
            auto tensor = dense(*value);
            if (!tensor) return std::monostate();
            return std::make_shared<const DenseTensor>(*std::move(tensor));
          } else {
            return std::move(value);
          }
        },
        attribute.value);
  }

  OnnxModel model_;
  const std::string& file_;
  const std::map<std::string, std::int64_t>& dims_;
  std::vector<bool> defined_;  ///< By value.
  Program program_;
};

}  // namespace

Program program_from_onnx(const std::string& path,
                          const std::map<std::string, std::int64_t>& dims) {
  return ProgramReader(read_onnx(path, OnnxTensors::whole), path, dims).read();
}

Program program_from_onnx_bytes(std::string_view bytes, const std::string& file,
                                const std::map<std::string, std::int64_t>& dims) {
  return ProgramReader(parse_onnx(bytes, file, OnnxTensors::whole), file, dims).read();
}

DenseTensor tensor_from_onnx(const std::string& path) {
  const OnnxTensor tensor = parse_onnx_tensor(read_file(path), path);
  auto result = dense(tensor);
  if (result) return *std::move(result);
  throw Error(Where{path, 0, ""}, "has no tensor of numbers");
}

}  // namespace braid
