#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/chip/accelerator/accelerator_reader.h"
#include "braid/explore/axis_reader.h"
#include "braid/explore/priced_memory.h"
#include "braid/explore/space_reader.h"
#include "braid/frontend/model.h"
#include "braid/plan/plan_energy.h"
#include "braid/system/catalogue.h"
#include "braid/system/chip_reader.h"
#include "braid/system/system_reader.h"

namespace braid {
namespace {

constexpr std::int64_t kMostSpaceDevices = std::int64_t{1} << 24;
constexpr std::size_t kMostNetworks = 7;  // Inside the node, and six above.
constexpr std::int64_t kLongestSample = std::int64_t{1} << 28;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 31;

/// What `read` returns; its Error, which may name no line of the space, is one of `value`.
template <typename Read>
auto read_at(const Value& value, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    value.fail(error.what());
  }
}

/// A name, or the path of a file beside the space's.
std::string beside(const Value& named) {
  const std::string name(named.as_string());
  const auto sibling = std::filesystem::path(named.where().file).parent_path() / name;
  std::error_code ignored;
  return std::filesystem::exists(sibling, ignored) ? sibling.string() : name;
}

SystemWorkload read_workload(const std::string& name, const Value& value) {
  value.expect_only({"model", "global_batch", "seq_len", "precision", "dims"});
  SystemWorkload workload;
  workload.name = name;
  workload.model = beside(value["model"]);
  workload.global_batch = value["global_batch"].as_int_in(1, kMostSamples);
  ModelOptions options;
  if (const Value length = value["seq_len"]; length.exists()) {
    options.seq_len = length.as_int_in(1, kLongestSample);
  }
  if (const Value dims = value["dims"]; dims.exists()) {
    for (const auto& [dim, size] : dims.members()) {
      options.dims[std::string(dim)] = size.as_int_in(1, kLongestSample);
    }
  }
  workload.graph = read_at(value["model"], [&] {
    Graph graph = load_model(workload.model, options);
    check_computes(graph, workload.model);
    return graph;
  });
  if (options.seq_len == 0 && workload.graph.seq_len > 0) {
    workload.assumptions.push_back(
        fmt::format("{}: sequence length: the model's maximum, {} (no seq_len given)", name,
                    workload.graph.seq_len));
  }
  if (std::filesystem::path(workload.model).extension() == ".onnx") {
    workload.assumptions.push_back(
        name +
        ": ONNX: attention, activations and norms that the file writes out run as one kernel "
        "each");
  }
  if (const Value precision = value["precision"]; precision.exists()) {
    workload.precision = std::string(precision.as_string());
    read_at(precision, [&] { return parse_precision(workload.precision); });
  }
  return workload;
}

SystemChip read_system_chip(const std::string& name, const Value& value) {
  SystemChip chip;
  chip.name = name;
  if (!value.is_string()) value.expect_only({"chip", "price", "power"});
  const Value named = value.is_string() ? value : value["chip"];
  if (named.is_object()) {
    chip.chip = read_chip(named);
  } else {
    const std::string known(named.as_string());
    chip.chip = read_at(named, [&] { return load_chip(known, named.where()); });
  }
  chip.usd = chip.chip.price_usd.value_or(0);
  chip.watts = chip.chip.power_w.value_or(0);
  if (value.is_string()) return chip;
  if (value["price"].exists()) chip.usd = quantity_or_zero(value["price"], Unit::usd);
  if (value["power"].exists()) chip.watts = quantity_or_zero(value["power"], Unit::watts);
  return chip;
}

SystemArchitectures read_architectures(const Value& value) {
  SystemArchitectures read;
  const Value of = value["of"];
  const std::string name = of.string_or("phaze-tpuv4");
  read.rest = read_at(of.exists() ? of : value, [&] { return load_chip(name, value.where()); });
  if (!read.rest.accelerator) {
    of.fail(in_quotes(name) + " is no accelerator", "give a chip with `accelerator`");
  }
  if (!read.rest.accelerator->latencies.empty()) {
    (of.exists() ? of : value)
        .fail(in_quotes(name) + " has latencies of another mapper, which are of one architecture",
              "name a chip without 'latencies'");
  }
  read.space = read_architecture_space(value);
  read.all = architectures(read.space);
  return read;
}

std::vector<double> read_rates(const Value& value, Unit unit) {
  return read_each(value, kMostNetworks,
                   [unit](const Value& entry) { return read_rate_price(entry, unit); });
}

/// `value[key]`, or a missing value where `value` is but a name.
bool has_key(const Value& value, const char* key) {
  return value.is_object() && value[key].exists();
}

SystemNetwork read_system_network(const std::string& name, const Value& value, const Chip& chip,
                                  const std::vector<std::int64_t>& devices) {
  SystemNetwork network;
  network.name = name;
  if (!value.is_string()) value.expect_only({"cluster", "network", "price", "power"});
  const bool own = has_key(value, "network");
  const Value named = value.is_string() ? value : own ? value["network"] : value["cluster"];
  if (own && value["cluster"].exists()) {
    value["cluster"].fail("'network' and 'cluster' exclude each other", "leave one of them out");
  }
  for (const std::int64_t count : devices) {
    network.by_devices.push_back(read_at(named, [&] {
      const DeviceCount devices_of{count, false};
      return own ? read_network(named, chip, devices_of)
                 : load_cluster(std::string(named.as_string()), devices_of, named.where(), 0);
    }));
    if (!is_homogeneous(network.by_devices.back())) {
      named.fail(
          "a cluster of several kinds of nodes, or with a bandwidth matrix, has no network "
          "to put other chips on",
          "name it under 'clusters'");
    }
  }
  if (has_key(value, "price")) network.usd_per_gb_per_s = read_rates(value["price"], Unit::usd);
  if (has_key(value, "power")) network.w_per_gb_per_s = read_rates(value["power"], Unit::watts);
  return network;
}

SystemLinks read_system_links(const std::string& name, const Value& value) {
  value.expect_only({"bandwidth", "latency", "price", "power"});
  SystemLinks links;
  links.name = name;
  links.bytes_per_s = read_each(value["bandwidth"], kMostNetworks, [](const Value& entry) {
    return entry.as_positive_quantity(Unit::bytes_per_s);
  });
  if (value["latency"].exists()) {
    links.latency_s = read_each(value["latency"], kMostNetworks, [](const Value& entry) {
      return quantity_or_zero(entry, Unit::seconds);
    });
  }
  links.usd_per_gb_per_s = read_rates(value["price"], Unit::usd);
  links.w_per_gb_per_s = read_rates(value["power"], Unit::watts);
  return links;
}

SystemCluster read_system_cluster(const std::string& name, const Value& value,
                                  const std::vector<std::int64_t>& devices) {
  SystemCluster cluster;
  cluster.name = name;
  if (!value.is_string()) value.expect_only({"cluster", "price", "power"});
  const Value named = value.is_string() ? value : value["cluster"];
  const std::string spec(named.as_string());
  const bool counted = spec.find_first_of(":+") != std::string::npos;
  if (counted && !devices.empty()) {
    named.fail("the number of devices is said here and under 'devices'", "leave one of them out");
  }
  if (counted) {
    cluster.by_devices.push_back(read_at(named, [&] { return load_system(spec); }));
  }
  for (std::size_t i = 0; !counted && i < std::max<std::size_t>(1, devices.size()); ++i) {
    const DeviceCount count{devices.empty() ? 0 : devices[i], false};
    cluster.by_devices.push_back(
        read_at(named, [&] { return load_cluster(spec, count, named.where(), 0); }));
  }
  if (has_key(value, "price")) cluster.usd = quantity_or_zero(value["price"], Unit::usd);
  if (has_key(value, "power")) cluster.watts = quantity_or_zero(value["power"], Unit::watts);
  return cluster;
}

std::vector<std::string> read_planners(const Value& root) {
  std::vector<std::string_view> known;
  for (const PlannerEntry& entry : planners()) known.push_back(entry.name);
  const Value one = root["planner"], several = root["planners"];
  if (one.exists() && several.exists()) {
    several.fail("'planner' and 'planners' exclude each other", "leave one of them out");
  }
  if (one.exists()) return {std::string(known[word_index(one, "planner", known)])};
  if (!several.exists()) return {std::string(kDefaultPlanner)};
  std::vector<std::string> names;
  for (const Value& entry : several.elements()) {
    names.emplace_back(known[word_index(entry, "planner", known)]);
    if (std::count(names.begin(), names.end(), names.back()) > 1) entry.fail("listed twice");
  }
  if (names.empty()) several.fail("the axis 'planners' has no values", "leave it out for braid");
  return names;
}

std::vector<std::int64_t> read_devices(const Value& value) {
  if (!value.exists()) return {};
  if (!value.is_array()) return {value.as_int_in(1, kMostSpaceDevices)};
  std::vector<std::int64_t> devices;
  for (const Value& entry : value.elements()) {
    devices.push_back(entry.as_int_in(1, kMostSpaceDevices));
    if (std::count(devices.begin(), devices.end(), devices.back()) > 1) entry.fail("listed twice");
  }
  if (devices.empty()) value.fail("the axis 'devices' has no values", "give a number, such as 64");
  return devices;
}

/// Chips, memories, networks and links, each combination of which is a system.
void read_combinations(const Value& root, const std::vector<std::int64_t>& devices,
                       SystemSpace& space) {
  if (devices.empty()) {
    root.fail("the number of devices is missing", "give 'devices: 64', or a list of numbers");
  }
  if (const Value every = root["architectures"]; every.exists()) {
    if (root["chips"].exists()) {
      every.fail("architectures are chips themselves", "leave 'chips' out, or 'architectures'");
    }
    space.architectures = read_architectures(every);
  } else {
    space.chips = read_axis<SystemChip>(root, "chips", read_system_chip);
  }
  Chip any = space.architectures ? space.architectures->rest : space.chips.front().chip;
  any.host.reset();  // Of a network is the host memory that its nodes have.
  space.networks =
      read_axis<SystemNetwork>(root, "networks", [&](const std::string& name, const Value& value) {
        return read_system_network(name, value, any, devices);
      });
  if (root["memories"].exists()) {
    space.memories = read_axis<PricedMemory>(root, "memories", read_priced_memory);
  }
  if (root["links"].exists())
    space.links = read_axis<SystemLinks>(root, "links", read_system_links);
  const auto check_reserve = [&](const std::string& name, const Chip& chip) {
    for (const PricedMemory& memory : space.memories) {
      if (memory.bytes > chip.reserved_bytes) continue;
      root["memories"][memory.name]["capacity"].fail(
          fmt::format("the chip '{}' reserves {}, so nothing is left to plans", name,
                      format_bytes(chip.reserved_bytes)),
          "give more");
    }
  };
  if (space.architectures) check_reserve(space.architectures->rest.name, space.architectures->rest);
  for (const SystemChip& chip : space.chips) check_reserve(chip.name, chip.chip);
  if (space.links.empty() || !root["networks"].is_object()) return;
  for (const SystemNetwork& network : space.networks) {
    const Value value = root["networks"][network.name];
    for (const char* key : {"price", "power"}) {
      if (has_key(value, key)) {
        value[key].fail("the space has links, and these have their own", "give it there");
      }
    }
  }
}

// The values of an axis and which of them have `key`; those of a list are but names.
template <typename Part, typename Known>
PricedAxis priced_values(const Value& root, const char* axis, const char* what,
                         const std::string& key, const std::vector<Part>& parts, Known&& known) {
  PricedAxis found{what, key, false, {}};
  const Value values = root[axis];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Value value = values.is_array() ? values[i] : values[parts[i].name];
    found.values.push_back({value, parts[i].name, has_key(value, key.c_str()) || known(parts[i])});
  }
  return found;
}

