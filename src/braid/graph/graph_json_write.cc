#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/graph/graph_json.h"
#include "braid/graph/graph_json_names.h"
#include "braid/graph/model_shape_json.h"
#include "braid/graph/operator_fields.h"

namespace braid {
namespace {

class Writer {
 public:
  std::string write(const Graph& graph) {
    text_ += "{\n  \"braid\": \"graph\",\n  \"version\": 1";
    member("\n  ", "name", graph.name);
    member("\n  ", "samples", graph.samples);
    member("\n  ", "seq_len", graph.seq_len);
    if (graph.shape) {
      fmt::format_to(std::back_inserter(text_), ",\n  \"shape\": {}", to_json(*graph.shape).dump());
    }
    member("\n  ", "inputs", graph.inputs);
    member("\n  ", "outputs", graph.outputs);
    list("layers", graph.layers, [&](const Layer& layer) { put(layer); });
    list("tensors", graph.tensors, [&](const Tensor& tensor) { put(tensor); });
    list("operators", graph.operators, [&](const Operator& op) { put(op); });
    text_ += "\n}\n";
    return std::move(text_);
  }

 private:
  template <typename Items, typename Put>
  void list(std::string_view key, const Items& items, Put&& put_item) {
    fmt::format_to(std::back_inserter(text_), ",\n  \"{}\": [", key);
    bool first = true;
    for (const auto& item : items) {
      text_ += first ? "\n    " : ",\n    ";
      first = false;
      put_item(item);
    }
    text_ += first ? "]" : "\n  ]";
  }

  void put(const Layer& layer) {
    text_ += "{\"name\": ";
    value(layer.name);
    text_ += "}";
  }

  void put(const Tensor& tensor) {
    text_ += "{\"name\": ";
    value(tensor.name);
    member(" ", "dims", tensor.dims);
    member(" ", "dtype", name_of(tensor.dtype));
    if (tensor.is_parameter) member(" ", "parameter", true);
    text_ += "}";
  }

  void put(const Operator& op) {
    text_ += "{\"name\": ";
    value(op.name);
    member(" ", "kind", kind_name(op.kind));
    std::visit(
        [&](const auto& kind) {
          visit_fields(kind,
                       [&](std::string_view field, const auto& of) { member(" ", field, of); });
        },
        op.kind);
    member(" ", "inputs", op.inputs);
    member(" ", "outputs", op.outputs);
    member(" ", "split", name_in(split_names, op.split));
    member(" ", "layer", op.layer);
    if (op.pass != Pass::forward) member(" ", "pass", name_in(pass_names, op.pass));
    text_ += "}";
  }

  template <typename Of>
  void member(std::string_view space, std::string_view key, const Of& of) {
    fmt::format_to(std::back_inserter(text_), ",{}\"{}\": ", space, key);
    value(of);
  }

  template <typename Of>
  void value(const Of& of) {
    if constexpr (std::is_same_v<Of, bool>) {
      text_ += of ? "true" : "false";
    } else if constexpr (std::is_same_v<Of, Elementwise::Keeps>) {
      value(name_in(keeps_names, of));
    } else if constexpr (std::is_arithmetic_v<Of>) {
      fmt::format_to(std::back_inserter(text_), "{}", of);
    } else {
      put_text(of);
    }
  }

  template <typename Integer>
  void value(const std::vector<Integer>& list) {
    text_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      fmt::format_to(std::back_inserter(text_), "{}{}", i == 0 ? "" : ", ", list[i]);
    }
    text_ += ']';
  }

  void put_text(std::string_view text) {
    text_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        fmt::format_to(std::back_inserter(text_), "\\u{:04x}", static_cast<unsigned>(c));
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
};

}  // namespace

std::string to_json_text(const Graph& graph) { return Writer().write(graph); }

Json to_json(const Graph& graph) { return Json::parse(to_json_text(graph)); }

}  // namespace braid
