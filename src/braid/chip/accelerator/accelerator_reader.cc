#include "braid/chip/accelerator/accelerator_reader.h"

#include <bit>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/base/file.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/chip/accelerator/accelerator_fault.h"

namespace braid {
namespace {

constexpr double kUm2PerMm2 = 1e6;
constexpr double kUm2PerM2 = 1e12;

/// `field` as `value` has it, if it does.
void read_quantity(const Value& value, Unit unit, double& field) {
  if (value.exists()) field = value.as_quantity(unit);
}

void read_positive(const Value& value, double most, double& field) {
  if (value.exists()) field = value.as_double_in(1e-6, most);
}

void read_cores(const Value& value, Accelerator& chip) {
  const Value tensor = value["tensor_cores"];
  tensor.expect_only({"count", "width", "depth", "l2"});
  chip.tensor = {tensor["count"].as_int(), tensor["width"].as_int(), tensor["depth"].as_int(), 0};
  chip.tensor.l2_bytes = published_l2_bytes(static_cast<double>(chip.tensor.width) *
                                            static_cast<double>(chip.tensor.depth));
  read_quantity(tensor["l2"], Unit::bytes, chip.tensor.l2_bytes);
  const Value vector = value["vector_cores"];
  vector.expect_only({"count", "lanes", "l2"});
  chip.vector = {vector["count"].as_int(), vector["lanes"].as_int(), 0};
  chip.vector.l2_bytes = published_l2_bytes(static_cast<double>(chip.vector.lanes));
  read_quantity(vector["l2"], Unit::bytes, chip.vector.l2_bytes);
}

Dtype read_format(const Value& value) {
  const std::string_view name = value.as_string();
  const auto format = parse_dtype(name);
  if (!format || bits_per_element(*format) > 32 || *format == Dtype::boolean) {
    value.fail(fmt::format("{} is no format of a systolic array", in_quotes(name)),
               "use one of f32, tf32, f16, bf16, f8, f4, i8");
  }
  return *format;
}

void read_rates(const Value& value, OnChipRates& rates) {
  if (!value.exists()) return;
  value.expect_only({"register", "l2", "global_buffer"});
  constexpr double kMostWords = 1e9;
  read_positive(value["register"], kMostWords, rates.register_words);
  read_positive(value["l2"], kMostWords, rates.l2_words);
  read_positive(value["global_buffer"], kMostWords, rates.global_buffer_words);
}

void read_link(const Value& value, Accelerator& chip) {
  if (!value.exists()) return;
  value.expect_only({"bandwidth", "latency"});
  chip.link_bytes_per_s = value["bandwidth"].as_positive_quantity(Unit::bytes_per_s);
  read_quantity(value["latency"], Unit::seconds, chip.link_latency_s);
}

EnergyFigures read_energy(const Value& value, Dtype operand) {
  EnergyFigures figures;
  const auto published = published_mac_j(operand);
  if (published) figures.mac_j = *published;
  if (value.exists()) {
    value.expect_only({"mac", "vector_operation", "register_byte", "sram_factor", "hbm_byte",
                       "link_byte", "static_per_mm2"});
    read_quantity(value["mac"], Unit::joules, figures.mac_j);
    read_quantity(value["vector_operation"], Unit::joules, figures.vector_operation_j);
    read_quantity(value["register_byte"], Unit::joules, figures.register_byte_j);
    read_positive(value["sram_factor"], 1e6, figures.sram_factor);
    read_quantity(value["hbm_byte"], Unit::joules, figures.hbm_byte_j);
    read_quantity(value["link_byte"], Unit::joules, figures.link_byte_j);
    const Value idle = value["static_per_mm2"];
    if (idle.exists()) figures.static_w_per_um2 = idle.as_quantity(Unit::watts) / kUm2PerMm2;
  }
  if (!published && !(value.exists() && value["mac"].exists())) {
    value.fail(
        fmt::format("no energy of a multiplication of two {} is published", name_of(operand)),
        "give it: energy: {mac: 0.3 pJ}");
  }
  return figures;
}

PriceFigures read_price(const Value& value) {
  PriceFigures figures;
  if (!value.exists()) return figures;
  value.expect_only({"wafer", "wafer_mm", "edge_mm", "scribe_mm", "defects_per_cm2", "clustering",
                     "markup", "hbm_per_gb_per_s", "hbm_per_gib"});
  read_quantity(value["wafer"], Unit::usd, figures.wafer_usd);
  read_positive(value["wafer_mm"], 1e4, figures.wafer_mm);
  read_positive(value["edge_mm"], 1e4, figures.edge_mm);
  read_positive(value["scribe_mm"], 1e4, figures.scribe_mm);
  if (2 * figures.edge_mm >= figures.wafer_mm) value.fail("the edge leaves nothing of the wafer");
  read_positive(value["defects_per_cm2"], 1e6, figures.defects_per_cm2);
  read_positive(value["clustering"], 1e6, figures.clustering);
  read_positive(value["markup"], 1e6, figures.markup);
  read_quantity(value["hbm_per_gb_per_s"], Unit::usd, figures.hbm_usd_per_gb_per_s);
  read_quantity(value["hbm_per_gib"], Unit::usd, figures.hbm_usd_per_gib);
  return figures;
}

/// The member of `value` that a path of keys leads to, as far as there is one.
Value at_path(Value value, std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const Value next = value[path.substr(0, dot)];
    if (!next.exists()) return value;
    value = next;
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return value;
}

/// Exponents of [least, most], each of which must be a power of two from 2^first to 2^last.
PowersOfTwo read_powers(const Value& value, const PowersOfTwo& within) {
  if (value.size() != 2) value.fail("a range has two ends", "write [1, 4096]");
  const auto exponent = [&](const Value& end) {
    const std::int64_t number = end.as_int();
    const auto bits = static_cast<std::uint64_t>(number);
    if (number < std::int64_t{1} << within.least || number > std::int64_t{1} << within.most ||
        !std::has_single_bit(bits)) {
      end.fail(fmt::format("{} is no power of two from {} to {}", number,
                           std::int64_t{1} << within.least, std::int64_t{1} << within.most),
               "architectures are enumerated over powers of two");
    }
    return std::countr_zero(bits);
  };
  const PowersOfTwo powers{exponent(value[0]), exponent(value[1])};
  if (powers.least > powers.most) value.fail("begins above its end", "write [least, most]");
  return powers;
}

/// As read_powers, of sizes from 2 MiB to 128 MiB.
PowersOfTwo read_buffers(const Value& value) {
  if (value.size() != 2) value.fail("a range has two ends", "write [2 MiB, 128 MiB]");
  const auto exponent = [&](const Value& end) {
    const double bytes = end.as_positive_quantity(Unit::bytes);
    for (int mib = 1; mib <= 7; ++mib) {
      if (bytes == static_cast<double>(1 << mib) * 0x1p20) return mib;
    }
    end.fail("is no power of two from 2 MiB to 128 MiB", "the area model has no others");
  };
  const PowersOfTwo powers{exponent(value[0]), exponent(value[1])};
  if (powers.least > powers.most) value.fail("begins above its end", "write [least, most]");
  return powers;
}

/// A table, named from the folder of the file that names it.
StatedLatencies read_latencies(const Value& value) {
  const std::string file =
      (std::filesystem::path(value.where().file).parent_path() / std::string(value.as_string()))
          .string();
  return parse_latencies(read_file(file), file);
}

}  // namespace

AcceleratorDesign read_accelerator(const Value& value) {
  value.expect_only({"tensor_cores", "vector_cores", "global_buffer", "hbm", "clock", "format",
                     "registers", "words_per_cycle", "link", "energy", "cost", "latencies"});
  AcceleratorDesign design;
  Accelerator& chip = design.chip;
  read_cores(value, chip);
  chip.global_buffer_bytes = value["global_buffer"].as_quantity(Unit::bytes);
  const Value hbm = value["hbm"];
  hbm.expect_only({"name", "size", "bandwidth"});
  chip.hbm_bytes = hbm["size"].as_quantity(Unit::bytes);
  chip.hbm_bytes_per_s = hbm["bandwidth"].as_quantity(Unit::bytes_per_s);
  read_quantity(value["clock"], Unit::hertz, chip.clock_hz);
  if (value["format"].exists()) chip.operand = read_format(value["format"]);
  read_quantity(value["registers"], Unit::bytes, chip.register_bytes);
  read_rates(value["words_per_cycle"], chip.rates);
  read_link(value["link"], chip);
  if (const auto fault = accelerator_fault(chip)) {
    at_path(value, fault->key).fail(fault->message, fault->remedy);
  }
  design.energy = read_energy(value["energy"], chip.operand);
  design.price = read_price(value["cost"]);
  if (value["latencies"].exists()) design.latencies = read_latencies(value["latencies"]);
  return design;
}

ArchitectureSpace read_architecture_space(const Value& value) {
  value.expect_only({"of", "area", "least_share", "least_share_of_single", "tensor_cores",
                     "vector_cores", "width", "depth", "global_buffer"});
  ArchitectureSpace space;
  const Value area = value["area"];
  if (area.exists()) {
    space.most_area_um2 = area.as_positive_quantity(Unit::metres2) * kUm2PerM2;
  }
  const auto share = [&](const char* key, double& field) {
    if (value[key].exists()) field = value[key].as_double_in(0, 1);
  };
  share("least_share", space.least_share);
  share("least_share_of_single", space.least_share_of_single);
  const auto powers = [&](const char* key, int most, PowersOfTwo& field) {
    if (value[key].exists()) field = read_powers(value[key], {0, most});
  };
  powers("tensor_cores", 15, space.tensor_cores);
  powers("vector_cores", 15, space.vector_cores);
  powers("width", 12, space.widths);
  powers("depth", 12, space.depths);
  if (value["global_buffer"].exists()) {
    space.global_buffers_mib = read_buffers(value["global_buffer"]);
  }
  if (!is_in_model(space)) {
    value.fail("the area model has no L2 of the largest array",
               "give widths and depths whose product is at most 65536");
  }
  const double least = least_area_um2(space);
  if (least > space.most_area_um2) {
    const double mm2 = space.most_area_um2 / kUm2PerMm2;
    (area.exists() ? area : value)
        .fail(fmt::format("the smallest architecture takes {:.4g} mm2, more than {:.4g} mm2",
                          least / kUm2PerMm2, mm2),
              "give a larger area");
  }
  return space;
}

}  // namespace braid
