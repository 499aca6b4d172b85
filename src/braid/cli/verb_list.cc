#include <memory>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "braid/base/json.h"
#include "braid/cli/verbs.h"
#include "braid/frontend/model.h"
#include "braid/planners/planner.h"
#include "braid/report/table.h"
#include "braid/system/system.h"

namespace braid {
namespace {

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
      const System system = load_system(name);
      const DeviceGroup& group = system.groups.front();
      entries.emplace_back(name,
                           fmt::format("{} x {} a node", group.devices_per_node, group.chip.name));
    }
  } else {
    for (const PlannerEntry& entry : planners()) {
      entries.emplace_back(std::string(entry.name), std::string(entry.description));
    }
  }
  if (options.json) {
    Json json = Json::object();
    json[options.what] = Json::array();
    for (const auto& [name, description] : entries) {
      json[options.what].push_back({{"name", name}, {"description", description}});
    }
    fmt::print("{}", to_text(json));
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
  CLI::App* verb = app.add_subcommand("list", "What braid knows by name");
  verb->footer("Example:\n  braid list clusters");
  verb->add_option("WHAT", options->what, "models, chips, clusters or planners")
      ->required()
      ->check(CLI::IsMember({"models", "chips", "clusters", "planners"}));
  verb->add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run_list(*options); };
}

}  // namespace braid
