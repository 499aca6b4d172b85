#include "braid/profile/profile_json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "braid/base/quantity.h"
#include "braid/graph/graph_json_names.h"

namespace braid {
namespace {

std::string_view recompute_name(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "";
}

Recompute recompute_from(const Value& value) {
  for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (recompute_name(r) == value.as_string()) return r;
  }
  value.fail("unknown kind of recomputation", "use none, selective or full");
}

Json pass_to_json(const PassTime& pass) {
  Json json = Json::object();
  json["compute_s"] = pass.compute_s;
  json["tp_comm_s"] = pass.tp_comm_s;
  json["cp_comm_s"] = pass.cp_comm_s;
  json["ep_comm_s"] = pass.ep_comm_s;
  json["offload_s"] = pass.offload_s;
  return json;
}

PassTime pass_from_json(const Value& value) {
  value.expect_only({"compute_s", "tp_comm_s", "cp_comm_s", "ep_comm_s", "offload_s"});
  return {profile_figure(value["compute_s"], kMostStated),
          profile_figure(value["tp_comm_s"], kMostStated),
          profile_figure(value["cp_comm_s"], kMostStated),
          profile_figure(value["ep_comm_s"], kMostStated),
          profile_figure(value["offload_s"], kMostStated)};
}

Json cost_to_json(const LayerCost& cost) {
  Json json = Json::object();
  json["forward"] = pass_to_json(cost.forward);
  json["recompute"] = pass_to_json(cost.recompute);
  json["backward_input"] = pass_to_json(cost.backward_input);
  json["backward_weight"] = pass_to_json(cost.backward_weight);
  if (cost.hidden_tp_s > 0) json["hidden_tp_s"] = cost.hidden_tp_s;
  json["model_flops"] = cost.model_flops;
  json["dense_parameters"] = cost.dense_parameters;
  json["expert_parameters"] = cost.expert_parameters;
  json["stash_bytes"] = cost.stash_bytes;
  json["offloaded_bytes"] = cost.offloaded_bytes;
  json["working_bytes"] = cost.working_bytes;
  json["output_bytes"] = cost.output_bytes;
  return json;
}

LayerCost cost_from_json(const Value& value) {
  value.expect_only({"forward", "recompute", "backward_input", "backward_weight", "hidden_tp_s",
                     "model_flops", "dense_parameters", "expert_parameters", "stash_bytes",
                     "offloaded_bytes", "working_bytes", "output_bytes"});
  LayerCost cost;
  cost.forward = pass_from_json(value["forward"]);
  cost.recompute = pass_from_json(value["recompute"]);
  cost.backward_input = pass_from_json(value["backward_input"]);
  cost.backward_weight = pass_from_json(value["backward_weight"]);
  if (value["hidden_tp_s"].exists()) {
    cost.hidden_tp_s = profile_figure(value["hidden_tp_s"], kMostStated);
  }
  cost.model_flops = profile_figure(value["model_flops"], 1e30);
  cost.dense_parameters = profile_figure(value["dense_parameters"], kMostStated);
  cost.expert_parameters = profile_figure(value["expert_parameters"], kMostStated);
  cost.stash_bytes = profile_figure(value["stash_bytes"], kMostStated);
  cost.offloaded_bytes = profile_figure(value["offloaded_bytes"], kMostStated);
  cost.working_bytes = profile_figure(value["working_bytes"], kMostStated);
  cost.output_bytes = profile_figure(value["output_bytes"], kMostStated);
  return cost;
}

Json execution_to_json(const Execution& how) {
  Json json = Json::object();
  json["micro_batch"] = how.micro_batch;
  json["tp"] = how.tp;
  json["sequence_parallel"] = how.sequence_parallel;
  json["cp"] = how.cp;
  json["ep"] = how.ep;
  json["recompute"] = recompute_name(how.recompute);
  json["offload_activations"] = how.offload_activations;
  json["offload_weights"] = how.offload_weights;
  if (how.whole_experts) json["whole_experts"] = true;
  return json;
}

Execution execution_from_json(const Value& value) {
  value.expect_only({"micro_batch", "tp", "sequence_parallel", "cp", "ep", "recompute",
                     "offload_activations", "offload_weights", "whole_experts"});
  const auto degree = [&](const char* key) {
    return static_cast<int>(value[key].as_int_in(1, 1 << 24));
  };
  Execution how;
  how.micro_batch = degree("micro_batch");
  how.tp = degree("tp");
  how.sequence_parallel = value["sequence_parallel"].as_bool();
  how.cp = degree("cp");
  how.ep = degree("ep");
  how.recompute = recompute_from(value["recompute"]);
  how.offload_activations = value["offload_activations"].as_bool();
  how.offload_weights = value["offload_weights"].as_bool();
  if (value["whole_experts"].exists()) how.whole_experts = value["whole_experts"].as_bool();
  return how;
}

Json option_to_json(const Option& option) {
  Json json = Json::object();
  json["name"] = option.name;
  json["how"] = execution_to_json(option.how);
  json["cost"] = cost_to_json(option.cost);
  if (option.cost.fixed_bytes >= 0) json["fixed_bytes"] = option.cost.fixed_bytes;
  if (option.cost.gradient_bytes >= 0) json["gradient_bytes"] = option.cost.gradient_bytes;
  if (option.device_group >= 0) json["device_group"] = option.device_group;
  if (!option.edge_syncs.empty()) {
    json["edge_syncs"] = Json::array();
    for (const EdgeSync& sync : option.edge_syncs) {
      json["edge_syncs"].push_back(
          Json::array({sync.edge, sync.forward_bytes, sync.backward_bytes}));
    }
  }
  if (!option.sharded.empty()) {
    json["sharded"] = Json::object();
    for (const ShardedOperator& op : option.sharded) {
      json["sharded"][op.name] = name_in(split_names, op.split);
    }
  }
  return json;
}

/// Files written before say "divided".
Value sharded_in(const Value& value) {
  return value["divided"].exists() ? value["divided"] : value["sharded"];
}

std::vector<ShardedOperator> sharded_from_json(const Value& value) {
  std::vector<ShardedOperator> sharded;
  for (const auto& [name, split] : value.members()) {
    const std::string_view text = split.as_string();
    const auto known = std::find_if(split_names.begin(), split_names.end(),
                                    [&](const auto& each) { return each.second == text; });
    if (known == split_names.end()) split.fail("unknown way to divide an operator");
    sharded.push_back({std::string(name), known->first});
  }
  return sharded;
}

Option option_from_json(const Value& value) {
  value.expect_only({"name", "how", "cost", "fixed_bytes", "gradient_bytes", "edge_syncs",
                     "device_group", "sharded", "divided"});
  Option option;
  option.name = value["name"].as_string();
  option.how = execution_from_json(value["how"]);
  option.cost = cost_from_json(value["cost"]);
  if (value["fixed_bytes"].exists()) {
    option.cost.fixed_bytes = profile_figure(value["fixed_bytes"], kMostStated);
  }
  if (value["gradient_bytes"].exists()) {
    option.cost.gradient_bytes = profile_figure(value["gradient_bytes"], kMostStated);
  }
  if (value["device_group"].exists()) {
    option.device_group = static_cast<std::int32_t>(value["device_group"].as_int_in(0, 1 << 30));
  }
  const Value sharded = sharded_in(value);
  if (sharded.exists()) option.sharded = sharded_from_json(sharded);
  const Value syncs = value["edge_syncs"];
  if (syncs.exists()) {
    for (const Value& sync : syncs.elements()) {
      if (sync.size() != 3) sync.fail("an edge's sync has three numbers");
      option.edge_syncs.push_back({static_cast<std::int32_t>(sync[0].as_int_in(0, 1 << 30)),
                                   profile_figure(sync[1], kMostStated),
                                   profile_figure(sync[2], kMostStated)});
    }
  }
  return option;
}

SharedParameter shared_from_json(const Value& value) {
  value.expect_only({"layers", "elements", "sharded", "divided"});
  SharedParameter parameter;
  for (const Value& layer : value["layers"].elements()) {
    parameter.layers.push_back(static_cast<std::int32_t>(layer.as_int_in(0, 1 << 30)));
  }
  parameter.elements = profile_figure(value["elements"], kMostStated);
  parameter.sharded = sharded_in(value).as_bool();
  return parameter;
}

}  // namespace

