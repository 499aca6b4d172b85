#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/text.h"
#include "braid/frontend/onnx_model.h"
#include "braid/frontend/onnx_names.h"
#include "braid/frontend/onnx_tensor_data.h"
#include "braid/frontend/onnx_wire.h"

namespace braid {
namespace {

using google::protobuf::io::CodedInputStream;

/// Protocol buffers cannot be longer.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostOpsets = 1000;
/// How many names to make room for; files of weights have far fewer.
constexpr std::size_t kBytesPerName = 64;
constexpr std::size_t kMostExpectedNames = std::size_t{1} << 20;

class ModelReader {
 public:
  /// `size`: of the file, in bytes.
  ModelReader(CodedInputStream& in, const std::string& file, std::size_t size, OnnxTensors tensors)
      : wire_(in, file),
        folder_(std::filesystem::path(file).parent_path().string()),
        tensors_(tensors),
        values_(std::min(size / kBytesPerName, kMostExpectedNames)) {}

  /// When what is read is a tensor and no model.
  OnnxTensor read_only_tensor() {
    std::string name;
    return read_tensor(name);
  }

  OnnxModel read() {
    wire_.fields([&](int field) {
      switch (field) {
        case 1:
          model_.ir_version = wire_.integer();
          break;
        case 7:
          if (std::exchange(has_graph_, true)) wire_.fail("the model has two graphs");
          wire_.message([&](int inner) { graph_field(inner); });
          break;
        case 8:
          read_opset();
          break;
        case 25:
          read_function();
          break;
        default:
          wire_.skip();
      }
    });
    if (!has_graph_) wire_.fail("is no ONNX model: it has no graph", "export it again");
    model_.values = values_.take();
    for (std::string& name : operations_.take()) {
      const std::size_t end = name.find('\0');
      model_.operations.push_back({name.substr(0, end), name.substr(end + 1)});
    }
    return std::move(model_);
  }

 private:
  void read_opset() {
    std::string domain;
    std::int64_t version = 0;
    wire_.message([&](int field) {
      switch (field) {
        case 1:
          domain = wire_.text();
          break;
        case 2:
          version = wire_.integer();
          break;
        default:
          wire_.skip();
      }
    });
    if (model_.opsets.size() >= kMostOpsets) wire_.fail("uses too many domains of operations");
    model_.opsets.emplace_back(std::move(domain), version);
  }

  void read_function() {
    std::string name;
    wire_.message([&](int field) { field == 1 ? void(name = wire_.text()) : wire_.skip(); });
    model_.functions.insert(std::move(name));
  }

  void graph_field(int field) {
    switch (field) {
      case 1:
        model_.nodes.push_back(read_node());
        break;
      case 5: {
        std::string name;
        OnnxTensor tensor = inner_tensor(name);
        if (name.empty()) wire_.fail("an initializer has no name");
        model_.initializers.push_back({value(name), std::move(tensor)});
        break;
      }
      case 11:
        model_.inputs.push_back(read_declaration());
        break;
      case 12:
        model_.outputs.push_back(read_declaration());
        break;
      case 13:
        model_.others.push_back(read_declaration());
        break;
      case 15:
        wire_.fail("sparse initializers are not supported", "export the weights as dense tensors");
      default:
        wire_.skip();
    }
  }

  OnnxValueId value(std::string_view name) { return name.empty() ? -1 : values_.number(name); }

  OnnxNode read_node() {
    OnnxNode node;
    std::string operation, domain;
    wire_.message([&](int field) {
      switch (field) {
        case 1:
          node.inputs.push_back(value(wire_.text()));
          break;
        case 2:
          node.outputs.push_back(value(wire_.text()));
          break;
        case 3:
          node.name = wire_.text();
          break;
        case 4:
          operation = wire_.text();
          break;
        case 5:
          node.attributes.push_back(read_attribute());
          break;
        case 7:
          domain = wire_.text();
          break;
        default:
          wire_.skip();
      }
    });
    if (operation.empty()) {
      wire_.fail(
          fmt::format("node {} ({}) has no operation", model_.nodes.size(), in_quotes(node.name)));
    }
    if (domain == "ai.onnx") domain.clear();
    domain += '\0';
    node.operation = operations_.number(domain + operation);
    return node;
  }

