#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/graph/graph_json.h"
#include "braid/graph/graph_json_names.h"
#include "braid/graph/layering.h"
#include "braid/graph/model_shape_json.h"
#include "braid/graph/operator_fields.h"
#include "braid/graph/repeated_layers.h"
#include "braid/graph/tensor_size.h"
#include "braid/graph/topological_order.h"

namespace braid {
namespace {

constexpr std::int64_t most_id = std::numeric_limits<std::int32_t>::max();

template <typename Enum, std::size_t count>
Enum parse_name(const Value& value,
                const std::array<std::pair<Enum, std::string_view>, count>& names) {
  const std::string_view text = value.as_string();
  std::string known;
  for (const auto& [each, name] : names) {
    if (name == text) return each;
    known += known.empty() ? "" : ", ";
    known += name;
  }
  value.fail(fmt::format("\"{}\" is not known", text), "use one of " + known);
}

/// Fields that every operator has beside those of its kind.
constexpr std::array<std::string_view, 7> common_fields{"name",  "kind",  "inputs", "outputs",
                                                        "split", "layer", "pass"};

template <typename Kind>
OperatorKind read_fields(const Value& value) {
  Kind kind;
  std::size_t known = 0;
  std::optional<Value> missing;
  visit_fields(kind, [&](std::string_view name, auto& field) {
    const Value member = value[name];
    using Field = std::decay_t<decltype(field)>;
    if (!member.exists()) {
      if constexpr (std::is_same_v<Field, std::int64_t>) {
        if (field == 0 && name != "window") missing = member;
      }
      return;
    }
    ++known;
    if constexpr (std::is_same_v<Field, bool>) {
      field = member.as_bool();
    } else if constexpr (std::is_same_v<Field, double>) {
      field = member.as_double_in(0, std::numeric_limits<double>::max());
    } else if constexpr (std::is_same_v<Field, Elementwise::Keeps>) {
      field = parse_name(member, keeps_names);
    } else {
      field = member.as_int_in(name == "window" ? 0 : 1, std::numeric_limits<std::int64_t>::max());
    }
  });
  for (const std::string_view name : common_fields) known += value[name].exists() ? 1 : 0;
  if (known < value.size()) {
    for (const auto& [key, member] : value.members()) {
      const std::string_view name = key;
      bool found =
          std::find(common_fields.begin(), common_fields.end(), name) != common_fields.end();
      visit_fields(kind, [&](std::string_view field, auto&) { found = found || field == name; });
      if (!found) {
        member.fail(fmt::format("the kind {} has no such field", kind_name<Kind>()), "remove it");
      }
    }
  }
  if (missing) missing->fail("this field is missing", "give its size");
  return kind;
}

template <std::size_t at = 0>
OperatorKind read_kind(const Value& value, std::string_view name) {
  if constexpr (at < std::variant_size_v<OperatorKind>) {
    using Kind = std::variant_alternative_t<at, OperatorKind>;
    if (kind_name<Kind>() == name) return read_fields<Kind>(value);
    return read_kind<at + 1>(value, name);
  } else {
    value["kind"].fail(fmt::format("\"{}\" is no kind of operator", name),
                       "see docs/file-formats.md for the kinds");
  }
}

class Reader {
 public:
  explicit Reader(const Value& root) : root_(root) {}

