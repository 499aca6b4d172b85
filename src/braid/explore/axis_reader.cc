#include "braid/explore/axis_reader.h"

#include <algorithm>
#include <optional>

#include "braid/base/quantity.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/explore/space.h"

namespace braid {
namespace {

constexpr std::size_t kLongestName = 64;
}  // namespace

std::size_t word_index(const Value& value, std::string_view what,
                       const std::vector<std::string_view>& names) {
  const std::string_view word = value.as_string();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) {
    value.fail(fmt::format("unknown {} {}", what, in_quotes(word)), did_you_mean(word, names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::string axis_name(std::string_view key, const Value& value) {
  const bool plain = std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == '+';
  });
  if (!plain || key.empty() || key.size() > kLongestName || key.front() == '.') {
    value.fail("the name " + in_quotes(key) + " cannot be part of a file's name",
               "use up to 64 letters, digits, '-', '_', '+' and '.'");
  }
  return std::string(key);
}

double quantity_or_zero(const Value& value, Unit unit) {
  return value.exists() ? value.as_quantity(unit) : 0;
}

double read_rate_price(const Value& value, Unit unit) {
  if (!value.exists()) return 0;
  const std::string_view text = value.as_string();
  const std::size_t per = text.find(" per ");
  const char* example =
      unit == Unit::usd ? "such as '2 USD per GB/s'" : "such as '0.05 W per GB/s'";
  if (per == std::string_view::npos) value.fail("not an amount per bandwidth", example);
  const std::optional<double> amount = parse_quantity(text.substr(0, per), unit);
  const std::optional<double> rate =
      parse_quantity("1 " + std::string(text.substr(per + 5)), Unit::bytes_per_s);
  if (!amount || !rate || *rate <= 0) value.fail("not an amount per bandwidth", example);
  for (const auto& fault : {implausible(*amount, unit), implausible(*rate, Unit::bytes_per_s)}) {
    if (fault) value.fail(fault->message, fault->remedy);
  }
  const double price = *amount / *rate * 1e9;
  if (!(price <= 1e12)) value.fail("larger than any price", example);
  return price;
}

bool is_compared_by(const Value& root, const std::string& figure,
                    std::span<const PricedAxis> axes) {
  const auto any_of = [](const PricedAxis& axis) {
    return std::any_of(axis.values.begin(), axis.values.end(),
                       [](const PricedValue& value) { return value.given; });
  };
  bool compared = std::any_of(axes.begin(), axes.end(), any_of);
  std::string others;
  if (const Value compare = root["compare"]; compare.exists()) {
    compared = false;
    static const std::vector<std::string_view> kKnown{"price", "power"};
    for (const Value& entry : compare.elements()) {
      const std::string_view word = kKnown[word_index(entry, "figure", kKnown)];
      compared |= word == figure;
      if (word != figure) others = word;
    }
  }
  if (!compared) return false;
  for (const PricedAxis& axis : axes) {
    if (!axis.needed && !any_of(axis)) continue;
    for (const PricedValue& value : axis.values) {
      if (value.given) continue;
      value.value.fail(fmt::format("the {} '{}' has no {}, so its systems cannot be compared by {}",
                                   axis.what, value.name, axis.key, figure),
                       fmt::format("give its '{}' (0 if it is nothing), or leave {} out of what is "
                                   "compared: 'compare: [{}]'",
                                   axis.key, figure, others));
    }
  }
  return true;
}

void check_point_count(const Value& root, const std::vector<SpaceAxis>& axes) {
  double points = 1;
  for (const SpaceAxis& axis : axes) points *= static_cast<double>(axis.values.size());
  if (points > static_cast<double>(kMostPoints)) {
    root.fail(fmt::format("the space has {:.4g} points, more than {}", points, kMostPoints),
              "leave values out");
  }
}

}  // namespace braid
