#include "braid/trainers/pytorch/stage_writer.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braid/base/index.h"
#include "braid/base/text.h"
#include "braid/trainers/pytorch/local_names.h"
#include "braid/trainers/pytorch/python_text.h"

namespace braid {
namespace {

/// A name as what is before a number in it, the number, and what is behind; number -1: none.
struct NumberedName {
  std::string before, behind;
  std::int64_t number = -1;
};

NumberedName numbered(const std::string& name) {
  std::size_t last = name.size();
  while (last > 0 && !is_digit(name[last - 1])) --last;
  std::size_t first = last;
  while (first > 0 && is_digit(name[first - 1])) --first;
  const std::string digits = name.substr(first, last - first);
  if (digits.empty() || digits.size() > 6 || (digits.size() > 1 && digits[0] == '0')) return {};
  return {name.substr(0, first), name.substr(last), std::stoll(digits)};
}

/// Those that compute something.
std::vector<PlacedLayer> with_work(const StageTexts& texts, std::vector<PlacedLayer> layers) {
  std::erase_if(layers, [&](const PlacedLayer& each) {
    return (*texts.layers)[at(each.layer)].body.empty();
  });
  return layers;
}

class StageWriter {
 public:
  StageWriter(const StageTexts& texts, const std::vector<PlacedLayer>& layers)
      : texts_(texts),
        facts_(*texts.facts),
        layers_(with_work(texts, layers)),
        names_({"F", "nn", "torch", "math", "self", "n", "recomputed"}) {}

  WrittenStage written(const std::string& name) {
    find_values();
    std::vector<std::string> arguments;
    for (const ValueId id : result_.takes) {
      arguments.push_back(names_.bind(id, facts_.names[at(id)]));
    }
    for (std::size_t i = 0; i < layers_.size();) {
      const std::size_t end = end_of_run(i);
      if (end - i > 2) {
        add_run(i, end);
        i = end;
      } else {
        add_layer(layers_[i++]);
      }
    }
    std::vector<std::string> gives;
    for (const ValueId id : result_.gives) gives.push_back(names_.name(id));
    result_.text = fmt::format("class {}(nn.Module):\n    def __init__(self):\n", name);
    result_.text += "        super().__init__()\n" + members_;
    result_.text +=
        "\n" + python_statement(fmt::format("def forward(self, {}):", joined(arguments)), 4);
    result_.text += statements_ + python_statement("return " + python_tuple(gives), 8);
    return std::move(result_);
  }

 private:
  const WrittenLayer& layer(std::size_t i) const { return (*texts_.layers)[at(layers_[i].layer)]; }

  void find_values() {
    std::set<LayerId> own;
    for (const PlacedLayer& each : layers_) own.insert(each.layer);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (const ValueId id : layer(i).takes) {
        names_.will_be_read(id);
        std::vector<ValueId>& takes = result_.takes;
        if (own.contains(facts_.made_in(id))) continue;
        if (std::find(takes.begin(), takes.end(), id) == takes.end()) takes.push_back(id);
      }
      for (const ValueId id : layer(i).gives) {
        const std::set<LayerId>& readers = facts_.readers[at(id)];
        const bool leaves =
            facts_.losses.contains(id) || std::any_of(readers.begin(), readers.end(),
                                                      [&](LayerId l) { return !own.contains(l); });
        if (!leaves) continue;
        result_.gives.push_back(id);
        names_.will_be_read(id);
      }
    }
  }

  /// Whether layer i + 1 does to the result of layer i what this does to its first operand, and
  /// nothing else reads that result.
  bool goes_on(std::size_t i) const {
    if (i + 1 >= layers_.size()) return false;
    const WrittenLayer &one = layer(i), &next = layer(i + 1);
    const std::size_t a = at(layers_[i].layer), b = at(layers_[i + 1].layer);
    const NumberedName name = numbered(texts_.members[a]), then = numbered(texts_.members[b]);
    if (name.number < 0 || then.number != name.number + 1) return false;
    if (name.before != then.before || name.behind != then.behind) return false;
    if (texts_.classes[a] != texts_.classes[b]) return false;
    if (layers_[i].recompute != layers_[i + 1].recompute) return false;
    if (one.gives.size() != 1 || next.gives.size() != 1 || one.takes.empty()) return false;
    if (next.takes.size() != one.takes.size() || next.takes.front() != one.gives.front())
      return false;
    if (!std::equal(one.takes.begin() + 1, one.takes.end(), next.takes.begin() + 1)) return false;
    const ValueId result = one.gives.front();
    return !facts_.losses.contains(result) &&
           facts_.readers[at(result)] == std::set<LayerId>{layers_[i + 1].layer};
  }

