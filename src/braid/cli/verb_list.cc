#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/frontend/model.h"
#include "braid/plan/trainer_file.h"
#include "braid/planners/registry.h"
#include "braid/report/table.h"
#include "braid/system/system.h"

namespace braid {
namespace {

/// Name, 16-bit peak, main memory, power and description of chips.
std::string chip_table(const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows = {
      {"name", "16-bit TFLOP/s", "memory, GiB", "bandwidth, GB/s", "power, W", "description"}};
  for (const std::string& name : names) {
    const Chip chip = load_chip(name);
    const auto bf16 = matmul_peak(chip, Dtype::bf16);
    const double peak = bf16 ? *bf16 : matmul_peak(chip, Dtype::f16).value_or(0);
    rows.push_back({name, fmt::format("{:.4g}", peak / 1e12),
                    fmt::format("{:.1f}", chip.memory.bytes / kGiB),
                    fmt::format("{:.0f}", chip.memory.bytes_per_s / 1e9),
                    chip.power_w ? fmt::format("{:.0f}", *chip.power_w) : "-", chip.description});
  }
  return text_table(rows);
}

struct ListOptions {
  std::string what;
  bool json = false;
};

int run_list(const ListOptions& options) {
  std::vector<std::pair<std::string, std::string>> entries;
  if (options.what == "models") {
    for (const ZooEntry& entry : zoo_models()) entries.emplace_back(entry.name, entry.description);
  } else if (options.what == "chips") {
    for (const std::string& name : chip_names()) {
      entries.emplace_back(name, load_chip(name).description);
    }
  } else if (options.what == "clusters") {
    for (const std::string& name : cluster_names()) {
      entries.emplace_back(name, load_system(name).description);
    }
  } else if (options.what == "trainers") {
    for (const TrainerFile& trainer : trainer_catalogue()) {
      entries.emplace_back(trainer.name, trainer.title);
    }
  } else {
    for (const PlannerEntry& entry : planners()) {
      entries.emplace_back(std::string(entry.name), std::string(entry.description));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return is_before_naturally(a.first, b.first); });
  if (options.json) {
    Json json = Json::object();
    json[options.what] = Json::array();
    for (const auto& [name, description] : entries) {
      json[options.what].push_back({{"name", name}, {"description", description}});
    }
    fmt::print("{}", to_text(json));
    return kFound;
  }
  if (options.what == "chips") {
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (const auto& [name, description] : entries) names.push_back(name);
    fmt::print("{}", chip_table(names));
    return kFound;
  }
  std::vector<std::vector<std::string>> rows = {{"name", "description"}};
  for (const auto& [name, description] : entries) rows.push_back({name, description});
  fmt::print("{}", text_table(rows));
  return kFound;
}

}  // namespace

Run add_list(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  Verb verb(app, "list", "What braid knows by name");
  verb.footer("Example:\n  braid list clusters");
  verb.add_option("WHAT", options->what, "models, chips, clusters, planners or trainers")
      .required()
      .one_of({"models", "chips", "clusters", "planners", "trainers"});
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run_list(*options); };
}

}  // namespace braid
