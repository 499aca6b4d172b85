#include "braid/system/calibration.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/yaml_text.h"

namespace braid {
namespace {

/// A figure of the file, a plain number or a time.
struct Field {
  const char* key;
  double Achieved::*field;
  double least, most;
  bool is_time;
  const char* meaning;
};
constexpr std::array kFields = {
    Field{"matmul", &Achieved::matmul, 1e-6, 1, false, "of the peak, large GEMMs"},
    Field{"narrow_matmul", &Achieved::narrow_matmul, 1e-6, 1, false,
          "of the peak, large GEMMs in 8 bits and less"},
    Field{"attention", &Achieved::attention, 1e-6, 1, false, "of the peak, fused attention"},
    Field{"memory", &Achieved::memory, 1e-6, 1, false, "of the bandwidth, large transfers"},
    Field{"kernel_launch", &Achieved::kernel_launch_s, 0, 1, true, "device time lost per kernel"},
    Field{"host_operator", &Achieved::host_operator_s, 0, 1, true,
          "host time to issue an operator"},
    Field{"overlap_loss", &Achieved::overlap_loss, 0, 1, false,
          "of a hidden collective's time, lost to kernels"},
    Field{"intra_node", &Achieved::intra_node, 1e-6, 1, false,
          "of the bandwidth inside a node, large messages"},
    Field{"inter_node", &Achieved::inter_node, 1e-6, 1, false,
          "of the bandwidth between nodes, large messages"}};

double read_figure(const Value& value, const Field& field) {
  if (!value.exists()) return 0;
  if (!field.is_time) return value.as_double_in(field.least, field.most);
  const double time_s = value.as_quantity(Unit::seconds);
  if (time_s > field.most) value.fail("is more than a second", "give a time such as 15 us");
  return time_s;
}

void replace_source(std::vector<Provenance>& provenance, const std::string& source) {
  std::erase_if(provenance, [](const Provenance& entry) { return entry.key == "efficiency"; });
  provenance.push_back({"efficiency", source, false});
}

void set_if_said(double figure, double& target) {
  if (figure > 0) target = figure;
}

void apply_to_group(const Achieved& achieved, DeviceGroup& group) {
  Efficiency& e = group.chip.efficiency;
  set_if_said(achieved.matmul, e.matmul_peak_fraction);
  set_if_said(achieved.narrow_matmul, e.narrow_matmul_peak_fraction);
  set_if_said(achieved.attention, e.attention_peak_fraction);
  set_if_said(achieved.memory, e.memory_peak_fraction);
  set_if_said(achieved.kernel_launch_s, e.kernel_launch_s);
  set_if_said(achieved.host_operator_s, e.host_operator_s);
  set_if_said(achieved.overlap_loss, e.overlap_loss);
  set_if_said(achieved.intra_node, group.intra_node.efficiency);
}

}  // namespace

Achieved achieved_of(const System& system) {
  const DeviceGroup& group = system.groups.front();
  const Efficiency& e = group.chip.efficiency;
  return {e.matmul_peak_fraction,
          e.attention_peak_fraction,
          e.memory_peak_fraction,
          e.kernel_launch_s,
          e.host_operator_s,
          e.overlap_loss,
          group.intra_node.efficiency,
          system.levels.empty() ? 0 : system.levels.front().efficiency,
          e.narrow_matmul_peak_fraction};
}

void apply(const Achieved& achieved, System& system) {
  apply_to_group(achieved, system.groups.front());
  if (!system.levels.empty()) set_if_said(achieved.inter_node, system.levels.front().efficiency);
}

Calibration read_calibration(const std::string& path) {
  const Document document = Document::parse_file(path);
  Calibration calibration = calibration_from(document.root());
  calibration.file = path;
  return calibration;
}

Calibration calibration_from(const Value& root) {
  root.expect_only({"calibration"});
  Calibration calibration;
  std::set<std::string> seen;
  for (const Value& entry : root["calibration"].elements()) {
    entry.expect_only({"chip", "runs", "matmul", "narrow_matmul", "attention", "memory",
                       "kernel_launch", "host_operator", "overlap_loss", "intra_node",
                       "inter_node"});
    CalibratedChip chip;
    chip.chip = entry["chip"].as_string();
    if (!seen.insert(chip.chip).second) entry["chip"].fail("this chip stands twice");
    if (entry["runs"].exists()) {
      chip.runs = static_cast<std::size_t>(entry["runs"].as_int_in(0, 1000000000));
    }
    for (const Field& field : kFields) {
      chip.achieved.*field.field = read_figure(entry[field.key], field);
    }
    calibration.chips.push_back(std::move(chip));
  }
  if (calibration.chips.empty()) {
    root["calibration"].fail("no chip is calibrated", "write it with braid calibrate --out");
  }
  return calibration;
}

std::string calibration_text(const std::vector<CalibratedChip>& chips) {
  std::string text = "calibration:\n";
  for (const CalibratedChip& chip : chips) {
    text += fmt::format("  - chip: {}\n    runs: {}\n", yaml_word(chip.chip), chip.runs);
    for (const Field& field : kFields) {
      const double figure = chip.achieved.*field.field;
      if (figure <= 0) continue;
      const std::string value =
          field.is_time ? fmt::format("{:.5g} us", 1e6 * figure) : fmt::format("{:.5g}", figure);
      text +=
          fmt::format("    {:<26}# {}\n", fmt::format("{}: {}", field.key, value), field.meaning);
    }
  }
  return text;
}

bool apply_calibration(const Calibration& calibration, System& system) {
  double inter_node = 0;
  std::string source;
  for (DeviceGroup& group : system.groups) {
    const auto found =
        std::find_if(calibration.chips.begin(), calibration.chips.end(),
                     [&](const CalibratedChip& chip) { return chip.chip == group.chip.name; });
    if (found == calibration.chips.end()) continue;
    apply_to_group(found->achieved, group);
    source = fmt::format("fitted to {} measured runs, {}", found->runs, calibration.file);
    replace_source(group.chip.provenance, source);
    const double figure = found->achieved.inter_node;
    if (figure > 0) inter_node = inter_node > 0 ? std::min(inter_node, figure) : figure;
  }
  if (source.empty()) return false;
  if (!system.levels.empty() && inter_node > 0) {
    system.levels.front().efficiency = inter_node;
  }
  replace_source(system.provenance, source);
  return true;
}

}  // namespace braid
