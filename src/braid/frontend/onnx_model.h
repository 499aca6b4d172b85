#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid {

/// A named value of an ONNX graph; -1 stands for an optional operand that is left out.
using OnnxValueId = std::int32_t;

/// TensorProto.DataType, as far as braid names them.
enum class OnnxType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8_last = 20,  ///< 17 to 20 are the 8-bit floats.
  u4 = 21,
  i4 = 22,
  f4 = 23,
};

/// The elements of a small tensor: whole numbers for integers and booleans, else reals.
using OnnxConstant = std::variant<std::vector<std::int64_t>, std::vector<double>>;

struct OnnxTensor {
  OnnxType type = OnnxType::undefined;
  std::vector<std::int64_t> dims;
  /// Known for booleans and integers (but not signed bytes, which are weights) of at most 8 KiB,
  /// and for up to 16 reals, when they are inside the file. All else is passed over.
  std::shared_ptr<const OnnxConstant> values;
  /// All elements as the machine stores them, row-major; only of tensors that are read whole. Not
  /// there when the file has left them out, and for types without numbers.
  std::shared_ptr<const std::string> bytes;
};

enum class OnnxTensors : std::uint8_t {
  small,  ///< Weights are passed over, those in other files never opened.
  whole,  ///< All of them are read, those in other files of the model's folder too.
};

/// A subgraph or another value that braid has no use for.
struct OnnxOther {};

struct OnnxAttribute {
  std::string name;
  std::variant<OnnxOther, std::int64_t, double, std::string, std::vector<std::int64_t>,
               std::vector<double>, std::vector<std::string>, std::unique_ptr<OnnxTensor>>
      value;
};

struct OnnxNode {
  std::string name;             ///< Often empty, and not always unique.
  std::int32_t operation = -1;  ///< In OnnxModel::operations.
  std::vector<OnnxValueId> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

/// A dimension as the file declares it: a size, a symbol, or (neither) unknown.
struct OnnxDim {
  std::optional<std::int64_t> size;
  std::string symbol;
};

/// What the file declares about an input, an output or a value in between.
struct OnnxDeclaration {
  OnnxValueId value = -1;
  bool is_tensor = true;  ///< Not a sequence, a map, an optional or a sparse tensor.
  OnnxType type = OnnxType::undefined;
  std::optional<std::vector<OnnxDim>> dims;  ///< nullopt when not even the rank is declared.
};

struct OnnxInitializer {
  OnnxValueId value = -1;
  OnnxTensor tensor;
};

/// Kinds of operation by domain and name ("" is ONNX's own domain).
struct OnnxOperation {
  std::string domain, name;
};

/// An ONNX file without its weights.
struct OnnxModel {
  std::int64_t ir_version = 0;
  std::vector<std::pair<std::string, std::int64_t>> opsets;  ///< Version by domain.
  std::vector<std::string> values;                           ///< Names by OnnxValueId.
  std::vector<OnnxOperation> operations;
  std::set<std::string> functions;  ///< Names of operations that the file defines itself.
  std::vector<OnnxNode> nodes;
  std::vector<OnnxInitializer> initializers;
  std::vector<OnnxDeclaration> inputs, outputs, others;
};

/// Reads the wire form of an onnx.ModelProto. `file` is for messages, and its folder is where the
/// files are that it says its weights are in. With small tensors alone memory stays in proportion
/// to the file without its weights. Throws Error for what is no such message (truncated, bad
/// varints, wrong wire types), for tensors whose data has not the size that their dimensions say,
/// for external data outside of the model's folder, for sparse initializers and for nodes without
/// an operation. Linear in the file's size.
OnnxModel read_onnx(const std::string& path, OnnxTensors tensors = OnnxTensors::small);
OnnxModel parse_onnx(std::string_view bytes, const std::string& file,
                     OnnxTensors tensors = OnnxTensors::small);

/// The wire form of an onnx.TensorProto, whole. Throws Error as above.
OnnxTensor parse_onnx_tensor(std::string_view bytes, const std::string& file);

}  // namespace braid