Json to_json(const Profile& profile) {
  Json json = Json::object();
  json["braid"] = "profile";
  json["version"] = 1;
  json["model"] = profile.model;
  json["chip"] = profile.chip;
  if (!profile.trainer.empty()) json["trainer"] = profile.trainer;
  json["provenance"] = profile.provenance;
  json["time_unit_s"] = profile.time_unit_s;
  json["seq_len"] = profile.seq_len;
  json["layers"] = Json::array();
  for (const ProfileLayer& layer : profile.layers) {
    json["layers"].push_back(Json::array({layer.name, layer.kind}));
    if (layer.output_bytes >= 0) json["layers"].back().push_back(layer.output_bytes);
  }
  json["edges"] = Json::array();
  for (const ProfileEdge& edge : profile.edges) {
    json["edges"].push_back(Json::array({edge.source, edge.target, edge.bytes}));
  }
  if (!profile.shared.empty()) {
    json["shared"] = Json::array();
    for (const SharedParameter& parameter : profile.shared) {
      Json shared = Json::object();
      shared["layers"] = parameter.layers;
      shared["elements"] = parameter.elements;
      shared["sharded"] = parameter.sharded;
      json["shared"].push_back(std::move(shared));
    }
  }
  json["kinds"] = Json::array();
  for (const auto& options : profile.kinds) {
    Json list = Json::array();
    for (const Option& option : options) list.push_back(option_to_json(option));
    json["kinds"].push_back(std::move(list));
  }
  return json;
}