  Graph read() {
    check_form();
    graph_.name = root_["name"].string_or("");
    graph_.samples = root_["samples"].exists() ? root_["samples"].as_int_in(1, most_size) : 1;
    graph_.seq_len = root_["seq_len"].exists() ? root_["seq_len"].as_int_in(0, most_size) : 0;
    if (root_["shape"].exists()) graph_.shape = shape_from_json(root_["shape"]);
    read_tensors();
    read_layers();
    read_operators();
    graph_.inputs = read_ids(root_, "inputs");
    graph_.outputs = read_ids(root_, "outputs");
    const std::string file = root_.where().file;
    check_operators(graph_, file);
    sort_operators();
    if (graph_.layers.empty()) {
      group_into_layers(graph_);
    } else {
      sort_by_layer();
    }
    check_shape();
    check_graph(graph_, file);
    find_repeated_layers(graph_);
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t most_size = std::numeric_limits<std::int64_t>::max();

  void check_form() const {
    root_.expect_only({"braid", "version", "name", "samples", "seq_len", "shape", "inputs",
                       "outputs", "layers", "tensors", "operators"});
    if (root_["braid"].as_string() != "graph") {
      root_["braid"].fail("this is not a graph", "give a file with \"braid\": \"graph\"");
    }
    if (root_["version"].as_int() != 1) {
      root_["version"].fail("this version is not known", "version 1 is read");
    }
  }

  void check_shape() const {
    if (graph_.shape && graph_.shape->first_block + graph_.shape->blocks >
                            static_cast<std::int64_t>(graph_.layers.size())) {
      root_["shape"].fail("the shape has more blocks than the graph has layers",
                          "leave the shape out, or count the blocks that are there");
    }
  }

  void read_tensors() {
    const Value tensors = root_["tensors"];
    const std::size_t count = count_of(tensors);
    graph_.tensors.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Value value = tensors[i];
      value.expect_only({"name", "dims", "dtype", "parameter"});
      Tensor tensor;
      tensor.name = value["name"].string_or("");
      const Value dims = value["dims"];
      const std::size_t rank = count_of(dims);
      for (std::size_t d = 0; d < rank; ++d) {
        tensor.dims.push_back(dims[d].as_int_in(1, most_size));
      }
      const auto dtype = parse_dtype(value["dtype"].as_string());
      if (!dtype) value["dtype"].fail("this number format is not known", "use bf16, f32, i64 …");
      tensor.dtype = *dtype;
      tensor.is_parameter = value["parameter"].bool_or(false);
      if (!element_count(tensor)) {
        dims.fail("the size does not fit in 64 bits", "use smaller sizes");
      }
      graph_.tensors.push_back(std::move(tensor));
    }
  }

  void read_layers() {
    const Value layers = root_["layers"];
    if (!layers.exists()) return;
    const std::size_t count = count_of(layers);
    for (std::size_t i = 0; i < count; ++i) {
      layers[i].expect_only({"name"});
      graph_.layers.push_back({.name = std::string(layers[i]["name"].as_string())});
    }
  }

  void read_operators() {
    const Value operators = root_["operators"];
    const std::size_t count = count_of(operators);
    graph_.operators.reserve(count);
    std::unordered_map<std::string_view, std::size_t> line_of_name;
    line_of_name.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Value value = operators[i];
      const std::string_view name = value["name"].as_string();
      if (name.empty()) value["name"].fail("the name is empty", "name the operator");
      const auto [other, is_new] = line_of_name.try_emplace(name, i);
      if (!is_new) {
        value["name"].fail(fmt::format("the operator in line {} has the name \"{}\" too",
                                       operators[other->second].where().line, name),
                           "give each operator a name of its own");
      }
      Operator op{.name = std::string(name),
                  .kind = read_kind(value, value["kind"].as_string()),
                  .inputs = read_ids(value, "inputs"),
                  .outputs = read_ids(value, "outputs")};
      if (value["split"].exists()) op.split = parse_name(value["split"], split_names);
      if (value["pass"].exists()) op.pass = parse_name(value["pass"], pass_names);
      op.layer = read_layer(value["layer"]);
      for (std::size_t at = 0; at < op.outputs.size(); ++at) {
        Tensor& tensor = graph_.tensors[static_cast<std::size_t>(op.outputs[at])];
        const Value where = value["outputs"][at];
        if (tensor.is_parameter) where.fail("this tensor is a parameter", "write another tensor");
        if (tensor.producer >= 0) {
          where.fail(fmt::format("tensor {} is computed in line {} already", op.outputs[at],
                                 operators[static_cast<std::size_t>(tensor.producer)].where().line),
                     "give each tensor one producer");
        }
        tensor.producer = static_cast<OperatorId>(i);
      }
      graph_.operators.push_back(std::move(op));
    }
  }

