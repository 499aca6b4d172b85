#include "braid/frontend/onnx.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/frontend/onnx_model.h"
#include "braid/frontend/onnx_names.h"
#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"
#include "braid/frontend/onnx_types.h"
#include "braid/graph/fusion.h"
#include "braid/graph/layering.h"
#include "braid/graph/repeated_layers.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;
using Source = OnnxValue::Source;

constexpr std::int64_t newest_opset = 25;

class GraphReader {
 public:
  GraphReader(OnnxModel model, const std::string& file,
              const std::map<std::string, std::int64_t>& dims)
      : model_(std::move(model)), file_(file), dims_(dims) {}

  Graph read(OnnxOperators operators) {
    const auto most = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
    if (model_.nodes.size() >= most || model_.values.size() >= most) {
      fail("", "has more nodes or values than 2^31");
    }
    graph_.name = std::filesystem::path(file_).stem().string();
    find_opset();
    check_dims();
    values_.resize(model_.values.size());
    computed_.resize(model_.values.size());
    read_declarations();
    read_initializers();
    read_inputs();
    find_used();
    graph_.operators.reserve(model_.nodes.size());
    names_ = node_names(model_);
    for (const OnnxNode& node : model_.nodes) read_node(node);
    read_outputs();
    if (graph_.operators.empty()) fail("", "computes nothing from its inputs and weights");
    check_operators(graph_, file_);
    if (operators == OnnxOperators::fused) fuse_operators(graph_);
    group_into_layers(graph_);
    check_graph(graph_, file_);
    find_repeated_layers(graph_);
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         const std::string& remedy = {}) const {
    throw Error(Where{file_, 0, key}, message, remedy);
  }

  std::string name(OnnxValueId id) const { return in_quotes(model_.values[at(id)]); }

  void find_opset() {
    // Files of the first two versions of the format do not say.
    if (model_.opsets.empty() && model_.ir_version < 3) opset_ = 1;
    for (const auto& [domain, version] : model_.opsets) {
      if (domain.empty() || domain == "ai.onnx") opset_ = version;
    }
    if (opset_ >= 0 && opset_ <= newest_opset) return;
    fail("", fmt::format("uses version {} of ONNX's operations", opset_),
         fmt::format("versions 1 to {} are known: convert the model", newest_opset));
  }

  void check_dims() {
    std::set<std::string_view> symbols;
    for (const auto* list : {&model_.inputs, &model_.outputs, &model_.others}) {
      for (const OnnxDeclaration& declared : *list) {
        if (!declared.dims) continue;
        for (const OnnxDim& dim : *declared.dims) {
          if (!dim.size && !dim.symbol.empty()) symbols.insert(dim.symbol);
        }
      }
    }
    for (const auto& [dim, size] : dims_) {
      if (symbols.contains(dim)) continue;
      fail("--dim", "the model has no symbolic dimension " + in_quotes(dim),
           symbols.empty() ? "all its dimensions have sizes: leave it out"
                           : did_you_mean(dim, symbols));
    }
  }

  std::optional<std::int64_t> size_of(const OnnxDim& dim) const {
    if (dim.size) return dim.size;
    const auto given = dims_.find(dim.symbol);
    return given == dims_.end() ? std::nullopt : std::optional(given->second);
  }

  /// Shapes that stand in where the rules cannot tell.
  void read_declarations() {
    declared_.resize(model_.values.size());
    for (const auto* list : {&model_.outputs, &model_.others}) {
      for (const OnnxDeclaration& each : *list) {
        if (!each.dims) continue;
        Dims dims;
        for (const OnnxDim& dim : *each.dims) {
          if (const auto size = size_of(dim); size && *size > 0) dims.push_back(*size);
        }
        if (dims.size() != each.dims->size() || !sizes_fit(dims)) continue;
        declared_[at(each.value)] = std::move(dims);
      }
    }
  }

  void read_initializers() {
    for (OnnxInitializer& each : model_.initializers) {
      OnnxValue& value = values_[at(each.value)];
      const std::string where = "initializer " + name(each.value);
      if (value.source != Source::none) fail(where, "is there twice");
      if (!sizes_fit(each.tensor.dims)) {
        fail(where, "its shape " + text_of(each.tensor.dims) + " does not fit in 64 bits");
      }
      const bool weight = is_weight(each.tensor.type, each.tensor.dims.size());
      value = {.source = weight ? Source::initializer : Source::constant,
               .type = each.tensor.type,
               .dims = std::move(each.tensor.dims),
               .values = std::move(each.tensor.values),
               .root = weight ? each.value : -1};
    }
  }