bool chip_has(const Chip& chip, const std::string& figure) {
  return figure == "price" ? chip.price_usd.has_value() : chip.power_w.has_value();
}

bool is_compared(const Value& root, const SystemSpace& space, const std::string& figure) {
  const auto never = [](const auto&) { return false; };
  const auto cluster_has = [&](const SystemCluster& cluster) {
    const std::vector<DeviceGroup>& groups = cluster.by_devices.front().groups;
    return std::all_of(groups.begin(), groups.end(),
                       [&](const DeviceGroup& group) { return chip_has(group.chip, figure); });
  };
  std::vector<PricedAxis> axes{
      priced_values(root, "chips", "chip", figure, space.chips,
                    [&](const SystemChip& chip) { return chip_has(chip.chip, figure); }),
      priced_values(root, "memories", "memory", figure, space.memories, never),
      priced_values(root, "networks", "network", figure, space.networks, never),
      priced_values(root, "links", "links", figure, space.links, never),
      priced_values(root, "clusters", "cluster", figure, space.clusters, cluster_has)};
  // Whatever else has a price, devices without one have none.
  axes.front().needed = axes.back().needed = true;
  if (space.architectures) {
    axes.push_back({"architecture", figure, false, {{root["architectures"], "", true}}});
  }
  return is_compared_by(root, figure, axes);
}

