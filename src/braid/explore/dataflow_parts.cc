#include "braid/explore/dataflow_parts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/chip/graph_kernels.h"
#include "braid/explore/axis_reader.h"
#include "braid/system/system.h"

namespace braid {
namespace {

constexpr std::size_t kMostDimensions = 4;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 22;

DataflowChip read_tiles(const Value& value) {
  DataflowChip chip;
  chip.tiles = value["tiles"].as_int_in(1, kMostTiles);
  const Value tile = value["tile"];
  if (tile.size() != 2) tile.fail("a tile has a width and a height", "such as [16, 16]");
  chip.lanes = tile[std::size_t{0}].as_int_in(1, 1 << 20);
  chip.stages = tile[std::size_t{1}].as_int_in(1, 1 << 20);
  chip.clock_hz = value["clock"].as_positive_quantity(Unit::hertz);
  chip.sram_bytes = value["sram"].as_positive_quantity(Unit::bytes);
  return chip;
}

}  // namespace

DataflowSpaceChip read_dataflow_chip(const std::string& name, const Value& value) {
  value.expect_only({"catalogue", "tiles", "tile", "clock", "sram", "style", "passes",
                     "rows_at_once", "price", "power"});
  DataflowSpaceChip chip;
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
  const auto read_cost = [&](const char* key, Unit unit, std::optional<double> of_known) {
    return value[key].exists() ? std::optional(quantity_or_zero(value[key], unit)) : of_known;
  };
  chip.usd = read_cost("price", Unit::usd, known ? known->price_usd : std::nullopt);
  chip.watts = read_cost("power", Unit::watts, known ? known->power_w : std::nullopt);
  if (const Value style = value["style"]; style.exists()) {
    chip.kernel_by_kernel = word_index(style, "style", {"dataflow", "kernel-by-kernel"}) == 1;
  }
  if (const Value passes = value["passes"]; passes.exists()) {
    chip.joint_passes = word_index(passes, "kind of passes", {"apart", "together"}) == 1;
  }
  if (const Value rows = value["rows_at_once"]; rows.exists()) {
    chip.rows_at_once = rows.as_int_in(1, std::int64_t{1} << 40);
  }
  return chip;
}

DataflowTopology read_dataflow_topology(const std::string& name, const Value& value,
                                        std::int64_t devices) {
  value.expect_only({"dimensions", "sizes", "roles"});
  DataflowTopology topology;
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
                 "correct them or 'devices'");
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

DataflowLinks read_dataflow_links(const std::string& name, const Value& value) {
  value.expect_only({"bandwidth", "latency", "price", "power", "port_price", "port_power"});
  DataflowLinks links;
  links.name = name;
  links.bytes_per_s = read_each(value["bandwidth"], kMostDimensions, [](const Value& entry) {
    return entry.as_positive_quantity(Unit::bytes_per_s);
  });
  links.w_per_gb_per_s = read_each(value["power"], kMostDimensions, [](const Value& entry) {
    return read_rate_price(entry, Unit::watts);
  });
  links.usd_per_gb_per_s = read_rate_price(value["price"], Unit::usd);
  links.port_usd_per_gb_per_s = read_rate_price(value["port_price"], Unit::usd);
  links.port_w_per_gb_per_s = read_rate_price(value["port_power"], Unit::watts);
  links.latency_s = quantity_or_zero(value["latency"], Unit::seconds);
  return links;
}

}  // namespace braid
