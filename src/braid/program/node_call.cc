#include "braid/program/node_call.h"

#include <algorithm>
#include <array>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/text.h"

namespace braid {
namespace {

template <typename Value>
const Value* typed(const NodeCall& call, std::string_view name) {
  const AttributeValue* found = call.node().attribute(name);
  if (found == nullptr) return nullptr;
  const Value* value = std::get_if<Value>(found);
  if (value == nullptr) call.fail(fmt::format("attribute '{}' is of the wrong type", name));
  return value;
}

std::string count_text(std::size_t least, std::size_t most) {
  if (least == most) return fmt::format("{}", least);
  return most > 1000 ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most);
}

}  // namespace

const DenseTensor& NodeCall::input(std::size_t input) const {
  if (!has(input)) fail(fmt::format("input {} is missing", input));
  return *inputs_[input];
}

double NodeCall::scalar(std::size_t i) const {
  if (input(i).count() != 1) {
    fail(fmt::format("input {} has the shape {} where one number is due", i, shape_text(shape(i))));
  }
  return reals(i).front();
}

void NodeCall::need_inputs(std::size_t least, std::size_t most) const {
  if (input_count() < least || input_count() > most) {
    fail(fmt::format("has {} inputs where {} are due", input_count(), count_text(least, most)));
  }
  for (std::size_t i = 0; i < least; ++i) static_cast<void>(input(i));
}

void NodeCall::need_rank(std::size_t i, std::size_t least, std::size_t most) const {
  if (rank(i) >= least && rank(i) <= most) return;
  fail(fmt::format("input {} has the shape {} where {} dimensions are due", i, shape_text(shape(i)),
                   count_text(least, most)));
}

std::int64_t NodeCall::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* value = typed<std::int64_t>(*this, name);
  return value == nullptr ? otherwise : *value;
}

std::int64_t NodeCall::need_integer(std::string_view name) const {
  if (!has_attribute(name)) fail(fmt::format("attribute '{}' is missing", name));
  return integer(name, 0);
}

double NodeCall::real(std::string_view name, double otherwise) const {
  const auto* value = typed<double>(*this, name);
  return value == nullptr ? otherwise : *value;
}

std::string NodeCall::text(std::string_view name, std::string_view otherwise) const {
  const auto* value = typed<std::string>(*this, name);
  return value == nullptr ? std::string(otherwise) : *value;
}

const std::vector<std::int64_t>* NodeCall::integers(std::string_view name) const {
  return typed<std::vector<std::int64_t>>(*this, name);
}

const std::vector<double>* NodeCall::reals(std::string_view name) const {
  return typed<std::vector<double>>(*this, name);
}

const std::vector<std::string>* NodeCall::texts(std::string_view name) const {
  return typed<std::vector<std::string>>(*this, name);
}

const DenseTensor* NodeCall::tensor(std::string_view name) const {
  const auto* value = typed<std::shared_ptr<const DenseTensor>>(*this, name);
  return value == nullptr ? nullptr : value->get();
}

std::optional<Shape> NodeCall::integers_of(std::size_t input, std::string_view name) const {
  if (has(input)) return integers(input);
  const auto* value = name.empty() ? nullptr : integers(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

ElementType NodeCall::element_type(std::string_view name, ElementType otherwise) const {
  if (!has_attribute(name)) return otherwise;
  const std::int64_t number = integer(name, 0);
  // TensorProto.DataType from 1 on; strings (8) and complex numbers (14, 15) are not there.
  constexpr std::array<std::optional<ElementType>, 16> types{
      ElementType::f32,     ElementType::u8,  ElementType::i8,  ElementType::u16,
      ElementType::i16,     ElementType::i32, ElementType::i64, std::nullopt,
      ElementType::boolean, ElementType::f16, ElementType::f64, ElementType::u32,
      ElementType::u64,     std::nullopt,     std::nullopt,     ElementType::bf16};
  const auto count = static_cast<std::int64_t>(types.size());
  if (number < 1 || number > count || !types[at(number - 1)]) {
    fail(fmt::format("attribute '{}' names the type {}, which is not supported", name, number));
  }
  return *types[at(number - 1)];
}

std::size_t NodeCall::axis(std::int64_t axis, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) {
    fail(fmt::format("axis {} does not lie in {} dimensions", axis, rank));
  }
  return at(axis < 0 ? axis + count : axis);
}

std::vector<bool> NodeCall::axes(std::span<const std::int64_t> named, std::size_t rank) const {
  std::vector<bool> is_axis(rank, false);
  for (const std::int64_t each : named) {
    const std::size_t found = axis(each, rank);
    if (is_axis[found]) fail(fmt::format("names the axis {} twice", each));
    is_axis[found] = true;
  }
  return is_axis;
}

Shape NodeCall::broadcast(std::span<const std::int64_t> a, std::span<const std::int64_t> b) const {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t d = 0; d < out.size(); ++d) {
    const std::int64_t left = d < a.size() ? a[a.size() - 1 - d] : 1;
    const std::int64_t right = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (left != right && left != 1 && right != 1) {
      fail(fmt::format("{} and {} cannot be broadcast", shape_text(a), shape_text(b)));
    }
    out[out.size() - 1 - d] = left == 1 ? right : left;
  }
  return out;
}

void NodeCall::fail(const std::string& message, const std::string& remedy) const {
  throw Error(Where{program_->name, 0,
                    fmt::format("node {} ({})", in_quotes(node_->name), node_->operation)},
              message, remedy);
}

}  // namespace braid