  std::size_t end_of_run(std::size_t first) const {
    std::size_t i = first;
    while (goes_on(i)) ++i;
    return i + 1;
  }

  std::string constructor(const PlacedLayer& of) const {
    const bool told =
        of.recompute == Recompute::selective && (*texts_.layers)[at(of.layer)].attends;
    return fmt::format("{}({})", texts_.classes[at(of.layer)],
                       told ? "recomputes_attention=True" : "");
  }

  /// A call of `module`.
  std::string call(const PlacedLayer& of, const std::string& module,
                   const std::vector<std::string>& arguments) {
    const WrittenLayer& written = (*texts_.layers)[at(of.layer)];
    const bool whole = of.recompute == Recompute::full;
    if (whole || (of.recompute == Recompute::selective && written.attends)) {
      result_.recomputes = true;
    }
    return fmt::format("{}({})", whole ? "recomputed(" + module + ")" : module, joined(arguments));
  }

  std::vector<std::string> arguments_of(const WrittenLayer& written) const {
    std::vector<std::string> arguments;
    for (const ValueId id : written.takes) arguments.push_back(names_.name(id));
    return arguments;
  }

  std::string wanted_name(ValueId id) const {
    const std::string& op = facts_.graph->operators[at(facts_.made_by[at(id)])].name;
    return python_name(op.substr(op.rfind('.') + 1));
  }

  void add_layer(const PlacedLayer& of) {
    const WrittenLayer& written = (*texts_.layers)[at(of.layer)];
    const std::string& name = texts_.members[at(of.layer)];
    members_ += python_statement(fmt::format("self.{} = {}", name, constructor(of)), 8);
    const std::string value = call(of, "self." + name, arguments_of(written));
    std::vector<std::string> free = names_.read(written.takes);
    std::vector<std::string> targets;
    for (const ValueId id : written.gives)
      targets.push_back(names_.bind_result(id, free, wanted_name(id)));
    statements_ += python_statement(targets.empty() ? value : joined(targets) + " = " + value, 8);
  }

  void add_run(std::size_t first, std::size_t end) {
    const PlacedLayer& of = layers_[first];
    const NumberedName name = numbered(texts_.members[at(of.layer)]);
    const std::string range = fmt::format("for n in range({}, {}):", name.number,
                                          name.number + static_cast<std::int64_t>(end - first));
    const std::string member = fmt::format("f\"{}{{n}}{}\"", name.before, name.behind);
    members_ += python_statement(range, 8);
    members_ +=
        python_statement(fmt::format("self.add_module({}, {})", member, constructor(of)), 12);
    std::vector<std::string> arguments = arguments_of(layer(first));
    std::vector<std::string> free;
    for (std::size_t i = first; i < end; ++i) {
      // What goes round in the loop has no name of its own.
      for (const std::string& each : names_.read(layer(i).takes)) {
        if (each == arguments.front()) free.push_back(each);
      }
    }
    const ValueId result = layer(end - 1).gives.front();
    const std::string target = names_.bind_result(result, free, wanted_name(result));
    if (target != arguments.front()) {
      statements_ += python_statement(fmt::format("{} = {}", target, arguments.front()), 8);
    }
    arguments.front() = target;
    statements_ += python_statement(range, 8);
    const std::string module = fmt::format("self.get_submodule({})", member);
    statements_ += python_statement(target + " = " + call(of, module, arguments), 12);
  }

  const StageTexts& texts_;
  const ModelFacts& facts_;
  const std::vector<PlacedLayer> layers_;
  LocalNames names_;
  WrittenStage result_;
  std::string members_, statements_;
};

}  // namespace

WrittenStage written_stage(const StageTexts& texts, const std::string& name,
                           const std::vector<PlacedLayer>& layers) {
  return StageWriter(texts, layers).written(name);
}

}  // namespace braid