  void read_inputs() {
    for (const OnnxDeclaration& each : model_.inputs) {
      OnnxValue& value = values_[at(each.value)];
      // Old files list initializers among the inputs too.
      if (value.source == Source::initializer || value.source == Source::constant) continue;
      const std::string where = "input " + name(each.value);
      if (value.source != Source::none) fail(where, "is there twice");
      if (!each.is_tensor) fail(where, "is no tensor", "only models of tensors are supported");
      if (!each.dims) {
        fail(where, "has no shape", "export the model with shapes or named dimensions");
      }
      value.source = Source::input;
      value.type = each.type;
      for (std::size_t d = 0; d < each.dims->size(); ++d) {
        value.dims.push_back(input_size((*each.dims)[d], where, d));
      }
      if (!sizes_fit(value.dims)) {
        fail(where, "its shape " + text_of(value.dims) + " does not fit in 64 bits");
      }
      if (first_input_ < 0 && !value.dims.empty()) first_input_ = each.value;
    }
    graph_.samples = 1;
    if (first_input_ >= 0) graph_.samples = values_[at(first_input_)].dims.front();
    for (const char* batch : {"batch", "batch_size", "N"}) {
      const auto given = dims_.find(batch);
      if (given == dims_.end()) continue;
      graph_.samples = given->second;
      break;
    }
  }

  std::int64_t input_size(const OnnxDim& dim, const std::string& where, std::size_t at) const {
    const auto size = size_of(dim);
    if (size && *size > 0) return *size;
    if (size) {
      fail(where, fmt::format("dimension {} has the size {}", at, *size), "sizes must be positive");
    }
    if (dim.symbol.empty()) {
      fail(where, fmt::format("dimension {} has neither a size nor a name", at),
           "export the model with a size or a name for it");
    }
    fail(where, "the symbolic dimension " + in_quotes(dim.symbol) + " has no size",
         "give it one: --dim " + abbreviated(dim.symbol, 60) + "=…");
  }

  /// Which values somebody reads.
  void find_used() {
    used_.assign(values_.size(), false);
    for (const OnnxNode& node : model_.nodes) {
      for (const OnnxValueId id : node.inputs) {
        if (id >= 0) used_[at(id)] = true;
      }
    }
    for (const OnnxDeclaration& output : model_.outputs) used_[at(output.value)] = true;
  }

