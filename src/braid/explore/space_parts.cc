#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/chip/graph_kernels.h"
#include "braid/explore/space_reader.h"
#include "braid/system/system.h"

namespace braid {
namespace {

constexpr std::size_t kMostDimensions = 4;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 22;
constexpr double kMost = 1e18;

double bounded(const Value& value, Unit unit) {
  const double amount = value.as_positive_quantity(unit);
  if (amount > kMost) value.fail("larger than any machine", "at most 1e18 in base units");
  return amount;
}

double bounded_or_zero(const Value& value, Unit unit) {
  if (!value.exists()) return 0;
  const double amount = value.as_quantity(unit);
  if (amount > kMost) value.fail("larger than any machine", "at most 1e18 in base units");
  return amount;
}

/// A value, or one for each dimension.
template <typename Read>
std::vector<double> per_dimension(const Value& value, Read&& read) {
  if (!value.is_array()) return {read(value)};
  std::vector<double> values;
  for (const Value& entry : value.elements()) values.push_back(read(entry));
  if (values.empty() || values.size() > kMostDimensions) {
    value.fail("one value, or a list of one to four: for each dimension of the network");
  }
  return values;
}

DataflowChip read_tiles(const Value& value) {
  DataflowChip chip;
  chip.tiles = value["tiles"].as_int_in(1, kMostTiles);
  const Value tile = value["tile"];
  if (tile.size() != 2) tile.fail("a tile has a width and a height", "such as [16, 16]");
  chip.lanes = tile[std::size_t{0}].as_int_in(1, 1 << 20);
  chip.stages = tile[std::size_t{1}].as_int_in(1, 1 << 20);
  chip.clock_hz = bounded(value["clock"], Unit::hertz);
  chip.sram_bytes = bounded(value["sram"], Unit::bytes);
  return chip;
}

}  // namespace

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
  const double price = *amount / *rate * 1e9;
  if (!(price <= 1e12)) value.fail("larger than any price", example);
  return price;
}

SpaceChip read_space_chip(const std::string& name, const Value& value) {
  value.expect_only({"catalogue", "precision", "tiles", "tile", "clock", "sram", "style", "passes",
                     "rows_at_once", "price", "power"});
  SpaceChip chip;
  chip.name = name;
  std::optional<Chip> known;
  if (const Value catalogue = value["catalogue"]; catalogue.exists()) {
    for (const char* key : {"tiles", "tile", "clock", "sram"}) {
      if (value[key].exists()) value[key].fail("the catalogue's chip has its own");
    }
    try {
      known = load_chip(std::string(catalogue.as_string()));
      chip.chip = dataflow_chip(*known, Dtype::bf16);
    } catch (const Error& error) {
      catalogue.fail(error.what());
    }
    chip.chip.dram_bytes = chip.chip.dram_bytes_per_s = 0;
    chip.chip.spill_bytes = chip.chip.spill_bytes_per_s = 0;
  } else {
    chip.chip = read_tiles(value);
  }
  if (value["price"].exists() || !known || !known->price_usd) {
    chip.usd = bounded_or_zero(value["price"], Unit::usd);
  } else {
    chip.usd = *known->price_usd;
  }
  if (value["power"].exists() || !known || !known->power_w) {
    chip.watts = bounded_or_zero(value["power"], Unit::watts);
  } else {
    chip.watts = *known->power_w;
  }
  if (const Value style = value["style"]; style.exists()) {
    chip.kernel_by_kernel = word_index(style, "style", {"dataflow", "kernel-by-kernel"}) == 1;
  }
  if (const Value passes = value["passes"]; passes.exists()) {
    chip.joint_passes = word_index(passes, "way of passes", {"apart", "together"}) == 1;
  }
  if (const Value rows = value["rows_at_once"]; rows.exists()) {
    chip.rows_at_once = rows.as_int_in(1, std::int64_t{1} << 40);
  }
  return chip;
}

SpaceMemory read_space_memory(const std::string& name, const Value& value) {
  value.expect_only({"capacity", "bandwidth", "price", "power"});
  SpaceMemory memory;
  memory.name = name;
  memory.bytes = bounded(value["capacity"], Unit::bytes);
  memory.bytes_per_s = bounded(value["bandwidth"], Unit::bytes_per_s);
  memory.usd_per_gb_per_s = read_rate_price(value["price"], Unit::usd);
  memory.w_per_gb_per_s = read_rate_price(value["power"], Unit::watts);
  return memory;
}