/// `tp: 8`, `tp: [1, 2, 4]`, `max_tp: 4`, and so for the others.
void read_degrees(const Value& value, SpaceOptions& options) {
  struct Degree {
    const char* key;
    const char* limit_key;
    Degrees SpaceOptions::*degree;
  };
  constexpr Degree kDegrees[] = {{"tp", "max_tp", &SpaceOptions::tp},
                                 {"pp", "max_pp", &SpaceOptions::pp},
                                 {"dp", "max_dp", &SpaceOptions::dp},
                                 {"cp", "max_cp", &SpaceOptions::cp},
                                 {"ep", "max_ep", &SpaceOptions::ep},
                                 {"vp", "max_vp", &SpaceOptions::vp},
                                 {"micro_batch", "max_micro_batch", &SpaceOptions::micro_batch}};
  constexpr std::int64_t kMost = 1 << 24;
  value.expect_only({"tp", "pp", "dp", "cp", "ep", "vp", "micro_batch", "max_tp", "max_pp",
                     "max_dp", "max_cp", "max_ep", "max_vp", "max_micro_batch"});
  for (const Degree& degree : kDegrees) {
    std::vector<int> values;
    const Value listed = value[degree.key];
    if (listed.is_array()) {
      for (const Value& one : listed.elements()) {
        values.push_back(static_cast<int>(one.as_int_in(1, kMost)));
      }
      if (values.empty()) listed.fail("the list is empty", "leave it out for all degrees");
    } else if (listed.exists()) {
      values.push_back(static_cast<int>(listed.as_int_in(1, kMost)));
    }
    const Value limit = value[degree.limit_key];
    const int most =
        limit.exists() ? static_cast<int>(limit.as_int_in(1, kMost)) : Degrees::kNoLimit;
    options.*degree.degree = Degrees(std::move(values), most);
    if (!(options.*degree.degree).at_least(1)) {
      limit.fail("is less than all of " + std::string(degree.key), "raise it or leave it out");
    }
  }
}