  void read_node(const OnnxNode& node) {
    OnnxNodeView view(model_, node, values_, declared_, opset_, file_);
    const OnnxOperation& operation = model_.operations[at(node.operation)];
    const OnnxRule rule = onnx_rule(operation.domain, operation.name);
    if (rule == nullptr) refuse(view, operation);
    if (opset_ == 0) {
      view.fail("the file does not say which version of ONNX's operations it uses",
                "add it to opset_import");
    }
    check_operands(view);
    std::optional<OperatorKind> kind = rule(view);
    std::vector<OnnxValue>& results = view.results();
    bool constant = true;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) constant = constant && !view.is_live(i);
    constant = constant || view.constant();
    const bool renamed_weight = view.same_as() && is_renamed_weight(view);
    for (std::size_t i = 0; i < results.size(); ++i) {
      OnnxValue& result = results[i];
      if (result.source == Source::none && view.wants(i)) {
        view.fail(fmt::format("has {} outputs, more than there are", results.size()));
      }
      result.source = constant ? Source::constant : Source::computed;
      if (!constant && !renamed_weight) result.values.reset();
    }
    if (renamed_weight) {
      const OnnxValue& weight = view.input(*view.same_as());
      results.front().source = Source::initializer;
      results.front().root = weight.root;
    }
    if (!constant && !renamed_weight && kind) add_operator(view, *kind);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] >= 0) values_[at(node.outputs[i])] = std::move(results[i]);
    }
  }

  /// All that the node works on is one weight, whose numbers it leaves or only scales.
  static bool is_renamed_weight(const OnnxNodeView& view) {
    if (view.input(*view.same_as()).source != Source::initializer) return false;
    for (std::size_t i = 0; i < view.input_count(); ++i) {
      if (i != *view.same_as() && view.is_live(i) && view.is_trained(i)) return false;
    }
    return true;
  }

  [[noreturn]] void refuse(const OnnxNodeView& view, const OnnxOperation& operation) const {
    constexpr std::array<std::string_view, 4> control_flow{"If", "Loop", "Scan", "SequenceMap"};
    if (std::find(control_flow.begin(), control_flow.end(), operation.name) != control_flow.end()) {
      view.fail("control flow is not supported",
                "export the model with loops unrolled and branches decided");
    }
    if (model_.functions.contains(operation.name)) {
      view.fail("the file defines this operation itself, which is not supported",
                "inline its functions (onnx.inliner)");
    }
    const std::string near = nearest(operation.name, onnx_operations());
    view.fail("the operation " + in_quotes(operation.name) +
                  (operation.domain.empty() ? std::string()
                                            : " of the domain " + in_quotes(operation.domain)) +
                  " is not supported",
              near.empty() || near == operation.name ? "docs/file-formats.md lists those that are"
                                                     : "did you mean '" + near + "'?");
  }

  void check_operands(const OnnxNodeView& view) {
    const OnnxNode& node = view.node();
    if (node.outputs.empty()) view.fail("has no output");
    for (const OnnxValueId id : node.inputs) {
      if (id < 0 || values_[at(id)].source != Source::none) continue;
      if (is_computed(id)) {
        view.fail("reads " + name(id) + " before it is computed",
                  "list nodes after those that they read from, without cycles");
      }
      view.fail("reads " + name(id) + ", which nothing computes");
    }
    for (const OnnxValueId id : node.outputs) {
      if (id < 0) continue;
      if (values_[at(id)].source != Source::none || computed_[at(id)]) {
        view.fail("computes " + name(id) + ", which is defined already",
                  "give each value one definition");
      }
      computed_[at(id)] = true;
    }
  }

  bool is_computed(OnnxValueId id) const {
    return std::any_of(model_.nodes.begin(), model_.nodes.end(), [&](const OnnxNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end();
    });
  }

  void add_operator(OnnxNodeView& view, const OperatorKind& kind) {
    const OnnxNode& node = view.node();
    const std::size_t number = static_cast<std::size_t>(&node - model_.nodes.data());
    Operator op{.name = std::move(names_[number]), .kind = kind, .inputs = {}, .outputs = {}};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!view.is_live(i) || !view.is_trained(i)) continue;
      op.inputs.push_back(tensor_of(node.inputs[i], view));
    }
    const auto id = static_cast<OperatorId>(graph_.operators.size());
    const bool any_used =
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](OnnxValueId output) { return output >= 0 && used_[at(output)]; });
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const OnnxValueId output = node.outputs[i];
      if (output < 0 || (any_used && !used_[at(output)])) continue;
      OnnxValue& result = view.results()[i];
      result.tensor = add_tensor(output, result, view, id);
      op.outputs.push_back(result.tensor);
    }
    graph_.operators.push_back(std::move(op));
  }

  TensorId tensor_of(OnnxValueId id, const OnnxNodeView& view) {
    OnnxValue& value = values_[at(id)];
    if (value.source == Source::initializer && value.root != id) {
      value.tensor = tensor_of(value.root, view);
    }
    if (value.tensor >= 0) return value.tensor;
    value.tensor = add_tensor(id, value, view, -1);
    if (value.source == Source::input) graph_.inputs.push_back(value.tensor);
    return value.tensor;
  }

  TensorId add_tensor(OnnxValueId id, const OnnxValue& value, const OnnxNodeView& view,
                      OperatorId producer) {
    const auto dtype = dtype_of(value.type);
    if (!dtype) {
      view.fail("the type of " + name(id) + " is not supported",
                "numbers are, except complex ones and integers of four bits");
    }
    if (std::find(value.dims.begin(), value.dims.end(), 0) != value.dims.end()) {
      view.fail(fmt::format("{} has the shape {}", name(id), text_of(value.dims)),
                "sizes must be positive");
    }
    graph_.tensors.push_back({.name = model_.values[at(id)],
                              .dims = value.dims,
                              .dtype = *dtype,
                              .is_parameter = value.source == Source::initializer,
                              .producer = producer});
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }

  void read_outputs() {
    for (const OnnxDeclaration& each : model_.outputs) {
      const OnnxValue& value = values_[at(each.value)];
      if (value.source == Source::none) {
        fail("output " + name(each.value), "nothing computes it");
      }
      if (value.source != Source::computed || value.tensor < 0) continue;
      if (std::find(graph_.outputs.begin(), graph_.outputs.end(), value.tensor) ==
          graph_.outputs.end()) {
        graph_.outputs.push_back(value.tensor);
      }
    }
  }

  OnnxModel model_;
  const std::string& file_;
  const std::map<std::string, std::int64_t>& dims_;
  std::int64_t opset_ = 0;
  std::vector<OnnxValue> values_;
  std::vector<std::optional<Dims>> declared_;
  std::vector<bool> used_, computed_;  ///< By value.
  std::vector<std::string> names_;     ///< By node.
  OnnxValueId first_input_ = -1;
  Graph graph_;
};

}  // namespace

Graph graph_from_onnx(const std::string& path, const std::map<std::string, std::int64_t>& dims,
                      OnnxOperators operators) {
  return GraphReader(read_onnx(path), path, dims).read(operators);
}

Graph graph_from_onnx_bytes(std::string_view bytes, const std::string& file,
                            const std::map<std::string, std::int64_t>& dims,
                            OnnxOperators operators) {
  return GraphReader(parse_onnx(bytes, file), file, dims).read(operators);
}

}  // namespace braid
