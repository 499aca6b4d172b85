#include "braid/trainers/pytorch/operator_writer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/trainers/pytorch/layer_writer.h"

namespace braid {
namespace {

struct Slicing {
  std::int64_t first = 0, last = 0, axis = 0;
};

Slicing slicing_of(const Program& program, const ProgramNode& node) {
  return {constant_numbers(program, node, 1).front(), constant_numbers(program, node, 2).front(),
          constant_numbers(program, node, 3).front()};
}

}  // namespace

std::vector<ValueSplit> splits_of(const ModelFacts& facts, const std::vector<NodeId>& nodes) {
  const Program& program = facts.program();
  ValueSplit split;
  std::int64_t next = 0;
  for (const NodeId n : nodes) {
    const ProgramNode& node = program.nodes[at(n)];
    if (node.operation != "Slice" || facts.stored.contains(node.inputs.front())) break;
    const Slicing part = slicing_of(program, node);
    const Shape& shape = facts.model->shapes[at(node.inputs.front())];
    if (shape.empty() || part.axis + 1 != std::ssize(shape) || part.first != next) break;
    if (split.source >= 0 && split.source != node.inputs.front()) break;
    split.source = node.inputs.front();
    split.parts.push_back(node.outputs.front());
    split.widths.push_back(part.last - part.first);
    next = part.last;
  }
  if (split.parts.size() < 2 || next != facts.model->shapes[at(split.source)].back()) return {};
  const OperatorId op = facts.model->operators[at(nodes.front())];
  const bool attends = std::holds_alternative<Attention>(facts.graph->operators[at(op)].kind);
  if (split.parts.size() == 3) {
    split.names = {"q", "k", "v"};
  } else if (split.parts.size() == 2) {
    split.names =
        attends ? std::vector<std::string>{"k", "v"} : std::vector<std::string>{"gate", "up"};
  } else {
    split.names.assign(split.parts.size(), "part");
  }
  return {split};
}

OperatorWriter::OperatorWriter(const ModelFacts& facts, std::string layer,
                               bool recomputes_attention)
    : facts_(facts),
      layer_(std::move(layer)),
      recomputes_attention_(recomputes_attention),
      names_(module_members()) {}

void OperatorWriter::refuse(const ProgramNode& node, const std::string& why) const {
  throw Error(fmt::format("{}: {} ({}) cannot be written for PyTorch: {}", facts_.program().name,
                          node.name, node.operation, why),
              "take a model without it");
}

void OperatorWriter::set(ValueId id, const std::string& name) {
  Term made{.text = name, .varies = facts_.varies[at(id)]};
  if (const auto known = terms_.find(id); known != terms_.end()) {
    made.shape = known->second.shape;
    made.dropped = known->second.dropped;
  } else {
    Shape shape = facts_.model->shapes[at(id)];
    for (const ProgramInput& input : facts_.program().inputs) {
      if (input.value == id && input.shape) shape = *input.shape;
    }
    made.shape = written_shape(shape);
    made.dropped = static_cast<int>(shape.size() - made.shape.size());
  }
  terms_[id] = std::move(made);
}

std::string OperatorWriter::split(const ValueSplit& split, const std::vector<std::string>& names) {
  const Term source = term(split.source);
  for (std::size_t i = 0; i < split.parts.size(); ++i) {
    Term part = source;
    part.text = names[i];
    part.is_atom = true;
    part.shape.back() = split.widths[i];
    terms_[split.parts[i]] = std::move(part);
  }
  const bool even = std::adjacent_find(split.widths.begin(), split.widths.end(),
                                       std::not_equal_to<>()) == split.widths.end();
  if (even) return fmt::format("{}.chunk({}, dim=-1)", source.text, split.parts.size());
  return fmt::format("{}.split([{}], dim=-1)", source.text, fmt::join(split.widths, ", "));
}

std::string OperatorWriter::expression(OperatorId op) {
  const std::vector<NodeId>& nodes = facts_.nodes[at(op)];
  op_name_ = name_within(layer_, facts_.graph->operators[at(op)].name);
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ProgramNode& node = facts_.program().nodes[at(nodes[i])];
    if (node.operation == "Slice" && terms_.contains(node.outputs.front())) continue;
    const auto found = writers().find(node.operation);
    if (found == writers().end()) refuse(node, "there is no operation for it");
    next_ = i + 1 < nodes.size() ? &facts_.program().nodes[at(nodes[i + 1])] : nullptr;
    took_next_ = false;
    const Term made = (this->*found->second)(node);
    text = made.text;
    if (took_next_) ++i;
    terms_[facts_.program().nodes[at(nodes[i])].outputs.front()] = made;
  }
  return text;
}

const OperatorWriter::Term& OperatorWriter::term(ValueId id) {
  if (const auto known = terms_.find(id); known != terms_.end()) return known->second;
  return terms_[id] = stored(id);
}

