#include <algorithm>
#include <memory>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/cli/verbs.h"
#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"
#include "braid/planners/planner.h"
#include "braid/report/table.h"
#include "braid/system/system_json.h"

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

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int show_model(const std::string& name, bool json) {
  const Graph graph = load_model(name, {});
  double flops = 0;
  for (const Operator& op : graph.operators) {
    flops += forward_model_flops(graph, op) + backward_model_flops(graph, op);
  }
  const auto parameters = static_cast<double>(parameter_count(graph));
  if (json) {
    Json out = Json::object();
    out["model"] = graph.name;
    out["parameters"] = parameter_count(graph);
    out["layers"] = graph.layers.size();
    out["distinct_layers"] = layer_kind_count(graph);
    out["operators"] = graph.operators.size();
    out["seq_len"] = graph.seq_len;
    out["training_flops_per_sample"] = flops / static_cast<double>(graph.samples);
    fmt::print("{}", to_text(out));
    return kFound;
  }
  fmt::print(
      "{}\n  parameters        {} ({})\n  layers            {} ({} distinct)\n"
      "  operators         {}\n  sequence          {} tokens\n"
      "  training FLOPs    {:.4g} a sample",
      graph.name, parameter_count(graph), format_count(parameters), graph.layers.size(),
      layer_kind_count(graph), graph.operators.size(), graph.seq_len,
      flops / static_cast<double>(graph.samples));
  if (graph.seq_len > 0) {
    fmt::print(", {:.4g} a token", flops / static_cast<double>(graph.samples * graph.seq_len));
  }
  fmt::print("\n");
  return kFound;
}

int run_show(const std::string& name, bool json) {
  if (contains(chip_names(), name)) {
    fmt::print("{}", to_text(to_json(load_chip(name))));
    return kFound;
  }
  const std::string cluster = name.substr(0, name.rfind(':'));
  if (contains(cluster_names(), cluster)) {
    fmt::print("{}", to_text(to_json(load_system(name))));
    return kFound;
  }
  return show_model(name, json);
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

Run add_show(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* verb =
      app.add_subcommand("show", "All figures of a model, chip or cluster, with their sources");
  verb->footer("Example:\n  braid show h100-sxm");
  verb->add_option("NAME", options->what, "A name from braid list, or a model's file")->required();
  verb->add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run_show(options->what, options->json); };
}

}  // namespace braid
