#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace braid {

/// Writes ONNX models with the ONNX project's own library.
class OnnxModelBuilder {
 public:
  using Dim = std::variant<int, std::int64_t, std::string>;
  using Dims = std::vector<Dim>;
  using Attribute = std::variant<int, float, std::string, std::vector<std::int64_t>>;
  using Attributes = std::vector<std::pair<std::string, Attribute>>;

  explicit OnnxModelBuilder(std::int64_t opset = 15);
  ~OnnxModelBuilder();
  OnnxModelBuilder(const OnnxModelBuilder&) = delete;
  OnnxModelBuilder& operator=(const OnnxModelBuilder&) = delete;

  /// `type` is a TensorProto.DataType: 1 is f32, 7 is i64.
  void input(const std::string& name, const Dims& dims, int type = 1);
  void output(const std::string& name);
  /// Declares the shape of a value in between.
  void declare(const std::string& name, const Dims& dims, int type = 1);
  /// A weight without data, which is as good as one with it.
  void weight(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1);
  /// A list of whole numbers, and one number without dimensions.
  void integer(const std::string& name, std::int64_t value);
  void integers(const std::string& name, const std::vector<std::int64_t>& values);
  void scalar(const std::string& name, float value);
  void node(const std::string& operation, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const Attributes& attributes = {});

  onnx::ModelProto& model() { return *model_; }
  std::string bytes() const;

 private:
  std::unique_ptr<onnx::ModelProto> model_;
};

}  // namespace braid
