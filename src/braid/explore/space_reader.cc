#include "braid/explore/space_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/explore/axis_reader.h"

namespace braid {
namespace {

SpaceSubset read_subset(const Value& value, const Space& space) {
  SpaceSubset subset(space.axes.size());
  std::vector<std::string> names;
  for (const SpaceAxis& axis : space.axes) names.push_back(axis.name);
  for (const auto& [key, choice] : value.members()) {
    const auto found = std::find(names.begin(), names.end(), key);
    if (found == names.end()) {
      choice.fail("no axis " + in_quotes(key), did_you_mean(key, names));
    }
    const auto axis = static_cast<std::size_t>(found - names.begin());
    const std::vector<std::string_view> values(space.axes[axis].values.begin(),
                                               space.axes[axis].values.end());
    if (!choice.is_array()) {
      subset[axis].push_back(word_index(choice, names[axis], values));
      continue;
    }
    for (const Value& entry : choice.elements()) {
      subset[axis].push_back(word_index(entry, names[axis], values));
    }
    if (subset[axis].empty()) choice.fail("no values", "leave the key out for all of them");
  }
  return subset;
}

SpaceRatio read_ratio(const Value& value, const Space& space) {
  value.expect_only({"name", "of", "above", "below", "published"});
  SpaceRatio ratio;
  ratio.name = std::string(value["name"].as_string());
  static constexpr SpaceFigure kFigures[] = {SpaceFigure::utilisation, SpaceFigure::throughput,
                                             SpaceFigure::per_usd, SpaceFigure::per_w,
                                             SpaceFigure::per_j};
  const Value of = value["of"];
  ratio.figure = kFigures[word_index(of, "figure",
                                     {"utilisation", "throughput", "per_usd", "per_w", "per_j"})];
  const bool priced = ratio.figure == SpaceFigure::per_usd && !space.has_prices;
  const bool powered = ratio.figure == SpaceFigure::per_w && !space.has_powers;
  if (ratio.figure == SpaceFigure::per_j && !space.has_energies) {
    of.fail("plans of this space have no energy", "give 'energy: true'");
  }
  if (priced || powered) {
    of.fail(fmt::format("systems of this space are not compared by {}", priced ? "price" : "power"),
            fmt::format("give '{}' to the chips", priced ? "price" : "power"));
  }
  ratio.above = read_subset(value["above"], space);
  ratio.below = read_subset(value["below"], space);
  ratio.published = value["published"].double_or(0);
  return ratio;
}

}  // namespace

Space parse_space(const Document& document) {
  const Value root = document.root();
  std::string name = root["name"].string_or("space");
  Space space = root["rules"].exists() ? make_space(std::move(name), read_dataflow_space(root))
                                       : make_space(std::move(name), read_system_space(root));
  if (const Value ratios = root["ratios"]; ratios.exists()) {
    for (const Value& ratio : ratios.elements()) space.ratios.push_back(read_ratio(ratio, space));
  }
  return space;
}

Space read_space(const std::string& path) { return parse_space(Document::parse_file(path)); }

}  // namespace braid