SpaceTopology read_space_topology(const std::string& name, const Value& value,
                                  std::int64_t devices) {
  value.expect_only({"dimensions", "sizes", "roles"});
  SpaceTopology topology;
  topology.name = name;
  static constexpr FabricShape kShapes[] = {FabricShape::ring, FabricShape::fully_connected,
                                            FabricShape::switched};
  static constexpr FabricRole kRoles[] = {FabricRole::tensor, FabricRole::pipeline,
                                          FabricRole::data};
  const Value dimensions = value["dimensions"];
  for (const Value& entry : dimensions.elements()) {
    topology.shapes.push_back(
        kShapes[word_index(entry, "network", {"ring", "fully-connected", "switch"})]);
  }
  if (topology.shapes.empty() || topology.shapes.size() > kMostDimensions) {
    dimensions.fail("a network has one to four dimensions", "such as [ring, ring] for a torus");
  }
  if (const Value sizes = value["sizes"]; sizes.exists()) {
    std::int64_t product = 1;
    for (const Value& entry : sizes.elements()) {
      topology.sizes.push_back(entry.as_int_in(1, devices));
      if (__builtin_mul_overflow(product, topology.sizes.back(), &product)) product = -1;
      if (product > devices || product < 0) break;
    }
    if (topology.sizes.size() != topology.shapes.size() || product != devices) {
      sizes.fail(fmt::format("the sizes of {} dimensions do not multiply to the {} devices",
                             topology.shapes.size(), devices),
                 "mend them or 'devices'");
    }
  }
  if (const Value roles = value["roles"]; roles.exists()) {
    for (const Value& entry : roles.elements()) {
      topology.roles.push_back(kRoles[word_index(entry, "role", {"tensor", "pipeline", "data"})]);
    }
    if (topology.roles.size() != topology.shapes.size()) {
      roles.fail(
          fmt::format("{} roles for {} dimensions", topology.roles.size(), topology.shapes.size()));
    }
  }
  return topology;
}

SpaceLinks read_space_links(const std::string& name, const Value& value) {
  value.expect_only({"bandwidth", "latency", "price", "power", "port_price", "port_power"});
  SpaceLinks links;
  links.name = name;
  links.bytes_per_s = per_dimension(
      value["bandwidth"], [](const Value& entry) { return bounded(entry, Unit::bytes_per_s); });
  links.w_per_gb_per_s = per_dimension(
      value["power"], [](const Value& entry) { return read_rate_price(entry, Unit::watts); });
  links.usd_per_gb_per_s = read_rate_price(value["price"], Unit::usd);
  links.port_usd_per_gb_per_s = read_rate_price(value["port_price"], Unit::usd);
  links.port_w_per_gb_per_s = read_rate_price(value["port_power"], Unit::watts);
  links.latency_s = bounded_or_zero(value["latency"], Unit::seconds);
  return links;
}

namespace {

SpaceSubset read_subset(const Value& value, const Space& space) {
  SpaceSubset subset;
  value.expect_only({"workload", "parallelism", "chip", "memory", "topology", "links"});
  for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
    const auto which = static_cast<SpaceAxis>(axis);
    const Value choice = value[name_of(which)];
    if (!choice.exists()) continue;
    std::vector<std::string_view> names;
    names.reserve(size_of(space, which));
    for (std::size_t i = 0; i < size_of(space, which); ++i) {
      names.push_back(value_name(space, which, i));
    }
    if (choice.is_string()) {
      subset[axis].push_back(word_index(choice, name_of(which), names));
      continue;
    }
    for (const Value& entry : choice.elements()) {
      subset[axis].push_back(word_index(entry, name_of(which), names));
    }
    if (subset[axis].empty()) choice.fail("no values", "leave the key out for all of them");
  }
  return subset;
}

}  // namespace

SpaceRatio read_space_ratio(const Value& value, const Space& space) {
  value.expect_only({"name", "of", "above", "below", "published"});
  SpaceRatio ratio;
  ratio.name = std::string(value["name"].as_string());
  static constexpr SpaceFigure kFigures[] = {SpaceFigure::utilisation, SpaceFigure::throughput,
                                             SpaceFigure::per_usd, SpaceFigure::per_w};
  ratio.figure = kFigures[word_index(value["of"], "figure",
                                     {"utilisation", "throughput", "per_usd", "per_w"})];
  ratio.above = read_subset(value["above"], space);
  ratio.below = read_subset(value["below"], space);
  ratio.published = value["published"].double_or(0);
  return ratio;
}

}  // namespace braid
