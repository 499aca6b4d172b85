#include "braid/backend/kernel/kernel_job.h"

#include <map>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "braid/base/index.h"

namespace braid {
namespace {

std::string value_text(const AttributeValue& value) {
  return std::visit(
      []<typename Value>(const Value& held) -> std::string {
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return "?";
        } else if constexpr (std::is_same_v<Value, std::shared_ptr<const DenseTensor>>) {
          return form_text(*held);
        } else if constexpr (std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, double> ||
                             std::is_same_v<Value, std::string>) {
          return fmt::format("{}", held);
        } else {
          return fmt::format("[{}]", fmt::join(held, " "));
        }
      },
      value);
}

/// Takes values of a program into the region of a job, each once.
class JobValues {
 public:
  JobValues(const Program& program, const std::vector<TensorForm>& forms, KernelJob& job)
      : program_(program), forms_(forms), job_(job) {
    job.region.name = program.name;
    job.region.opset = program.opset;
  }

  bool has(ValueId value) const { return inner_.contains(value); }

  /// Its number in the region; of -1, an operand that is left out, -1.
  ValueId take(ValueId value) {
    if (value < 0) return -1;
    const auto [place, is_new] =
        inner_.try_emplace(value, static_cast<ValueId>(job_.region.values.size()));
    if (is_new) {
      job_.region.values.push_back(program_.values[at(value)]);
      job_.forms.push_back(forms_[at(value)]);
    }
    return place->second;
  }

 private:
  const Program& program_;
  const std::vector<TensorForm>& forms_;
  KernelJob& job_;
  std::map<ValueId, ValueId> inner_;  ///< From the program's values to the region's.
};

}  // namespace

KernelJob kernel_job(const Program& program, const ProgramOpGraph& graph, const PatternMatch& match,
                     const std::vector<TensorForm>& forms) {
  KernelJob job;
  JobValues values(program, forms, job);
  for (const std::int32_t leaf : match.leaves) {
    const ValueId value = graph.program_value[at(leaf)];
    const bool is_new = !values.has(value);
    const ValueId id = values.take(value);
    job.leaves.push_back(id);
    const TensorForm& form = forms[at(value)];
    if (is_new && program.values[at(value)].constant == nullptr) {
      job.region.inputs.push_back({id, form.type, form.shape});
    }
  }
  for (const std::int32_t matched : match.nodes) {
    const NodeId number = graph.program_node[at(matched)];
    if (number < 0) continue;  // A projection, whose value its node computes.
    ProgramNode node = program.nodes[at(number)];
    for (ValueId& input : node.inputs) input = values.take(input);
    for (ValueId& output : node.outputs) output = values.take(output);
    job.region.nodes.push_back(std::move(node));
  }
  job.region.outputs = {values.take(graph.program_value[at(match.nodes.back())])};
  return job;
}

RegionBorder region_border(const Program& program, const std::vector<NodeId>& nodes) {
  enum class Side : std::uint8_t { outside, read, inside, written };
  std::vector<Side> sides(program.values.size(), Side::outside);
  RegionBorder border;
  for (const NodeId number : nodes) {
    for (const ValueId input : program.nodes[at(number)].inputs) {
      if (input < 0 || program.values[at(input)].constant) continue;
      if (sides[at(input)] != Side::outside) continue;
      sides[at(input)] = Side::read;
      border.reads.push_back(input);
    }
    for (const ValueId output : program.nodes[at(number)].outputs) {
      if (output >= 0) sides[at(output)] = Side::inside;
    }
  }
  const auto write = [&](ValueId value) {
    if (value >= 0 && sides[at(value)] == Side::inside) sides[at(value)] = Side::written;
  };
  std::size_t next = 0;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    if (next < nodes.size() && at(nodes[next]) == n) {
      ++next;
    } else {
      for (const ValueId input : program.nodes[n].inputs) write(input);
    }
  }
  for (const ValueId output : program.outputs) write(output);
  for (const NodeId number : nodes) {
    for (const ValueId output : program.nodes[at(number)].outputs) {
      if (output >= 0 && sides[at(output)] == Side::written) border.writes.push_back(output);
    }
  }
  return border;
}

KernelJob region_job(const Program& program, const std::vector<NodeId>& nodes,
                     const std::vector<TensorForm>& forms) {
  KernelJob job;
  JobValues values(program, forms, job);
  const RegionBorder border = region_border(program, nodes);
  for (const ValueId value : border.reads) {
    const TensorForm& form = forms[at(value)];
    job.leaves.push_back(values.take(value));
    job.region.inputs.push_back({job.leaves.back(), form.type, form.shape});
  }
  for (const NodeId number : nodes) {
    ProgramNode node = program.nodes[at(number)];
    for (ValueId& input : node.inputs) {
      const bool is_new_constant =
          input >= 0 && program.values[at(input)].constant && !values.has(input);
      input = values.take(input);
      if (is_new_constant) job.leaves.push_back(input);
    }
    for (ValueId& output : node.outputs) output = values.take(output);
    job.region.nodes.push_back(std::move(node));
  }
  for (const ValueId value : border.writes) job.region.outputs.push_back(values.take(value));
  return job;
}

std::string job_text(const KernelJob& job) {
  std::string text = fmt::format("opset {}:", job.region.opset);
  for (const ProgramNode& node : job.region.nodes) {
    text += fmt::format(" {}{}{}(", node.domain, node.domain.empty() ? "" : ".", node.operation);
    for (const ValueId input : node.inputs) text += fmt::format("{},", input);
    text += ")";
    std::map<std::string, std::string> attributes;
    for (const Attribute& each : node.attributes) attributes[each.name] = value_text(each.value);
    for (const auto& [name, value] : attributes) text += fmt::format("{{{}={}}}", name, value);
    text += fmt::format("->{};", fmt::join(node.outputs, ","));
  }
  for (const ValueId leaf : job.leaves) {
    const TensorForm& form = job.form(leaf);
    const bool constant = job.region.values[at(leaf)].constant != nullptr;
    text += fmt::format(" {}:{}{}{}", leaf, constant ? "const " : "", name_of(form.type),
                        shape_text(form.shape));
  }
  const std::vector<ValueId>& outputs = job.region.outputs;
  const bool is_usual = outputs.size() == 1 && !job.region.nodes.empty() &&
                        outputs.front() == job.region.nodes.back().outputs.front();
  if (!is_usual) text += fmt::format(" gives {}", fmt::join(outputs, ","));
  return text;
}

}  // namespace braid