  OnnxAttribute read_attribute() {
    OnnxAttribute attribute;
    std::int64_t type = 0;
    bool has_value = false;
    const auto list = [&]<typename Element>(Element element) {
      has_value = true;
      using List = std::vector<Element>;
      if (!std::holds_alternative<List>(attribute.value)) attribute.value = List();
      std::get<List>(attribute.value).push_back(std::move(element));
    };
    wire_.message([&](int field) {
      switch (field) {
        case 1:
          attribute.name = wire_.text();
          break;
        case 2:
          attribute.value = wire_.real();
          has_value = true;
          break;
        case 3:
          attribute.value = wire_.integer();
          has_value = true;
          break;
        case 4: {
          std::string bytes;
          wire_.bytes_up_to(OnnxWire::most_name_bytes, bytes);
          attribute.value = std::move(bytes);
          has_value = true;
          break;
        }
        case 5: {
          std::string name;
          attribute.value = std::make_unique<OnnxTensor>(inner_tensor(name));
          has_value = true;
          break;
        }
        case 7:
          wire_.floats(list);
          break;
        case 8:
          wire_.integers(list);
          break;
        case 9: {
          std::string bytes;
          wire_.bytes_up_to(OnnxWire::most_name_bytes, bytes);
          list(std::move(bytes));
          break;
        }
        case 20:
          type = wire_.integer();
          break;
        case 21:
          wire_.fail("a node refers to an attribute of a function, outside of any");
        default:
          wire_.skip();
      }
    });
    if (attribute.name.empty()) wire_.fail("an attribute has no name");
    // Some writers leave out values that are zero or empty.
    constexpr std::int64_t real = 1, integer = 2, text = 3, reals = 6, integers = 7;
    if (!has_value && type == real) attribute.value = 0.0;
    if (!has_value && type == integer) attribute.value = std::int64_t{0};
    if (!has_value && type == text) attribute.value = std::string();
    if (!has_value && type == reals) attribute.value = std::vector<double>();
    if (!has_value && type == integers) attribute.value = std::vector<std::int64_t>();
    return attribute;
  }

  OnnxTensor inner_tensor(std::string& name) {
    OnnxTensor tensor;
    wire_.message_of([&] { tensor = read_tensor(name); });
    return tensor;
  }

  /// All fields of the message in hand.
  OnnxTensor read_tensor(std::string& name) {
    OnnxTensorData data(tensors_);
    wire_.fields([&](int field) {
      switch (field) {
        case 1:
          wire_.integers([&](std::int64_t size) { data.add_dim(size); });
          break;
        case 2:
          data.type = static_cast<OnnxType>(wire_.integer());
          break;
        case 4:
          wire_.floats([&](double value) { data.add(value); });
          break;
        case 5:
        case 7:
        case 11:
          wire_.integers([&](std::int64_t value) { data.add(value); });
          break;
        case 6:
          wire_.pass_over();
          break;
        case 8:
          name = wire_.text();
          break;
        case 9:
          data.raw_size = wire_.bytes_up_to(data.most_raw_bytes(), data.raw);
          break;
        case 10:
          wire_.doubles([&](double value) { data.add(value); });
          break;
        case 13:
          read_external(data);
          break;
        case 14:
          data.is_external = wire_.integer() == 1;
          break;
        default:
          wire_.skip();
      }
    });
    if (const std::string problem = data.problem(); !problem.empty()) {
      wire_.fail("tensor " + in_quotes(name) + " " + problem, "export it again");
    }
    return data.tensor(folder_);
  }

  /// A path that leads elsewhere is a sign of malice.
  void read_external(OnnxTensorData& data) {
    std::string key, text;
    wire_.message([&](int field) {
      switch (field) {
        case 1:
          key = wire_.text();
          break;
        case 2:
          text = wire_.text();
          break;
        default:
          wire_.skip();
      }
    });
    if (key == "offset") {
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), data.offset_bytes);
      if (error != std::errc() || end != text.data() + text.size()) {
        wire_.fail("a tensor's data begins at " + in_quotes(text) + ", which is no number");
      }
    }
    if (key == "location") data.location = std::move(text);
  }

