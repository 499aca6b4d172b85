#include "braid/backend/place/placement_file.h"

#include <limits>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/json.h"

namespace braid {
namespace {

constexpr std::int64_t file_version = 1;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr double most_s = 1e9;

Json measured_json(const Measurement& m) {
  return {{"median_s", m.median_s},
          {"low_s", m.low_s},
          {"high_s", m.high_s},
          {"variance_s2", m.variance_s2},
          {"samples", m.samples},
          {"outliers", m.outliers},
          {"runs_per_sample", m.runs_per_sample}};
}

Measurement read_measured(const Value& value) {
  value.expect_only(
      {"median_s", "low_s", "high_s", "variance_s2", "samples", "outliers", "runs_per_sample"});
  return {.median_s = value["median_s"].as_double_in(0, most_s),
          .low_s = value["low_s"].as_double_in(0, most_s),
          .high_s = value["high_s"].as_double_in(0, most_s),
          .variance_s2 = value["variance_s2"].as_double_in(0, most_s * most_s),
          .samples = value["samples"].as_int_in(1, most),
          .outliers = value["outliers"].as_int_in(0, most),
          .runs_per_sample = value["runs_per_sample"].as_int_in(1, most)};
}

/// Plain where none is said.
ImageLayout read_layout(const Value& value) {
  if (!value.exists()) return ImageLayout::plain;
  for (const ImageLayout each : all_layouts) {
    if (value.as_string() == name_of(each)) return each;
  }
  value.fail("is no layout", "known: plain, channels last, blocked");
}

void read_turn(const Value& value, PlacementFile& file) {
  value.expect_only({"value", "from", "to", "cost_s"});
  file.placement.turns.push_back(
      {static_cast<ValueId>(value["value"].as_int_in(0, std::numeric_limits<ValueId>::max() - 1)),
       read_layout(value["from"]), read_layout(value["to"]),
       value["cost_s"].as_double_in(0, most_s)});
}

void read_group(const Value& value, PlacementFile& file) {
  value.expect_only({"backend", "pattern", "nodes", "operators", "cost_s", "reads", "writes"});
  PlacedGroup group{std::string(value["backend"].as_string()),
                    std::string(value["pattern"].as_string()),
                    {},
                    value["cost_s"].as_double_in(0, most_s)};
  NodeId before = -1;
  for (const Value& each : value["nodes"].elements()) {
    const auto node =
        static_cast<NodeId>(each.as_int_in(before + 1, std::numeric_limits<NodeId>::max() - 1));
    group.nodes.push_back(node);
    before = node;
  }
  group.layouts = {read_layout(value["reads"]), read_layout(value["writes"])};
  if (group.nodes.empty()) value["nodes"].fail("a group has at least one node");
  std::vector<std::string> names;
  for (const Value& each : value["operators"].elements()) {
    names.emplace_back(each.as_string());
  }
  if (names.size() != group.nodes.size()) {
    value["operators"].fail("has other operators than nodes");
  }
  file.placement.groups.push_back(std::move(group));
  file.operators.push_back(std::move(names));
}

}  // namespace

std::string placement_text(const PlacementFile& file) {
  Json json = Json::object();
  json["braid_placement"] = file_version;
  json["model"] = file.model;
  if (!file.dims.empty()) json["dims"] = file.dims;
  if (file.seq_len > 0) json["seq_len"] = file.seq_len;
  if (file.layers > 0) json["layers"] = file.layers;
  json["seed"] = file.seed;
  json["threads"] = file.threads;
  json["machine"] = file.machine;
  json["backends"] = file.versions;
  json["predicted_s"] = file.placement.predicted_s;
  if (file.measured) json["measured"] = measured_json(*file.measured);
  json["groups"] = Json::array();
  for (std::size_t g = 0; g < file.placement.groups.size(); ++g) {
    const PlacedGroup& group = file.placement.groups[g];
    json["groups"].push_back({{"backend", group.backend},
                              {"pattern", group.pattern},
                              {"nodes", group.nodes},
                              {"operators", file.operators[g]},
                              {"cost_s", group.cost_s}});
    if (group.layouts == KernelLayouts{}) continue;
    json["groups"].back()["reads"] = name_of(group.layouts.reads);
    json["groups"].back()["writes"] = name_of(group.layouts.writes);
  }
  json["turns"] = Json::array();
  for (const PlacedTurn& turn : file.placement.turns) {
    json["turns"].push_back({{"value", turn.value},
                             {"from", name_of(turn.from)},
                             {"to", name_of(turn.to)},
                             {"cost_s", turn.cost_s}});
  }
  return to_text(json);
}

PlacementFile read_placement_file(const std::string& path) {
  return placement_from_json(Document::parse_file(path).root());
}

PlacementFile placement_from_json(const Value& root) {
  if (!root.is_object() || !root["braid_placement"].exists()) {
    root.fail("is no placement", "braid place MODEL -o FILE writes one");
  }
  if (root["braid_placement"].as_int() != file_version) {
    root["braid_placement"].fail("is a version that this braid does not read", "place again");
  }
  root.expect_only({"braid_placement", "model", "dims", "seq_len", "layers", "seed", "threads",
                    "machine", "backends", "predicted_s", "measured", "groups", "turns"});
  PlacementFile file;
  file.model = root["model"].as_string();
  if (root["dims"].exists()) {
    for (const auto& [name, size] : root["dims"].members()) {
      file.dims.emplace(name, size.as_int_in(1, most));
    }
  }
  file.seq_len = root["seq_len"].exists() ? root["seq_len"].as_int_in(1, most) : 0;
  file.layers = root["layers"].exists() ? root["layers"].as_int_in(1, most) : 0;
  file.seed = static_cast<std::uint64_t>(root["seed"].as_int_in(0, most));
  file.threads = root["threads"].as_int_in(1, 4096);
  file.machine = root["machine"].as_string();
  for (const auto& [name, version] : root["backends"].members()) {
    file.versions.emplace(name, version.as_string());
  }
  file.placement.predicted_s = root["predicted_s"].as_double_in(0, most_s);
  if (root["measured"].exists()) file.measured = read_measured(root["measured"]);
  for (const Value& each : root["groups"].elements()) read_group(each, file);
  for (const Value& each : root["turns"].elements()) read_turn(each, file);
  return file;
}

}  // namespace braid
