#include "braid/graph/training.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/graph/gradients.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

class TrainingBuilder {
 public:
  explicit TrainingBuilder(const Graph& forward)
      : forward_(forward), graph_(forward), gradient_parts_(forward.tensors.size()) {
    first_reader_.assign(forward.tensors.size(), -1);
    for (std::size_t id = forward.operators.size(); id-- > 0;) {
      names_.insert(forward.operators[id].name);
      const Gradients gradients = gradients_of(forward, forward.operators[id]);
      for (const auto* wanted : {&gradients.inputs, &gradients.parameters}) {
        for (const TensorId tensor : *wanted) {
          first_reader_[at(tensor)] = static_cast<OperatorId>(id);
        }
      }
    }
  }

  Graph build() {
    for (std::size_t layer = forward_.layers.size(); layer-- > 0;) {
      const Layer& mirrored = forward_.layers[layer];
      begin_layer(mirrored.name + " backward");
      for (OperatorId op = mirrored.last; op-- > mirrored.first;) add_gradients_of(op);
    }
    begin_layer("optimizer");
    for (std::size_t id = 0; id < forward_.tensors.size(); ++id) {
      if (forward_.tensors[id].is_parameter) add_step(static_cast<TensorId>(id));
    }
    // Layers without gradients are left out.
    std::erase_if(graph_.layers, [](const Layer& layer) { return layer.first == layer.last; });
    for (std::size_t layer = 0; layer < graph_.layers.size(); ++layer) {
      graph_.layers[layer].kind = -1;
      for (OperatorId op = graph_.layers[layer].first; op < graph_.layers[layer].last; ++op) {
        graph_.operators[at(op)].layer = static_cast<LayerId>(layer);
      }
    }
    return std::move(graph_);
  }

 private:
  void begin_layer(std::string name) {
    const auto next = static_cast<OperatorId>(graph_.operators.size());
    graph_.layers.push_back({.name = std::move(name), .first = next, .last = next});
  }

  std::string unique(std::string name) {
    if (names_.insert(name).second) return name;
    for (int number = 2;; ++number) {
      std::string numbered = name + "." + std::to_string(number);
      if (names_.insert(numbered).second) return numbered;
    }
  }

  /// A new tensor like `original`, without producer.
  TensorId add_tensor(TensorId original, const char* suffix) {
    const Tensor& like = forward_.tensors[at(original)];
    graph_.tensors.push_back({.name = like.name + suffix, .dims = like.dims, .dtype = like.dtype});
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }

  void add_operator(Operator op) {
    const auto id = static_cast<OperatorId>(graph_.operators.size());
    op.layer = static_cast<LayerId>(graph_.layers.size() - 1);
    for (const TensorId output : op.outputs) graph_.tensors[at(output)].producer = id;
    graph_.operators.push_back(std::move(op));
    graph_.layers.back().last = id + 1;
  }

  /// The whole gradient of a tensor: what its readers gave, added up.
  TensorId gradient_of(TensorId tensor) {
    std::vector<TensorId>& parts = gradient_parts_[at(tensor)];
    if (parts.empty()) {
      parts.push_back(add_tensor(tensor, ".gradient"));
      graph_.inputs.push_back(parts.back());
    } else if (parts.size() > 1) {
      const TensorId sum = add_tensor(tensor, ".gradient");
      const Tensor& like = forward_.tensors[at(tensor)];
      add_operator({.name = unique(like.name + ".gradient_sum"),
                    .kind = Elementwise{.elements = element_count(like).value_or(1),
                                        .flops_per_element = static_cast<double>(parts.size() - 1),
                                        .keeps = Elementwise::Keeps::nothing},
                    .inputs = parts,
                    .outputs = {sum}});
      parts = {sum};
    }
    return parts.front();
  }

  void add_gradients_of(OperatorId id) {
    const Operator& op = forward_.operators[at(id)];
    const Gradients gradients = gradients_of(forward_, op);
    if (gradients.inputs.empty() && gradients.parameters.empty()) return;
    std::vector<TensorId> output_gradients;
    for (const TensorId output : gradients.outputs) {
      output_gradients.push_back(gradient_of(output));
    }
    const auto add = [&](Pass pass, const char* suffix, const std::vector<TensorId>& reads,
                         const std::vector<TensorId>& wanted) {
      if (wanted.empty()) return;
      Operator gradient{.name = unique(op.name + suffix),
                        .kind = op.kind,
                        .inputs = output_gradients,
                        .outputs = {},
                        .split = op.split};
      gradient.pass = pass;
      gradient.inputs.insert(gradient.inputs.end(), reads.begin(), reads.end());
      for (const TensorId tensor : wanted) {
        gradient.outputs.push_back(add_tensor(tensor, ".gradient"));
        gradient_parts_[at(tensor)].push_back(gradient.outputs.back());
      }
      add_operator(std::move(gradient));
    };
    add(Pass::input_gradient, ".input_gradient", gradients.input_reads, gradients.inputs);
    add(Pass::weight_gradient, ".weight_gradient", gradients.weight_reads, gradients.parameters);
    // The first reader is the last to give its part.
    for (const auto* wanted : {&gradients.inputs, &gradients.parameters}) {
      for (const TensorId tensor : *wanted) {
        if (first_reader_[at(tensor)] == id) gradient_of(tensor);
      }
    }
  }

  void add_step(TensorId parameter) {
    if (gradient_parts_[at(parameter)].empty()) return;
    const TensorId gradient = gradient_of(parameter);
    const Tensor& tensor = forward_.tensors[at(parameter)];
    const TensorId updated = add_tensor(parameter, ".updated");
    graph_.outputs.push_back(updated);
    add_operator({.name = unique(tensor.name + ".step"),
                  .kind = OptimizerStep{.parameters = element_count(tensor).value_or(1)},
                  .inputs = {parameter, gradient},
                  .outputs = {updated}});
  }

  const Graph& forward_;
  Graph graph_;
  std::vector<std::vector<TensorId>> gradient_parts_;  ///< Of each forward tensor.
  std::vector<OperatorId> first_reader_;  ///< That wants a tensor's gradient; -1 for none.
  std::unordered_set<std::string> names_;
};

}  // namespace

Graph training_graph(const Graph& forward) { return TrainingBuilder(forward).build(); }

}  // namespace braid