/// After workloads, prices and powers.
SystemSearch read_search(const Value& value, const SystemSpace& space) {
  SystemSearch search;
  search.weights.assign(space.workloads.size(), 1.0 / static_cast<double>(space.workloads.size()));
  const Value what = value.is_string() ? value : value["for"];
  static constexpr SearchFor kAims[] = {SearchFor::throughput, SearchFor::per_usd, SearchFor::per_w,
                                        SearchFor::energy, SearchFor::front};
  search.what =
      kAims[word_index(what, "aim", {"throughput", "per_usd", "per_w", "energy", "front"})];
  if ((search.what == SearchFor::per_usd && !space.has_prices) ||
      (search.what == SearchFor::per_w && !space.has_powers)) {
    what.fail("systems of this space have no such figure", "give chips a price, or a power");
  }
  if (search.what == SearchFor::front && !space.has_prices && !space.has_powers) {
    what.fail("systems of this space are compared by throughput alone",
              "search for throughput, or give chips a price or a power");
  }
  for (const std::string& name : space.planners) {
    if (find_planner(name).bounds_systems) continue;
    what.fail("planner " + in_quotes(name) + " has no bounds for a search",
              "leave 'search' out; it is for " +
                  planners_text([](const PlannerEntry& each) { return each.bounds_systems; }));
  }
  if (value.is_string()) return search;
  value.expect_only({"for", "keep", "within", "weights", "budget"});
  if (value["keep"].exists()) {
    search.keep = static_cast<std::size_t>(value["keep"].as_int_in(1, 1000));
  }
  if (value["within"].exists()) search.within = value["within"].as_double_in(0, 1);
  if (value["budget"].exists()) {
    search.most_plans = value["budget"].as_int_in(1, std::int64_t{1} << 40);
  }
  const Value weights = value["weights"];
  if (!weights.exists()) return search;
  double sum = 0;
  for (std::size_t i = 0; i < space.workloads.size(); ++i) {
    search.weights[i] = weights[space.workloads[i].name].as_double_in(1e-6, 1e6);
    sum += search.weights[i];
  }
  if (weights.size() != space.workloads.size()) {
    weights.fail("names more than the workloads", "give each workload one weight");
  }
  for (double& weight : search.weights) weight /= sum;
  return search;
}

