#include "braid/frontend/onnx_node.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 59;
constexpr std::size_t most_dimensions = 64;
constexpr std::int64_t most_per_dimension = std::int64_t{1} << 31;

}  // namespace

bool sizes_fit(std::span<const std::int64_t> dims) {
  if (dims.size() > most_dimensions) return false;
  std::int64_t count = 1;
  for (const std::int64_t size : dims) {
    if (size < 0) return false;
    if (size == 0) continue;
    if (__builtin_mul_overflow(count, size, &count) || count > most_elements) return false;
  }
  return true;
}

std::string text_of(std::span<const std::int64_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

OnnxNodeView::OnnxNodeView(const OnnxModel& model, const OnnxNode& node,
                           const std::vector<OnnxValue>& values,
                           const std::vector<std::optional<Dims>>& declared, std::int64_t opset,
                           const std::string& file)
    : model_(&model),
      node_(&node),
      operation_(&model.operations[static_cast<std::size_t>(node.operation)]),
      values_(&values),
      declared_(&declared),
      opset_(opset),
      file_(&file),
      results_(node.outputs.size()) {}

bool OnnxNodeView::has(std::size_t input) const {
  return input < node_->inputs.size() && node_->inputs[input] >= 0;
}

const OnnxValue& OnnxNodeView::input(std::size_t input) const {
  if (!has(input)) fail(fmt::format("input {} is missing", input));
  return (*values_)[static_cast<std::size_t>(node_->inputs[input])];
}

void OnnxNodeView::need_inputs(std::size_t least, std::size_t most) const {
  if (input_count() < least || input_count() > most) {
    fail(fmt::format("has {} inputs where {} are due", input_count(),
                     least == most ? fmt::format("{}", least)
                     : most > 1000 ? fmt::format("at least {}", least)
                                   : fmt::format("{} to {}", least, most)));
  }
  for (std::size_t i = 0; i < least; ++i) static_cast<void>(input(i));
}

void OnnxNodeView::need_rank(std::size_t i, std::size_t least, std::size_t most) const {
  if (rank(i) >= least && rank(i) <= most) return;
  fail(fmt::format("input {} has the shape {} where {} dimensions are due", i, text_of(dims(i)),
                   least == most ? fmt::format("{}", least)
                   : most > 1000 ? fmt::format("at least {}", least)
                                 : fmt::format("{} to {}", least, most)));
}

const std::vector<std::int64_t>* OnnxNodeView::integers(std::size_t i) const {
  const OnnxValue& value = input(i);
  return value.values ? std::get_if<std::vector<std::int64_t>>(value.values.get()) : nullptr;
}

const std::vector<double>* OnnxNodeView::reals(std::size_t i) const {
  const OnnxValue& value = input(i);
  return value.values ? std::get_if<std::vector<double>>(value.values.get()) : nullptr;
}

std::int64_t OnnxNodeView::elements(std::size_t i) const {
  std::int64_t count = 1;
  for (const std::int64_t size : dims(i)) count *= size;
  return count;
}

bool OnnxNodeView::is_live(std::size_t i) const {
  return has(i) && input(i).source != OnnxValue::Source::constant;
}

const OnnxAttribute* OnnxNodeView::attribute(std::string_view name) const {
  for (const OnnxAttribute& each : node_->attributes) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

namespace {

template <typename Type>
const Type* typed(const OnnxNodeView& node, std::string_view name) {
  const OnnxAttribute* found = node.attribute(name);
  if (found == nullptr) return nullptr;
  const Type* value = std::get_if<Type>(&found->value);
  if (value == nullptr) node.fail(fmt::format("attribute '{}' is of the wrong type", name));
  return value;
}

}  // namespace

std::int64_t OnnxNodeView::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* value = typed<std::int64_t>(*this, name);
  return value == nullptr ? otherwise : *value;
}

std::int64_t OnnxNodeView::need_integer(std::string_view name) const {
  const auto* value = typed<std::int64_t>(*this, name);
  if (value == nullptr) fail(fmt::format("attribute '{}' is missing", name));
  return *value;
}

double OnnxNodeView::real(std::string_view name, double otherwise) const {
  const auto* value = typed<double>(*this, name);
  return value == nullptr ? otherwise : *value;
}

std::string OnnxNodeView::text(std::string_view name, std::string_view otherwise) const {
  const auto* value = typed<std::string>(*this, name);
  return value == nullptr ? std::string(otherwise) : *value;
}

const std::vector<std::int64_t>* OnnxNodeView::integers(std::string_view name) const {
  return typed<std::vector<std::int64_t>>(*this, name);
}

OnnxNodeView::Dims OnnxNodeView::per_dimension(std::string_view name, std::size_t count,
                                               std::int64_t least, std::int64_t otherwise) const {
  const auto* given = integers(name);
  if (given == nullptr) return Dims(count, otherwise);
  if (given->size() != count) {
    fail(fmt::format("attribute '{}' has {} numbers where {} are due", name, given->size(), count));
  }
  for (const std::int64_t value : *given) {
    if (value < least || value > most_per_dimension) {
      fail(fmt::format("attribute '{}' holds {}", name, value));
    }
  }
  return *given;
}

std::optional<OnnxNodeView::Dims> OnnxNodeView::integers_of(std::size_t i,
                                                            std::string_view name) const {
  if (has(i)) {
    const auto* values = integers(i);
    if (values == nullptr) {
      fail(fmt::format("the values of input {} ({}) are known only at run time", i,
                       in_quotes(model_->values[static_cast<std::size_t>(node_->inputs[i])])),
           "make them constant");
    }
    return *values;
  }
  const auto* given = integers(name);
  if (given == nullptr) return std::nullopt;
  return *given;
}

std::size_t OnnxNodeView::axis(std::int64_t axis, std::size_t rank) const {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) {
    fail(fmt::format("axis {} does not lie in {} dimensions", axis, rank));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

std::int64_t OnnxNodeView::times(std::int64_t a, std::int64_t b) const {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail("a size overflows 64 bits");
  return result;
}

std::int64_t OnnxNodeView::product(std::span<const std::int64_t> sizes) const {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result = times(result, size);
  return result;
}

OnnxNodeView::Dims OnnxNodeView::broadcast(const Dims& a, const Dims& b) const {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = out[offset + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1) fail(fmt::format("the shapes {} and {} do not fit", text_of(a), text_of(b)));
    size = shorter[i];
  }
  return out;
}

bool OnnxNodeView::wants(std::size_t output) const {
  return output < node_->outputs.size() && node_->outputs[output] >= 0;
}

void OnnxNodeView::set(std::size_t output, OnnxType type, Dims dims) {
  if (output >= results_.size()) return;
  if (!sizes_fit(dims)) {
    fail(fmt::format("its output would have the shape {}", text_of(dims)),
         "sizes must be positive and fit in 64 bits, and there may be 64 of them");
  }
  results_[output].source = OnnxValue::Source::computed;
  results_[output].type = type;
  results_[output].dims = std::move(dims);
}

void OnnxNodeView::set_values(std::size_t output, OnnxConstant values) {
  if (output >= results_.size()) return;
  results_[output].values = std::make_shared<OnnxConstant>(std::move(values));
}

void OnnxNodeView::share_values(std::size_t output, std::size_t i) {
  if (output < results_.size()) results_[output].values = input(i).values;
}

void OnnxNodeView::set_declared(std::size_t output, OnnxType type, std::size_t i) {
  if (!wants(output)) return;
  const auto id = static_cast<std::size_t>(node_->outputs[output]);
  if (!(*declared_)[id]) {
    fail(fmt::format("the shape of its output depends on the values of input {} ({}), which are "
                     "known only at run time",
                     i, in_quotes(model_->values[static_cast<std::size_t>(node_->inputs[i])])),
         "declare the shape of " + in_quotes(model_->values[id]) + " in the file");
  }
  set(output, type, *(*declared_)[id]);
}

bool OnnxNodeView::is_trained(std::size_t input) const {
  return std::find(not_trained_.begin(), not_trained_.end(), input) == not_trained_.end();
}

void OnnxNodeView::fail(const std::string& message, const std::string& remedy) const {
  const std::string name = !node_->name.empty() ? node_->name
                           : node_->outputs.empty() || node_->outputs.front() < 0
                               ? std::string()
                               : model_->values[static_cast<std::size_t>(node_->outputs.front())];
  throw Error(Where{*file_, 0, "node " + in_quotes(name) + " (" + operation_->name + ")"}, message,
              remedy);
}

}  // namespace braid
