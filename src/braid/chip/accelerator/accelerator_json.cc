#include "braid/chip/accelerator/accelerator_json.h"

#include <string>
#include <utility>
#include <vector>

#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/chip/accelerator/accelerator_fault.h"

namespace braid {
namespace {

/// A figure under its key.
template <typename Figures>
using Field = std::pair<const char*, double Figures::*>;

constexpr Field<EnergyFigures> kEnergyFields[] = {
    {"mac_j", &EnergyFigures::mac_j},
    {"vector_operation_j", &EnergyFigures::vector_operation_j},
    {"register_byte_j", &EnergyFigures::register_byte_j},
    {"sram_factor", &EnergyFigures::sram_factor},
    {"hbm_byte_j", &EnergyFigures::hbm_byte_j},
    {"link_byte_j", &EnergyFigures::link_byte_j},
    {"static_w_per_um2", &EnergyFigures::static_w_per_um2}};

constexpr Field<PriceFigures> kPriceFields[] = {
    {"wafer_usd", &PriceFigures::wafer_usd},
    {"wafer_mm", &PriceFigures::wafer_mm},
    {"edge_mm", &PriceFigures::edge_mm},
    {"scribe_mm", &PriceFigures::scribe_mm},
    {"defects_per_cm2", &PriceFigures::defects_per_cm2},
    {"clustering", &PriceFigures::clustering},
    {"markup", &PriceFigures::markup},
    {"hbm_usd_per_gb_per_s", &PriceFigures::hbm_usd_per_gb_per_s},
    {"hbm_usd_per_gib", &PriceFigures::hbm_usd_per_gib}};

constexpr Field<OnChipRates> kRateFields[] = {{"register", &OnChipRates::register_words},
                                              {"l2", &OnChipRates::l2_words},
                                              {"global_buffer", &OnChipRates::global_buffer_words}};

constexpr Field<Accelerator> kChipFields[] = {
    {"global_buffer_bytes", &Accelerator::global_buffer_bytes},
    {"hbm_bytes", &Accelerator::hbm_bytes},
    {"hbm_bytes_per_s", &Accelerator::hbm_bytes_per_s},
    {"clock_hz", &Accelerator::clock_hz},
    {"register_bytes", &Accelerator::register_bytes},
    {"link_bytes_per_s", &Accelerator::link_bytes_per_s},
    {"link_latency_s", &Accelerator::link_latency_s}};

/// Above every figure that the YAML form takes.
constexpr double kMostFigure = 1e21;

template <typename Figures, std::size_t kCount>
Json fields_to_json(const Figures& figures, const Field<Figures> (&fields)[kCount]) {
  Json json = Json::object();
  for (const auto& [key, field] : fields) json[key] = figures.*field;
  return json;
}

/// Sets the fields; all must be there. `value` may have other members.
template <typename Figures, std::size_t kCount>
void read_fields(const Value& value, const Field<Figures> (&fields)[kCount], Figures& figures) {
  for (const auto& [key, field] : fields) {
    figures.*field = value[key].as_double_in(0, kMostFigure);
  }
}

/// As read_fields of an object without others.
template <typename Figures, std::size_t kCount>
Figures figures_from_json(const Value& value, const Field<Figures> (&fields)[kCount]) {
  std::vector<std::string_view> keys;
  for (const auto& [key, field] : fields) keys.emplace_back(key);
  value.expect_only(keys);
  Figures figures;
  read_fields(value, fields, figures);
  return figures;
}

/// As latencies_from_json() reads them.
Json latencies_to_json(const StatedLatencies& latencies) {
  Json json = Json::array();
  for (const StatedLatency& latency : latencies) {
    Json row = latency.shape;
    for (const std::optional<double>& cycles : {latency.one_core, latency.all_cores}) {
      row.push_back(cycles ? Json(*cycles) : Json(nullptr));
    }
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace

Json to_json(const AcceleratorDesign& design) {
  const Accelerator& chip = design.chip;
  Json json = Json::object();
  json["tensor_cores"] = {{"count", chip.tensor.count},
                          {"width", chip.tensor.width},
                          {"depth", chip.tensor.depth},
                          {"l2_bytes", chip.tensor.l2_bytes}};
  json["vector_cores"] = {{"count", chip.vector.count},
                          {"lanes", chip.vector.lanes},
                          {"l2_bytes", chip.vector.l2_bytes}};
  json["format"] = name_of(chip.operand);
  json.update(fields_to_json(chip, kChipFields));
  json["words_per_cycle"] = fields_to_json(chip.rates, kRateFields);
  json["energy"] = fields_to_json(design.energy, kEnergyFields);
  json["cost"] = fields_to_json(design.price, kPriceFields);
  if (!design.latencies.empty()) json["latencies"] = latencies_to_json(design.latencies);
  return json;
}

AcceleratorDesign design_from_json(const Value& value) {
  std::vector<std::string_view> keys = {
      "tensor_cores", "vector_cores", "format", "words_per_cycle", "energy", "cost", "latencies"};
  for (const auto& [key, field] : kChipFields) keys.emplace_back(key);
  value.expect_only(keys);
  AcceleratorDesign design;
  Accelerator& chip = design.chip;
  const Value tensor = value["tensor_cores"];
  tensor.expect_only({"count", "width", "depth", "l2_bytes"});
  chip.tensor = {tensor["count"].as_int(), tensor["width"].as_int(), tensor["depth"].as_int(),
                 tensor["l2_bytes"].as_double()};
  const Value vector = value["vector_cores"];
  vector.expect_only({"count", "lanes", "l2_bytes"});
  chip.vector = {vector["count"].as_int(), vector["lanes"].as_int(),
                 vector["l2_bytes"].as_double()};
  const auto format = parse_dtype(value["format"].as_string());
  if (!format) value["format"].fail("unknown number format");
  chip.operand = *format;
  read_fields(value, kChipFields, chip);
  chip.rates = figures_from_json(value["words_per_cycle"], kRateFields);
  design.energy = figures_from_json(value["energy"], kEnergyFields);
  design.price = figures_from_json(value["cost"], kPriceFields);
  if (value["latencies"].exists()) design.latencies = latencies_from_json(value["latencies"]);
  if (2 * design.price.edge_mm >= design.price.wafer_mm || design.price.clustering <= 0) {
    value["cost"].fail("no wafer has such figures");
  }
  if (const auto fault = accelerator_fault(chip)) value.fail(fault->message, fault->remedy);
  return design;
}

}  // namespace braid