  OnnxDeclaration read_declaration() {
    OnnxDeclaration declaration;
    wire_.message([&](int field) {
      switch (field) {
        case 1:
          declaration.value = value(wire_.text());
          break;
        case 2:
          wire_.message([&](int kind) {
            if (kind != 1) {
              if (kind != 6) declaration.is_tensor = false;  // 6 is only a comment.
              wire_.skip();
              return;
            }
            wire_.message([&](int part) { tensor_type_field(part, declaration); });
          });
          break;
        default:
          wire_.skip();
      }
    });
    if (declaration.value < 0) wire_.fail("an input, output or value has no name");
    return declaration;
  }

  void tensor_type_field(int field, OnnxDeclaration& declaration) {
    switch (field) {
      case 1:
        declaration.type = static_cast<OnnxType>(wire_.integer());
        break;
      case 2: {
        if (!declaration.dims) declaration.dims.emplace();
        wire_.message([&](int part) {
          if (part != 1) return wire_.skip();
          if (declaration.dims->size() >= OnnxTensorData::most_dimensions) {
            wire_.fail("a value has too many dimensions");
          }
          declaration.dims->push_back(read_dim());
        });
        break;
      }
      default:
        wire_.skip();
    }
  }

  OnnxDim read_dim() {
    OnnxDim dim;
    wire_.message([&](int field) {
      switch (field) {
        case 1:
          dim.size = wire_.integer();
          break;
        case 2:
          dim.symbol = wire_.text();
          break;
        default:
          wire_.skip();
      }
    });
    return dim;
  }

  OnnxWire wire_;
  std::string folder_;
  OnnxTensors tensors_;
  OnnxModel model_;
  OnnxNames values_;
  OnnxNames operations_{0};
  bool has_graph_ = false;
};

/// Calls `read(reader)` for what is all of the stream.
template <typename Read>
auto read_stream(google::protobuf::io::ZeroCopyInputStream& stream, std::int64_t size,
                 const std::string& file, OnnxTensors tensors, Read read) {
  if (size > kMostBytes) {
    throw Error(Where{file, 0, ""}, fmt::format("has {} bytes, and ONNX files end at 2 GiB", size),
                "keep the weights in other files");
  }
  CodedInputStream in(&stream);
  in.SetTotalBytesLimit(static_cast<int>(size));
  const CodedInputStream::Limit outer = in.PushLimit(static_cast<int>(size));
  ModelReader reader(in, file, static_cast<std::size_t>(size), tensors);
  auto result = read(reader);
  in.PopLimit(outer);
  return result;
}

template <typename Read>
auto read_bytes(std::string_view bytes, const std::string& file, OnnxTensors tensors, Read read) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                static_cast<int>(std::min(size, kMostBytes)));
  return read_stream(stream, size, file, tensors, read);
}

OnnxModel read_model(ModelReader& reader) { return reader.read(); }

}  // namespace

OnnxModel parse_onnx(std::string_view bytes, const std::string& file, OnnxTensors tensors) {
  return read_bytes(bytes, file, tensors, read_model);
}

OnnxTensor parse_onnx_tensor(std::string_view bytes, const std::string& file) {
  return read_bytes(bytes, file, OnnxTensors::whole,
                    [](ModelReader& reader) { return reader.read_only_tensor(); });
}

OnnxModel read_onnx(const std::string& path, OnnxTensors tensors) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  // What cannot be told by its size or opened is left to read_file, which says why.
  const int descriptor = error ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return parse_onnx(read_file(path), path, tensors);
  google::protobuf::io::FileInputStream stream(descriptor);
  stream.SetCloseOnDelete(true);
  return read_stream(stream, static_cast<std::int64_t>(size), path, tensors, read_model);
}

}  // namespace braid
