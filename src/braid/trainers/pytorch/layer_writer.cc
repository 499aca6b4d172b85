#include "braid/trainers/pytorch/layer_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/trainers/pytorch/local_names.h"
#include "braid/trainers/pytorch/operator_writer.h"
#include "braid/trainers/pytorch/python_text.h"

namespace braid {
namespace {

class LayerWriter {
 public:
  LayerWriter(const ModelFacts& facts, LayerId layer, bool recomputes_attention)
      : facts_(facts),
        layer_(facts.graph->layers[at(layer)]),
        number_(layer),
        names_({"F", "nn", "torch", "math", "self", "attention", "experts"}),
        operators_(facts, layer_.name, recomputes_attention) {}

  WrittenLayer written() {
    find_values();
    name_arguments();
    for (OperatorId op = layer_.first; op < layer_.last; ++op) add(op);
    if (statements_.empty()) return {};
    result_.name = class_name(layer_.name);
    result_.body = text();
    OperatorParts parts = operators_.take();
    result_.parameters = std::move(parts.parameters);
    result_.helpers = std::move(parts.helpers);
    result_.attends = parts.attends;
    return std::move(result_);
  }

 private:
  /// Values that an operator reads from others, in the order of its nodes.
  std::vector<ValueId> read_by(OperatorId op) const {
    std::vector<ValueId> reads;
    std::set<ValueId> own;
    for (const NodeId n : facts_.nodes[at(op)]) {
      const ProgramNode& node = facts_.program().nodes[at(n)];
      for (const ValueId id : node.inputs) {
        if (id < 0 || own.contains(id) || facts_.stored.contains(id)) continue;
        if (facts_.program().values[at(id)].constant) continue;
        if (std::find(reads.begin(), reads.end(), id) == reads.end()) reads.push_back(id);
      }
      own.insert(node.outputs.begin(), node.outputs.end());
    }
    return reads;
  }

  void find_values() {
    for (OperatorId op = layer_.first; op < layer_.last; ++op) {
      for (const ValueId id : read_by(op)) {
        names_.will_be_read(id);
        std::vector<ValueId>& takes = result_.takes;
        if (facts_.made_in(id) == number_) continue;
        if (std::find(takes.begin(), takes.end(), id) == takes.end()) takes.push_back(id);
      }
      for (const NodeId n : facts_.nodes[at(op)]) {
        for (const ValueId id : facts_.program().nodes[at(n)].outputs) {
          if (facts_.readers[at(id)].empty() && !facts_.losses.contains(id)) continue;
          result_.gives.push_back(id);
          names_.will_be_read(id);
        }
      }
    }
  }

  /// The first operand is x, unless it looks up rows of a table.
  void name_arguments() {
    bool has_x = false;
    for (const ValueId id : result_.takes) {
      std::string wanted = "x";
      if (is_index(id)) {
        wanted = python_name(facts_.program().values[at(id)].name);
      } else if (has_x) {
        const OperatorId op = facts_.made_by[at(id)];
        const std::string& own =
            op < 0 ? facts_.program().values[at(id)].name : facts_.graph->operators[at(op)].name;
        wanted = python_name(own.substr(own.rfind('.') + 1));
      }
      has_x = has_x || wanted == "x";
      names_.bind(id, wanted);
      arguments_.push_back(names_.name(id));
      operators_.set(id, names_.name(id));
    }
  }

  bool is_index(ValueId id) const {
    const std::vector<ProgramInput>& inputs = facts_.program().inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](const ProgramInput& each) {
      return each.value == id && each.type == ElementType::i64;
    });
  }

  void add(OperatorId op) {
    const std::vector<NodeId>& nodes = facts_.nodes[at(op)];
    if (nodes.empty()) return;
    const std::vector<ValueId> reads = read_by(op);
    // Parts that a value is split into are variables of their own while the operator is written.
    for (const ValueSplit& split : splits_of(facts_, nodes)) {
      std::vector<std::string> parts;
      for (std::size_t i = 0; i < split.parts.size(); ++i) {
        names_.will_be_read(split.parts[i]);
        parts.push_back(names_.bind(split.parts[i], split.names[i]));
        split_parts_.push_back(split.parts[i]);
      }
      statements_.push_back(joined(parts) + " = " + operators_.split(split, parts));
    }
    const ValueId result = facts_.program().nodes[at(nodes.back())].outputs.front();
    const std::string value = operators_.expression(op);
    std::vector<std::string> free = names_.read(reads);
    names_.read(std::exchange(split_parts_, {}));
    const std::string wanted = name_within(layer_.name, facts_.graph->operators[at(op)].name);
    const std::string& target = names_.bind_result(result, free, wanted);
    operators_.set(result, target);
    statements_.push_back(target + " = " + value);
  }

  std::string text() {
    std::vector<std::string> gives;
    for (const ValueId id : result_.gives) gives.push_back(names_.name(id));
    std::string& last = statements_.back();
    const std::string end = "return " + joined(gives);
    if (gives.size() == 1 && last.starts_with(gives.front() + " = ")) {
      last = "return " + last.substr(gives.front().size() + 3);
    } else {
      statements_.push_back(end);
    }
    std::string body;
    const std::vector<std::string>& members = operators_.members();
    if (!members.empty()) {
      body += fmt::format("    def __init__(self{}):\n        super().__init__()\n",
                          operators_.takes_recomputation() ? ", recomputes_attention=False" : "");
      for (const std::string& each : members) body += python_statement(each, 8);
      body += "\n";
    }
    body += fmt::format("    def forward(self, {}):\n", joined(arguments_));
    for (const std::string& each : statements_) body += python_statement(each, 8);
    return body;
  }

  const ModelFacts& facts_;
  const Layer& layer_;
  LayerId number_;
  LocalNames names_;
  OperatorWriter operators_;
  WrittenLayer result_;
  std::vector<std::string> arguments_, statements_;
  std::vector<ValueId> split_parts_;
};

}  // namespace

WrittenLayer written_layer(const ModelFacts& facts, LayerId layer, bool recomputes_attention) {
  return LayerWriter(facts, layer, recomputes_attention).written();
}

std::string name_within(const std::string& layer, const std::string& name) {
  const bool has_prefix = name.starts_with(layer + ".") && name.size() > layer.size() + 1;
  return python_name(has_prefix ? name.substr(layer.size() + 1) : name);
}

}  // namespace braid