OperatorWriter::Term OperatorWriter::stored(ValueId id) {
  const auto found = facts_.stored.find(id);
  const std::string& full = facts_.program().values[at(id)].name;
  if (found == facts_.stored.end()) {
    throw Error(facts_.program().name + ": " + full + " is a number that no operation here takes",
                "take a model without it");
  }
  std::string wanted = name_within(layer_, full.empty() ? op_name_ + ".row" : full);
  if (wanted.ends_with("_weight") && !names_.has(wanted.substr(0, wanted.size() - 7))) {
    wanted.resize(wanted.size() - 7);
  }
  const std::string name = names_.unique(wanted);
  const std::string sizes = fmt::format("{}", fmt::join(found->second, ", "));
  if (facts_.is_parameter(id)) {
    members_.push_back(fmt::format("self.{} = nn.Parameter(torch.empty({}))", name, sizes));
    parts_.parameters[name] = id;
  } else {
    members_.push_back(fmt::format("self.register_buffer(\"{}\", torch.empty({}))", name, sizes));
  }
  return {.text = "self." + name, .shape = found->second, .varies = false};
}

std::string OperatorWriter::member(const std::string& module) {
  std::string name = names_.unique(op_name_);
  members_.push_back(fmt::format("self.{} = {}", name, module));
  return name;
}

void OperatorWriter::keep(const std::string& member, const char* leaf, ValueId id) {
  if (facts_.is_parameter(id)) parts_.parameters[member + "." + leaf] = id;
}

std::string OperatorWriter::factor(ValueId id) {
  const Term& of = term(id);
  return of.is_atom ? of.text : "(" + of.text + ")";
}

/// With as many dimensions beside that of samples, so that it broadcasts from the right.
std::string OperatorWriter::widened(ValueId id, std::size_t rank) {
  const Term& of = term(id);
  if (!of.varies || of.shape.size() >= rank) return factor(id);
  std::string text = factor(id) + "[:";
  for (std::size_t d = of.shape.size(); d < rank; ++d) text += ", None";
  return text + "]";
}

/// Of the written tensor, that of samples included.
std::size_t OperatorWriter::dimension(const Term& of, std::int64_t axis) const {
  const auto rank = std::ssize(of.shape) + of.dropped;
  return at((axis < 0 ? axis + rank : axis) - of.dropped + (of.varies ? 1 : 0));
}

bool OperatorWriter::is_biased(const ProgramNode& node) const {
  return next_ != nullptr && next_->operation == "Add" &&
         next_->inputs.front() == node.outputs.front() && facts_.is_parameter(next_->inputs[1]) &&
         facts_.stored.at(next_->inputs[1]).size() == 1;
}

OperatorWriter::Term OperatorWriter::attention(const ProgramNode& node) {
  parts_.helpers.insert("attention");
  const auto of = [&](const char* name) { return integer_of(node, name, 0); };
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < 3; ++i) arguments.push_back(term(node.inputs[i]).text);
  arguments.push_back(fmt::format("heads={}", of("heads")));
  arguments.push_back(fmt::format("kv_heads={}", of("kv_heads")));
  if (of("causal") != 0) arguments.emplace_back("causal=True");
  if (of("window") != 0) arguments.push_back(fmt::format("window={}", of("window")));
  if (node.inputs.size() > 3) arguments.push_back("relative=" + term(node.inputs[3]).text);
  parts_.attends = true;
  if (recomputes_attention_ && !names_.has("attend_")) {
    names_.unique("attend_");
    members_.emplace_back(
        "self.attend = recomputed(attention) if recomputes_attention else attention");
  }
  return {.text = fmt::format("{}({})", recomputes_attention_ ? "self.attend" : "attention",
                              joined(arguments)),
          .shape = {of("q_len"), of("heads") * of("v_dim")}};
}

OperatorWriter::Term OperatorWriter::experts(const ProgramNode& node) {
  parts_.helpers.insert("experts");
  std::vector<std::string> arguments;
  for (const ValueId id : node.inputs) arguments.push_back(term(id).text);
  arguments.push_back(fmt::format("top_k={}", integer_of(node, "top_k", 1)));
  return {.text = fmt::format("experts({})", joined(arguments)),
          .shape = term(node.inputs[0]).shape};
}

const std::map<std::string, OperatorWriter::Write, std::less<>>& OperatorWriter::writers() {
  static const std::map<std::string, Write, std::less<>> all = {
      {"Add", &OperatorWriter::binary},
      {"Sub", &OperatorWriter::binary},
      {"Mul", &OperatorWriter::binary},
      {"Div", &OperatorWriter::binary},
      {"MatMul", &OperatorWriter::product},
      {"Gemm", &OperatorWriter::gemm},
      {"Reshape", &OperatorWriter::reshape},
      {"Transpose", &OperatorWriter::transpose},
      {"Slice", &OperatorWriter::slice},
      {"Concat", &OperatorWriter::concat},
      {"Gather", &OperatorWriter::gather},
      {"ReduceSum", &OperatorWriter::reduce},
      {"ReduceMean", &OperatorWriter::reduce},
      {"Softmax", &OperatorWriter::softmax},
      {"LayerNormalization", &OperatorWriter::normalization},
      {"RMSNormalization", &OperatorWriter::normalization},
      {"BatchNormalization", &OperatorWriter::batch_normalization},
      {"Conv", &OperatorWriter::convolution},
      {"MaxPool", &OperatorWriter::max_pool},
      {"GlobalAveragePool", &OperatorWriter::average_pool},
      {"Gelu", &OperatorWriter::pointwise},
      {"Relu", &OperatorWriter::pointwise},
      {"Swish", &OperatorWriter::pointwise},
      {"Tanh", &OperatorWriter::pointwise},
      {"Sigmoid", &OperatorWriter::pointwise},
      {"Experts", &OperatorWriter::experts},
      {"Attention", &OperatorWriter::attention}};
  return all;
}

}  // namespace braid