/// Energy is counted of operators that are mapped onto cores, and of the model's own shardings.
void check_energy(const Value& root, const SystemSpace& space) {
  const Value asked = root["energy"].exists() ? root["energy"] : root["search"];
  if (space.sharding == ShardingSource::automatic) {
    root["sharding"].fail("energy is counted of the model's own shardings alone",
                          "leave 'sharding' out");
  }
  const auto check = [&](const std::string& name, const System& system) {
    if (has_energy(system)) return;
    asked.fail(in_quotes(name) + " is no accelerator whose layers are mapped onto its cores",
               "name chips with 'accelerator' and without 'execution: kernels'");
  };
  const auto on_network = [&](const Chip& chip) {
    System system = space.networks.front().by_devices.front();
    for (DeviceGroup& group : system.groups) group.chip = chip;
    return system;
  };
  if (space.architectures) {
    check(space.architectures->rest.name, on_network(space.architectures->rest));
  }
  for (const SystemChip& chip : space.chips) check(chip.name, on_network(chip.chip));
  for (const SystemCluster& cluster : space.clusters) {
    check(cluster.name, cluster.by_devices.front());
  }
}

}  // namespace

SystemSpace read_system_space(const Value& root) {
  if (root["topologies"].exists() || root["parallelism"].exists()) {
    const char* key = root["topologies"].exists() ? "topologies" : "parallelism";
    root[key].fail(
        "is of DFModel's cluster model",
        "add 'rules: dfmodel' or 'rules: dfmodel-charged', or name networks for planners");
  }
  root.expect_only({"name",        "planner", "planners",      "budget",    "compare",  "offload",
                    "all_devices", "for",     "sharding",      "objective", "search",   "degrees",
                    "workloads",   "chips",   "architectures", "memories",  "networks", "links",
                    "clusters",    "devices", "energy",        "ratios"});
  SystemSpace space;
  space.planners = read_planners(root);
  if (const Value budget = root["budget"]; budget.exists()) {
    space.budget.work = budget.as_int_in(1, std::int64_t{1} << 40);
  }
  if (const Value trainer = root["for"]; trainer.exists()) {
    space.trainer = load_trainer(std::string(trainer.as_string()), trainer.where());
  }
  space.options.allow_offload = root["offload"].bool_or(true);
  space.options.all_devices = root["all_devices"].bool_or(false);
  if (const Value objective = root["objective"]; objective.exists()) {
    word_index(objective, "objective", {"flush", "simulated", "program"});
    space.own["objective"] = objective.as_string();
  }
  if (const Value sharding = root["sharding"]; sharding.exists()) {
    space.sharding = word_index(sharding, "sharding", {"manual", "auto"}) == 1
                         ? ShardingSource::automatic
                         : ShardingSource::manual;
  }
  if (root["degrees"].exists()) read_degrees(root["degrees"], space.options);
  const std::vector<std::int64_t> devices = read_devices(root["devices"]);
  for (const std::int64_t count : devices) space.devices.push_back(std::to_string(count));
  space.workloads = read_axis<SystemWorkload>(root, "workloads", read_workload);
  if (root["clusters"].exists()) {
    for (const char* key : {"chips", "architectures", "memories", "networks", "links"}) {
      if (root[key].exists()) {
        root[key].fail("'clusters' are whole systems", "leave one of the two out");
      }
    }
    space.clusters = read_axis<SystemCluster>(root, "clusters",
                                              [&](const std::string& name, const Value& value) {
                                                return read_system_cluster(name, value, devices);
                                              });
  } else {
    read_combinations(root, devices, space);
  }
  space.has_prices = is_compared(root, space, "price");
  space.has_powers = is_compared(root, space, "power");
  check_point_count(root, axes_of(space));
  space.counts_energy = root["energy"].bool_or(false);
  if (root["search"].exists()) space.search = read_search(root["search"], space);
  if (space.search && space.search->what == SearchFor::energy) space.counts_energy = true;
  if (space.counts_energy) check_energy(root, space);
  return space;
}

}  // namespace braid