Profile profile_from_json(const Value& value) {
  if (!value.is_object() || value["braid"].string_or("") != "profile") {
    value.fail("this is not a profile", "give a file that braid profile -o wrote");
  }
  value.expect_only({"braid", "version", "model", "chip", "trainer", "provenance", "time_unit_s",
                     "seq_len", "layers", "edges", "kinds", "shared"});
  if (value["version"].as_int() != 1) value["version"].fail("only version 1 can be read");
  Profile profile;
  profile.model = value["model"].as_string();
  profile.chip = value["chip"].as_string();
  profile.trainer = value["trainer"].string_or("");
  profile.provenance = value["provenance"].as_string();
  profile.time_unit_s = value["time_unit_s"].as_double_in(1e-15, 1e6);
  profile.seq_len = value["seq_len"].as_int_in(0, std::int64_t{1} << 40);
  for (const Value& options : value["kinds"].elements()) {
    profile.kinds.emplace_back();
    for (const Value& option : options.elements()) {
      profile.kinds.back().push_back(option_from_json(option));
    }
  }
  for (const Value& layer : value["layers"].elements()) {
    if (layer.size() != 2 && layer.size() != 3) {
      layer.fail("a layer is [name, kind] or [name, kind, bytes that it puts out]");
    }
    profile.layers.push_back({std::string(layer[0].as_string()),
                              static_cast<std::int32_t>(layer[1].as_int_in(0, 1 << 30))});
    if (layer.size() == 3)
      profile.layers.back().output_bytes = profile_figure(layer[2], kMostStated);
  }
  for (const Value& edge : value["edges"].elements()) {
    if (edge.size() != 3) edge.fail("an edge is [source, target, bytes]");
    profile.edges.push_back({static_cast<std::int32_t>(edge[0].as_int_in(0, 1 << 30)),
                             static_cast<std::int32_t>(edge[1].as_int_in(0, 1 << 30)),
                             profile_figure(edge[2], kMostStated)});
  }
  if (value["shared"].exists()) {
    for (const Value& entry : value["shared"].elements()) {
      profile.shared.push_back(shared_from_json(entry));
    }
  }
  check_profile(profile, value.where().file);
  return profile;
}

Profile read_profile(const std::string& path) {
  return profile_from_json(Document::parse_file(path).root());
}

}  // namespace braid
