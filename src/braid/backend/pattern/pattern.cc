#include "braid/backend/pattern/pattern.h"

#include <fmt/format.h>

namespace braid {

bool operator==(const Pattern& a, const Pattern& b) {
  return pattern_text(a) == pattern_text(b) && a.commutes == b.commutes;
}

Pattern any() { return {}; }

Pattern constant() {
  Pattern result;
  result.kind = Pattern::Kind::constant;
  return result;
}

Pattern pattern(std::string operation, std::vector<Pattern> args) {
  Pattern result;
  result.kind = Pattern::Kind::operation;
  result.operation = std::move(operation);
  result.args = std::move(args);
  return result;
}

Pattern commutative(std::string operation, std::vector<Pattern> args) {
  Pattern result = pattern(std::move(operation), std::move(args));
  result.commutes = true;
  return result;
}

Pattern tuple_of(std::vector<Pattern> fields) {
  Pattern result;
  result.kind = Pattern::Kind::tuple;
  result.args = std::move(fields);
  return result;
}

Pattern projection(std::int32_t index, Pattern from) {
  Pattern result;
  result.kind = Pattern::Kind::projection;
  result.args.push_back(std::move(from));
  result.index = index;
  return result;
}

namespace {

std::string attribute_text(const Attribute& attribute) {
  return std::visit(
      [&]<typename Value>(const Value& value) -> std::string {
        if constexpr (std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, double> ||
                      std::is_same_v<Value, std::string>) {
          return fmt::format("{}={}", attribute.name, value);
        } else if constexpr (std::is_same_v<Value, std::monostate> ||
                             std::is_same_v<Value, std::shared_ptr<const DenseTensor>>) {
          return attribute.name;
        } else {
          return fmt::format("{}=[{}]", attribute.name, fmt::join(value, " "));
        }
      },
      attribute.value);
}

}  // namespace

std::string pattern_text(const Pattern& pattern) {
  if (pattern.kind == Pattern::Kind::any) return "*";
  if (pattern.kind == Pattern::Kind::constant) return "const";
  std::string text = pattern.operation;
  if (pattern.kind == Pattern::Kind::tuple) text = "tuple";
  if (pattern.kind == Pattern::Kind::projection) text = fmt::format("output:{}", pattern.index);
  if (!pattern.attributes.empty()) {
    text += "{";
    for (const Attribute& each : pattern.attributes) text += attribute_text(each) + ";";
    text += "}";
  }
  text += "(";
  for (std::size_t i = 0; i < pattern.args.size(); ++i) {
    text += (i == 0 ? "" : ", ") + pattern_text(pattern.args[i]);
  }
  if (pattern.takes_more) text += pattern.args.empty() ? "…" : ", …";
  return text + ")";
}

}  // namespace braid
