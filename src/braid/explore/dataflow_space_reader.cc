#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/explore/axis_reader.h"
#include "braid/explore/dataflow_parts.h"
#include "braid/explore/priced_memory.h"
#include "braid/explore/space_reader.h"

namespace braid {
namespace {

constexpr std::int64_t kMostChips = std::int64_t{1} << 24;

bool is_published(const Value& rules) {
  if (rules.is_string() && rules.as_string() == "braid") {
    rules.fail("DFModel's cluster model with everything charged is not braid's",
               "name these rules 'dfmodel-charged'; or leave them out, name models and networks, "
               "and planners plan each point");
  }
  return word_index(rules, "rules", {"dfmodel", "dfmodel-charged"}) == 0;
}

std::vector<FabricParallelism> read_parallelisms(const Value& value) {
  static constexpr FabricParallelism kAll[] = {FabricParallelism::given, FabricParallelism::roles,
                                               FabricParallelism::shapes};
  const std::vector<std::string_view> names{name_of(kAll[0]), name_of(kAll[1]), name_of(kAll[2])};
  if (!value.exists()) return {FabricParallelism::shapes};
  if (value.is_string()) return {kAll[word_index(value, "parallelism", names)]};
  std::vector<FabricParallelism> ways;
  for (const Value& entry : value.elements()) {
    const FabricParallelism way = kAll[word_index(entry, "parallelism", names)];
    if (std::find(ways.begin(), ways.end(), way) != ways.end()) entry.fail("listed twice");
    ways.push_back(way);
  }
  if (ways.empty()) value.fail("the axis 'parallelism' has no values", "give shapes, for example");
  return ways;
}

// What `given` and `roles` need of every network.
void check_topologies(const Value& root, const DataflowSpace& space) {
  const auto uses = [&space](FabricParallelism way) {
    return std::find(space.parallelisms.begin(), space.parallelisms.end(), way) !=
           space.parallelisms.end();
  };
  const bool sizes = uses(FabricParallelism::given) || uses(FabricParallelism::roles);
  const bool layers = std::any_of(space.workloads.begin(), space.workloads.end(),
                                  [](const DataflowSpaceWorkload& load) {
                                    return load.job.workload == DataflowWorkload::layers;
                                  });
  for (const DataflowTopology& topology : space.topologies) {
    const Value value = root["topologies"][topology.name];
    if (sizes && topology.sizes.empty()) {
      value.fail("its sizes are not given", "give sizes, or only 'parallelism: shapes'");
    }
    if (!uses(FabricParallelism::given) || !layers) continue;
    if (topology.roles.empty()) {
      value.fail("what its dimensions divide is not given",
                 "give roles (tensor, pipeline, data), or leave 'given' out of parallelism");
    }
    std::int64_t data = 1;
    for (std::size_t i = 0; i < topology.sizes.size(); ++i) {
      if (topology.roles[i] == FabricRole::data) data *= topology.sizes[i];
    }
    for (const DataflowSpaceWorkload& load : space.workloads) {
      if (load.job.workload == DataflowWorkload::layers && load.job.global_batch < data) {
        value.fail(fmt::format("its {} data-parallel devices are more than the {} samples of '{}'",
                               data, load.job.global_batch, load.name));
      }
    }
  }
}

// What values of the axis have `key`, those of `known` without it as well.
template <typename Part, typename Known>
PricedAxis priced(const Value& root, const char* axis, const char* what, const char* key,
                  const std::vector<Part>& parts, Known&& known) {
  PricedAxis priced_axis{what, key, false, {}};
  for (const Part& part : parts) {
    const Value value = root[axis][part.name];
    priced_axis.values.push_back({value, part.name, value[key].exists() || known(part)});
  }
  return priced_axis;
}

bool is_priced(const Value& root, const DataflowSpace& space, const std::string& figure) {
  const bool price = figure == "price";
  const auto never = [](const auto&) { return false; };
  std::vector<PricedAxis> axes{
      priced(root, "chips", "chip", figure.c_str(), space.chips,
             [price](const DataflowSpaceChip& chip) {
               return price ? chip.usd.has_value() : chip.watts.has_value();
             }),
      priced(root, "memories", "memory", figure.c_str(), space.memories, never),
      priced(root, "links", "links", figure.c_str(), space.links, never),
      priced(root, "links", "links", price ? "port_price" : "port_power", space.links, never)};
  axes.front().needed = true;
  return is_compared_by(root, figure, axes);
}

}  // namespace

DataflowSpace read_dataflow_space(const Value& root) {
  root.expect_only({"name", "devices", "rules", "overlap", "sustained", "all_reduce_passes",
                    "switch_bisection", "budget", "compare", "parallelism", "workloads", "chips",
                    "memories", "topologies", "links", "ratios"});
  DataflowSpace space;
  space.devices = root["devices"].as_int_in(1, kMostChips);
  space.published_rules = is_published(root["rules"]);
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
  space.workloads = read_axis<DataflowSpaceWorkload>(
      root, "workloads", [&space](const std::string& name, const Value& value) {
        return read_dataflow_workload(name, value, space.devices);
      });
  space.chips = read_axis<DataflowSpaceChip>(root, "chips", read_dataflow_chip);
  space.memories = read_axis<PricedMemory>(root, "memories", read_priced_memory);
  space.topologies = read_axis<DataflowTopology>(
      root, "topologies", [&space](const std::string& name, const Value& value) {
        return read_dataflow_topology(name, value, space.devices);
      });
  space.links = read_axis<DataflowLinks>(root, "links", read_dataflow_links);
  check_topologies(root, space);
  space.has_prices = is_priced(root, space, "price");
  space.has_powers = is_priced(root, space, "power");
  check_point_count(root, axes_of(space));
  return space;
}

}  // namespace braid
