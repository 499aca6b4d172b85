#include "braid/explore/space_reader.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/base/suggest.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::int64_t kMostDevices = std::int64_t{1} << 24;

// Names are parts of file names and of tables.
std::string name_in(std::string_view key, const Value& value) {
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

/// The values of an axis, in file order.
template <typename Part, typename Read>
std::vector<Part> read_axis(const Value& root, std::string_view key, Read&& read) {
  const Value axis = root[key];
  if (!axis.exists()) {
    root.fail(fmt::format("the axis '{}' is missing", key), "give at least one value by name");
  }
  std::vector<Part> parts;
  if (!axis.is_null()) {
    for (const auto& [name, value] : axis.members()) {
      parts.push_back(read(name_in(name, value), value));
    }
  }
  if (parts.empty()) {
    axis.fail(fmt::format("the axis '{}' has no values", key), "give at least one by name");
  }
  return parts;
}

std::vector<SpaceParallelism> read_parallelisms(const Value& value) {
  static constexpr SpaceParallelism kAll[] = {SpaceParallelism::given, SpaceParallelism::roles,
                                              SpaceParallelism::shapes};
  const std::vector<std::string_view> names{name_of(kAll[0]), name_of(kAll[1]), name_of(kAll[2])};
  if (!value.exists()) return {SpaceParallelism::shapes};
  if (value.is_string()) return {kAll[word_index(value, "way to divide", names)]};
  std::vector<SpaceParallelism> ways;
  for (const Value& entry : value.elements()) {
    const SpaceParallelism way = kAll[word_index(entry, "way to divide", names)];
    if (std::find(ways.begin(), ways.end(), way) != ways.end()) entry.fail("listed twice");
    ways.push_back(way);
  }
  if (ways.empty()) value.fail("the axis 'parallelism' has no values", "give shapes, for example");
  return ways;
}

// What `given` and `roles` need of every network.
void check_topologies(const Value& root, const Space& space) {
  const auto uses = [&space](SpaceParallelism way) {
    return std::find(space.parallelisms.begin(), space.parallelisms.end(), way) !=
           space.parallelisms.end();
  };
  const bool sizes = uses(SpaceParallelism::given) || uses(SpaceParallelism::roles);
  const bool layers = std::any_of(
      space.workloads.begin(), space.workloads.end(),
      [](const SpaceWorkload& load) { return load.job.workload == DataflowWorkload::layers; });
  for (const SpaceTopology& topology : space.topologies) {
    const Value value = root["topologies"][topology.name];
    if (sizes && topology.sizes.empty()) {
      value.fail("its sizes are not given", "give sizes, or only 'parallelism: shapes'");
    }
    if (!uses(SpaceParallelism::given) || !layers) continue;
    if (topology.roles.empty()) {
      value.fail("what its dimensions divide is not given",
                 "give roles (tensor, pipeline, data), or leave 'given' out of parallelism");
    }
    std::int64_t data = 1;
    for (std::size_t i = 0; i < topology.sizes.size(); ++i) {
      if (topology.roles[i] == FabricRole::data) data *= topology.sizes[i];
    }
    for (const SpaceWorkload& load : space.workloads) {
      if (load.job.workload == DataflowWorkload::layers && load.job.global_batch < data) {
        value.fail(fmt::format("its {} data-parallel devices are more than the {} samples of '{}'",
                               data, load.job.global_batch, load.name));
      }
    }
  }
}

void check_size(const Value& root, const Space& space) {
  double points = 1;
  for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
    points *= static_cast<double>(size_of(space, static_cast<SpaceAxis>(axis)));
  }
  if (points > static_cast<double>(kMostPoints)) {
    root.fail(fmt::format("the space has {:.4g} points, more than {}", points, kMostPoints),
              "leave values out");
  }
}

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

Space parse_space(const Document& document) {
  const Value root = document.root();
  root.expect_only({"name", "devices", "rules", "overlap", "sustained", "all_reduce_passes",
                    "switch_bisection", "budget", "parallelism", "workloads", "chips", "memories",
                    "topologies", "links", "ratios"});
  Space space;
  space.name = root["name"].string_or("space");
  space.devices = root["devices"].as_int_in(1, kMostDevices);
  if (const Value rules = root["rules"]; rules.exists()) {
    space.published_rules = word_index(rules, "rules", {"braid", "dfmodel"}) == 1;
  }
  if (const Value overlap = root["overlap"]; overlap.exists()) {
    static constexpr PartitionOverlap kOverlaps[] = {
        PartitionOverlap::all, PartitionOverlap::compute_memory, PartitionOverlap::none};
    space.overlap = kOverlaps[word_index(overlap, "overlap", {"all", "compute-memory", "none"})];
  }
  if (const Value share = root["sustained"]; share.exists()) {
    space.compute_fraction = share.as_double_in(1e-6, 1);
  }
  if (const Value passes = root["all_reduce_passes"]; passes.exists()) {
    space.all_reduce_passes = static_cast<double>(passes.as_int_in(1, 2));
  }
  if (const Value bisection = root["switch_bisection"]; bisection.exists()) {
    space.switch_bisection = bisection.as_double_in(0.01, 100);
  }
  if (const Value budget = root["budget"]; budget.exists()) {
    space.budget = budget.as_int_in(1, std::int64_t{1} << 40);
  }
  space.parallelisms = read_parallelisms(root["parallelism"]);
  space.workloads = read_axis<SpaceWorkload>(root, "workloads",
                                             [&space](const std::string& name, const Value& value) {
                                               return read_space_workload(name, value, space);
                                             });
  space.chips = read_axis<SpaceChip>(root, "chips", read_space_chip);
  space.memories = read_axis<SpaceMemory>(root, "memories", read_space_memory);
  space.topologies = read_axis<SpaceTopology>(
      root, "topologies", [&space](const std::string& name, const Value& value) {
        return read_space_topology(name, value, space.devices);
      });
  space.links = read_axis<SpaceLinks>(root, "links", read_space_links);
  check_topologies(root, space);
  check_size(root, space);
  if (const Value ratios = root["ratios"]; ratios.exists()) {
    for (const Value& ratio : ratios.elements()) {
      space.ratios.push_back(read_space_ratio(ratio, space));
    }
  }
  return space;
}

Space read_space(const std::string& path) { return parse_space(Document::parse_file(path)); }

}  // namespace braid