  LayerId read_layer(const Value& value) const {
    if (graph_.layers.empty()) {
      if (value.exists()) value.fail("the graph has no layers", "add \"layers\" or remove this");
      return 0;
    }
    const std::int64_t layer = value.as_int_in(0, most_id);
    if (layer >= static_cast<std::int64_t>(graph_.layers.size())) {
      value.fail(fmt::format("there is no layer {}", layer),
                 fmt::format("there are {}, numbered from 0", graph_.layers.size()));
    }
    return static_cast<LayerId>(layer);
  }

  std::vector<TensorId> read_ids(const Value& parent, std::string_view key) const {
    const Value list = parent[key];
    std::vector<TensorId> ids;
    if (!list.exists()) return ids;
    const std::size_t count = count_of(list);
    ids.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t id = list[i].as_int_in(0, most_id);
      if (id >= static_cast<std::int64_t>(graph_.tensors.size())) {
        list[i].fail(fmt::format("there is no tensor {}", id),
                     fmt::format("there are {}, numbered from 0", graph_.tensors.size()));
      }
      ids.push_back(static_cast<TensorId>(id));
    }
    return ids;
  }

  static std::size_t count_of(const Value& list) {
    if (!list.is_array()) list.fail("an array is due here", "write [ … ]");
    return list.size();
  }

  void sort_operators() {
    const TopologicalOrder sorted = topological_order(graph_);
    if (!sorted.cycle.empty()) {
      constexpr std::size_t most_named = 5;
      const auto name = [&](std::size_t at) -> const std::string& {
        return graph_.operators[static_cast<std::size_t>(sorted.cycle[at])].name;
      };
      std::string path;
      for (std::size_t at = 0; at < std::min(most_named, sorted.cycle.size()); ++at) {
        path += name(at) + " → ";
      }
      if (sorted.cycle.size() > most_named) path += "… → ";
      root_["operators"][static_cast<std::size_t>(sorted.cycle.front())].fail(
          "the operators lie on a cycle: " + path + name(0), "remove one of these edges");
    }
    reorder_operators(graph_, sorted.order);
  }

  /// A stable sort by layer keeps producers first when no layer reads from a later one.
  void sort_by_layer() {
    for (const Operator& op : graph_.operators) {
      for (const TensorId id : op.inputs) {
        const OperatorId producer = graph_.tensors[static_cast<std::size_t>(id)].producer;
        if (producer < 0) continue;
        const Operator& source = graph_.operators[static_cast<std::size_t>(producer)];
        if (source.layer <= op.layer) continue;
        root_["layers"].fail(fmt::format("{} in layer {} reads from {} in the later layer {}",
                                         op.name, op.layer, source.name, source.layer),
                             "list layers in topological order");
      }
    }
    std::vector<OperatorId> order(graph_.operators.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<OperatorId>(i);
    std::stable_sort(order.begin(), order.end(), [&](OperatorId a, OperatorId b) {
      return graph_.operators[static_cast<std::size_t>(a)].layer <
             graph_.operators[static_cast<std::size_t>(b)].layer;
    });
    reorder_operators(graph_, order);
    std::size_t next = 0;
    for (std::size_t layer = 0; layer < graph_.layers.size(); ++layer) {
      graph_.layers[layer].first = static_cast<OperatorId>(next);
      while (next < graph_.operators.size() &&
             graph_.operators[next].layer == static_cast<LayerId>(layer)) {
        ++next;
      }
      graph_.layers[layer].last = static_cast<OperatorId>(next);
      if (graph_.layers[layer].first == graph_.layers[layer].last) {
        root_["layers"][layer].fail("no operator lies in this layer", "remove the layer");
      }
    }
  }

  Value root_;
  Graph graph_;
};

}  // namespace

Graph graph_from_json(const Value& root) { return Reader(root).read(); }

}  // namespace braid
