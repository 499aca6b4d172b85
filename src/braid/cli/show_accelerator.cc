#include "braid/cli/show_accelerator.h"

#include <cmath>

#include <fmt/format.h>

#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/chip/accelerator/area.h"
#include "braid/chip/accelerator/energy.h"
#include "braid/chip/accelerator/price.h"
#include "braid/cli/verbs.h"
#include "braid/report/table.h"

namespace braid {
namespace {

constexpr double kUm2PerMm2 = 1e6;

void row(const char* name, const std::string& value) { fmt::print("  {:<22} {}\n", name, value); }

void print_cores(const Accelerator& chip) {
  row("tensor cores", fmt::format("{} of {} x {} units ({}) at {:g} GHz, L2 {}", chip.tensor.count,
                                  chip.tensor.width, chip.tensor.depth, name_of(chip.operand),
                                  chip.clock_hz / 1e9, format_bytes(chip.tensor.l2_bytes)));
  row("vector cores", fmt::format("{} of {} lanes, L2 {}", chip.vector.count, chip.vector.lanes,
                                  format_bytes(chip.vector.l2_bytes)));
  row("words per cycle",
      fmt::format("{:g} of a unit's registers, {:g} of an L2, {:g} of the global buffer",
                  chip.rates.register_words, chip.rates.l2_words, chip.rates.global_buffer_words));
  if (chip.link_bytes_per_s > 0) {
    row("link", fmt::format("{}, latency {}", format_bytes_per_s(chip.link_bytes_per_s),
                            format_seconds(chip.link_latency_s)));
  }
}

void print_area(const DieArea& area) {
  row("area", fmt::format("{:.2f} mm2 at 22 nm, {:.3f} of Phaze's limit",
                          area.total_um2() / kUm2PerMm2, area.total_um2() / kTpuV4AreaUm2));
  row("", fmt::format("tensor cores {:.2f}, vector cores {:.2f}, global buffer {:.2f}",
                      area.tensor_um2 / kUm2PerMm2, area.vector_um2 / kUm2PerMm2,
                      area.global_buffer_um2 / kUm2PerMm2));
}

void print_power(const ChipEnergy& second) {
  row("busiest second",
      fmt::format(
          "{:.1f} W: arithmetic {:.1f}, on chip {:.1f}, HBM {:.1f}, link {:.1f}, idle {:.1f}",
          second.total_j(), second.arithmetic_j, second.on_chip_j, second.hbm_j, second.link_j,
          second.static_j));
}

void print_price(const AcceleratorDesign& design) {
  const double area_um2 = die_area(design.chip).total_um2();
  const ChipPrice price = chip_price(design.chip, design.price);
  if (!std::isfinite(price.die_usd)) {
    row("die", "larger than a wafer");
    return;
  }
  row("die", fmt::format("{:.0f} of a wafer, {:.1f} % good, {:.2f} USD each",
                         std::floor(dies_per_wafer(area_um2, design.price)),
                         100 * die_yield(area_um2, design.price), price.die_usd));
  row("", fmt::format("{:.0f} USD with package, design and margin, HBM {:.0f} USD", price.chip_usd,
                      price.hbm_usd));
}

Json to_json(const std::vector<Architecture>& all) {
  Json list = Json::array();
  for (const Architecture& one : all) {
    list.push_back({{"tensor_cores", one.tensor_cores},
                    {"vector_cores", one.vector_cores},
                    {"width", one.width},
                    {"depth", one.depth},
                    {"global_buffer_mib", one.global_buffer_mib},
                    {"area_um2", one.area_um2}});
  }
  return list;
}

std::vector<std::string> cells(std::size_t at, const Architecture& one) {
  return {std::to_string(at),
          std::to_string(one.tensor_cores),
          std::to_string(one.vector_cores),
          fmt::format("{} x {}", one.width, one.depth),
          fmt::format("{} MiB", one.global_buffer_mib),
          fmt::format("{:.2f} mm2", one.area_um2 / kUm2PerMm2)};
}

}  // namespace

void print_accelerator(const AcceleratorDesign& design) {
  print_cores(design.chip);
  print_area(die_area(design.chip));
  print_power(chip_energy(design.chip, design.energy, busiest_second(design.chip)));
  print_price(design);
}

int show_architectures(const ArchitectureSpace& space, bool json) {
  const std::vector<Architecture> all = architectures(space);
  if (json) {
    Json out = Json::object();
    out["most_area_um2"] = space.most_area_um2;
    out["architectures"] = to_json(all);
    fmt::print("{}", to_text(out));
    return all.empty() ? kInfeasible : kFound;
  }
  fmt::print("{} architectures of at most {:.2f} mm2\n", all.size(),
             space.most_area_um2 / kUm2PerMm2);
  if (all.empty()) return kInfeasible;
  constexpr std::size_t kEnds = 3;
  std::vector<std::vector<std::string>> rows = {
      {"", "tensor cores", "vector cores", "width x depth", "global buffer", "area"}};
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (at < kEnds || at + kEnds >= all.size()) rows.push_back(cells(at, all[at]));
    if (at == kEnds && at + kEnds < all.size()) rows.push_back({"…", "", "", "", "", ""});
  }
  fmt::print("\n{}", text_table(rows));
  return kFound;
}

}  // namespace braid
