#include "braid/system/chip_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "braid/base/and_list.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/chip/accelerator/accelerator_reader.h"
#include "braid/system/accelerator_chip.h"
#include "braid/system/defaults.h"
#include "braid/system/topology_name.h"

namespace braid {
namespace {

Memory read_memory(const Value& value) {
  value.expect_only({"name", "size", "bandwidth"});
  expect_all(value, {"name", "size", "bandwidth"});
  return {std::string(value["name"].as_string()), value["size"].as_positive_quantity(Unit::bytes),
          value["bandwidth"].as_positive_quantity(Unit::bytes_per_s)};
}

/// Those of `efficiency`'s entries that `value` leaves out, with what they are and `said` of where
/// that is from.
void say_left_out(const Value& value, const Efficiency& e, const char* said,
                  std::vector<Provenance>& provenance) {
  std::string left_out;
  const auto look_at = [&](const char* key, const std::string& text) {
    if (value.exists() && value[key].exists()) return;
    left_out += (left_out.empty() ? "" : ", ") + std::string(key) + " " + text;
  };
  const auto number = [](double share) { return fmt::format("{:.4g}", share); };
  look_at("matmul", number(e.matmul_peak_fraction));
  look_at("vector", number(e.vector_peak_fraction));
  look_at("attention", number(e.attention_peak_fraction));
  look_at("memory", number(e.memory_peak_fraction));
  look_at("memory_half_size", format_bytes(e.memory_half_bytes));
  look_at("kernel_launch", format_seconds(e.kernel_launch_s));
  look_at("host_operator", format_seconds(e.host_operator_s));
  look_at("overlap_loss", number(e.overlap_loss));
  look_at("tile", fmt::format("{} x {} x {}", e.tile_m, e.tile_n, e.tile_k));
  if (left_out.empty()) return;
  provenance.push_back({"efficiency", "left out: " + left_out + ", " + said, true});
}

void read_efficiency(const Value& value, Efficiency& efficiency) {
  value.expect_only({"matmul", "narrow_matmul", "vector", "attention", "memory", "memory_half_size",
                     "kernel_launch", "host_operator", "overlap_loss", "tile"});
  const auto fraction = [&](const char* key, double& field) {
    if (value[key].exists()) field = value[key].as_double_in(1e-6, 1);
  };
  fraction("matmul", efficiency.matmul_peak_fraction);
  fraction("narrow_matmul", efficiency.narrow_matmul_peak_fraction);
  fraction("vector", efficiency.vector_peak_fraction);
  fraction("attention", efficiency.attention_peak_fraction);
  fraction("memory", efficiency.memory_peak_fraction);
  if (value["overlap_loss"].exists()) {
    efficiency.overlap_loss = value["overlap_loss"].as_double_in(0, 1);
  }
  if (value["memory_half_size"].exists()) {
    efficiency.memory_half_bytes = value["memory_half_size"].as_quantity(Unit::bytes);
  }
  if (value["kernel_launch"].exists()) {
    efficiency.kernel_launch_s = value["kernel_launch"].as_quantity(Unit::seconds);
  }
  if (value["host_operator"].exists()) {
    efficiency.host_operator_s = value["host_operator"].as_quantity(Unit::seconds);
  }
  const Value tile = value["tile"];
  if (tile.exists()) {
    if (tile.size() != 3) tile.fail("a tile has three sizes", "write [m, n, k]");
    efficiency.tile_m = static_cast<int>(tile[0].as_int_in(1, 1 << 16));
    efficiency.tile_n = static_cast<int>(tile[1].as_int_in(1, 1 << 16));
    efficiency.tile_k = static_cast<int>(tile[2].as_int_in(1, 1 << 16));
  }
}

/// A chip by its peaks, rates and sizes.
Chip read_rated_chip(const Value& value) {
  expect_all(value, {"name", "peak", "vector", "compute_units", "memory"});
  Chip chip;
  for (const auto& [key, rate] : value["peak"].members()) {
    const auto dtype = parse_dtype(key);
    if (!dtype) {
      value["peak"].fail("unknown number format '" + std::string(key) + "'",
                         "use one of f64, f32, tf32, f16, bf16, f8, f4, i8");
    }
    chip.peaks.push_back({*dtype, rate.as_positive_quantity(Unit::flops_per_s)});
  }
  if (chip.peaks.empty()) value["peak"].fail("the chip needs at least one peak rate");
  chip.vector_flops_per_s = value["vector"].as_positive_quantity(Unit::flops_per_s);
  chip.compute_units = static_cast<int>(value["compute_units"].as_int_in(1, 1 << 24));
  chip.memory = read_memory(value["memory"]);
  if (value["on_chip"].exists()) chip.on_chip = read_memory(value["on_chip"]);
  return chip;
}

/// A chip by what it is made of; peaks, rates and sizes follow.
Chip read_designed_chip(const Value& value) {
  for (const char* key : {"peak", "vector", "compute_units", "memory", "on_chip"}) {
    if (value[key].exists()) {
      value[key].fail("follows from the accelerator", "leave it out, or leave out accelerator");
    }
  }
  const Value design = value["accelerator"];
  Chip chip = accelerator_chip(read_accelerator(design), "");
  chip.memory.name = design["hbm"]["name"].string_or("HBM");
  return chip;
}

/// Drops what is said of `key`, which the file has its own figure for.
void drop_provenance(const char* key, std::vector<Provenance>& provenance) {
  std::erase_if(provenance, [&](const Provenance& entry) { return entry.key == key; });
}

}  // namespace

void expect_all(const Value& value, std::initializer_list<std::string_view> keys) {
  std::vector<std::string> missing;
  for (const std::string_view key : keys) {
    if (!value[key].exists()) missing.emplace_back(key);
  }
  if (missing.size() > 1) value.fail("required keys are missing: " + and_list(missing), "add them");
}

std::string_view name_of(ChipExecution execution) {
  return execution == ChipExecution::kernels    ? "kernels"
         : execution == ChipExecution::dataflow ? "dataflow"
                                                : "cores";
}

ChipExecution read_execution(const Value& value, const Chip& chip) {
  const std::string_view name = value.as_string();
  for (const ChipExecution execution :
       {ChipExecution::kernels, ChipExecution::dataflow, ChipExecution::cores}) {
    if (name != name_of(execution)) continue;
    if (execution == ChipExecution::dataflow && !chip.on_chip) {
      value.fail("a dataflow chip needs on-chip memory", "add `on_chip`");
    }
    if (execution == ChipExecution::cores && !chip.accelerator) {
      value.fail("only an accelerator has cores to schedule", "add `accelerator`");
    }
    return execution;
  }
  value.fail(fmt::format("unknown execution {}", in_quotes(name)),
             "write kernels, dataflow or cores");
}

std::string_view name_of(ChipKind kind) {
  return kind == ChipKind::gpu ? "gpu" : kind == ChipKind::tpu ? "tpu" : "other";
}

ChipKind usual_kind(const Chip& chip) {
  return maps_layers(chip) || chip.accelerator ? ChipKind::other : ChipKind::gpu;
}

ChipKind read_kind(const Value& value) {
  for (const ChipKind kind : {ChipKind::gpu, ChipKind::tpu, ChipKind::other}) {
    if (value.as_string() == name_of(kind)) return kind;
  }
  value.fail(fmt::format("unknown kind of chip {}", in_quotes(value.as_string())),
             "write gpu, tpu or other");
}

void read_sources(const Value& value, std::vector<Provenance>& provenance) {
  for (const bool assumed : {false, true}) {
    const Value entries = value[assumed ? "assumed" : "sources"];
    if (!entries.exists()) continue;
    for (const auto& [key, source] : entries.members()) {
      provenance.push_back({std::string(key), std::string(source.as_string()), assumed});
    }
  }
}

Chip read_chip(const Value& value) {
  value.expect_only({"name", "description", "kind", "accelerator", "peak", "vector",
                     "compute_units", "compute_capability", "memory", "on_chip", "host", "reserved",
                     "execution", "power", "price", "efficiency", "sources", "assumed"});
  Chip chip = value["accelerator"].exists() ? read_designed_chip(value) : read_rated_chip(value);
  chip.name = value["name"].as_string();
  chip.description = value["description"].string_or("");
  if (value["host"].exists()) chip.host = read_memory(value["host"]);
  for (const char* key : {"power", "price"}) {
    if (value[key].exists()) drop_provenance(key, chip.provenance);
  }
  read_sources(value, chip.provenance);
  if (value["reserved"].exists()) {
    chip.reserved_bytes = value["reserved"].as_quantity(Unit::bytes);
    if (chip.reserved_bytes >= chip.memory.bytes) {
      value["reserved"].fail("leaves no memory to use");
    }
  } else {
    chip.reserved_bytes = kReservedShare * chip.memory.bytes;
    chip.provenance.push_back(
        {"reserved",
         fmt::format("left out: {:.2g} % of the memory, as usual of the catalogue's GPUs",
                     100 * kReservedShare),
         true});
  }
  if (value["execution"].exists()) {
    chip.execution = read_execution(value["execution"], chip);
  }
  chip.kind = value["kind"].exists() ? read_kind(value["kind"]) : usual_kind(chip);
  if (value["compute_capability"].exists()) {
    chip.compute_capability = value["compute_capability"].as_double_in(1, 1000);
  }
  if (value["power"].exists()) chip.power_w = value["power"].as_quantity(Unit::watts);
  if (value["price"].exists()) chip.price_usd = value["price"].as_quantity(Unit::usd);
  if (!chip.accelerator) chip.efficiency = default_efficiency(chip.execution);
  const Value efficiency = value["efficiency"];
  if (efficiency.exists()) read_efficiency(efficiency, chip.efficiency);
  say_left_out(efficiency, chip.efficiency,
               chip.accelerator ? "the tile an array, all else as usual of the catalogue's GPUs"
                                : "as usual of the catalogue's GPUs",
               chip.provenance);
  return chip;
}

NetworkLevel read_level(const Value& value, const LinkSource& source,
                        std::vector<Provenance>& provenance) {
  value.expect_only({"name", "topology", "size", "dims", "bandwidth", "unit_bandwidth", "latency",
                     "rails", "oversubscription", "efficiency", "half_size"});
  NetworkLevel level;
  level.name = value["name"].string_or("link");
  level.topology = read_topology(value["topology"]);
  if (value["size"].exists()) level.size = value["size"].as_int_in(1, std::int64_t{1} << 31);
  if (value["dims"].exists()) {
    for (const Value& dim : value["dims"].elements()) {
      level.torus_dims.push_back(dim.as_int_in(1, 1 << 24));
    }
    if (level.torus_dims.size() > 6) value["dims"].fail("more than six dimensions");
  }
  if (level.topology == Topology::torus && level.torus_dims.empty()) {
    value.fail("a torus needs its dims", "write dims: [4, 4, 4]");
  }
  level.bytes_per_s = value["bandwidth"].as_positive_quantity(Unit::bytes_per_s);
  if (value["unit_bandwidth"].exists()) {
    level.unit_bytes_per_s = value["unit_bandwidth"].as_positive_quantity(Unit::bytes_per_s);
  }
  if (value["rails"].exists()) level.rails = static_cast<int>(value["rails"].as_int_in(1, 1 << 16));
  if (value["oversubscription"].exists()) {
    level.oversubscription = value["oversubscription"].as_double_in(1, 1e6);
  }
  const auto& [defaults, said] = source;
  std::string left_out;
  const auto leave_out = [&](const std::string& text) {
    left_out += (left_out.empty() ? "" : ", ") + text;
  };
  level.latency_s = defaults.latency_s;
  if (value["latency"].exists()) {
    level.latency_s = value["latency"].as_quantity(Unit::seconds);
  } else {
    leave_out("latency " + format_seconds(level.latency_s));
  }
  level.efficiency = defaults.efficiency;
  if (value["efficiency"].exists()) {
    level.efficiency = value["efficiency"].as_double_in(1e-6, 1);
  } else {
    leave_out(fmt::format("efficiency {:.4g}", level.efficiency));
  }
  level.half_bytes = defaults.half_bytes;
  if (value["half_size"].exists()) {
    level.half_bytes = value["half_size"].as_quantity(Unit::bytes);
  } else {
    leave_out("half_size " + format_bytes(level.half_bytes));
  }
  if (!left_out.empty()) {
    provenance.push_back({level.name, "left out: " + left_out + ", " + said, true});
  }
  return level;
}

}  // namespace braid
