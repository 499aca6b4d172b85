#include "braid/serve/launch/manifests.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "braid/base/yaml_text.h"
#include "braid/serve/launch/engine_arguments.h"

namespace braid {
namespace {

/// A name that Kubernetes takes: lower-case letters, digits and dashes.
std::string resource_name(const std::string& model, const char* ending) {
  constexpr std::size_t kMost = 40;
  std::string name;
  for (const char c : model.substr(model.rfind('/') + 1)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool taken = byte < 128 && std::isalnum(byte) != 0;
    if (taken) name += static_cast<char>(std::tolower(byte));
    if (!taken && !name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min(name.size(), kMost));
  while (name.ends_with('-')) name.pop_back();
  return (name.empty() ? "model" : name) + ending;
}

const EngineManifest& manifest_of(const WorkerPods& pods) {
  return *command_of_engine(pods.of.engine->name).manifest;
}

std::string dynamo_image(const EngineManifest& engine) {
  return fmt::format("nvcr.io/nvidia/ai-dynamo/{}-runtime:1.3.1", engine.dynamo_image);
}

Json dynamo_worker(const WorkerPods& pods, const LaunchNames& names) {
  const EngineManifest& engine = manifest_of(pods);
  Json component = {{"name", pods.name()}};
  component["type"] = pods.name();
  component["replicas"] = pods.of.workers;
  if (pods.nodes > 1) component["multinode"] = {{"nodeCount", pods.nodes}};
  const Json secret = {{"secretRef", {{"name", "hf-token-secret"}}}};
  Json container = {{"name", "main"}, {"image", dynamo_image(engine)}};
  container["command"] = {"python3", "-m", engine.dynamo_module};
  container["args"] = engine.dynamo_arguments(pods, names);
  container["envFrom"] = Json::array({secret});
  container["resources"] = {{"limits", {{"nvidia.com/gpu", std::to_string(pods.devices)}}}};
  component["podTemplate"] = {{"spec", {{"containers", Json::array({container})}}}};
  return component;
}

Json environment(const EngineManifest& engine) {
  Json variables = Json::array(
      {{{"name", "HF_TOKEN"},
        {"valueFrom", {{"secretKeyRef", {{"name", "llm-d-hf-token"}, {"key", "HF_TOKEN"}}}}}}});
  if (!engine.address_variable.empty()) {
    variables.push_back({{"name", engine.address_variable},
                         {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
  }
  return variables;
}

Json model_server(const WorkerPods& pods, const LaunchNames& names) {
  const EngineManifest& engine = manifest_of(pods);
  const int port = pods.role == WorkerRole::decoding ? 8200 : 8000;
  std::vector<std::string> more = {"--port", std::to_string(port)};
  more.insert(more.end(), engine.more_arguments.begin(), engine.more_arguments.end());
  Json container = {{"name", "modelserver"}, {"image", "REPLACE_MODEL_SERVER_IMAGE"}};
  if (pods.nodes > 1) {
    container["command"] = {"/bin/bash", "-c"};
    container["args"] =
        Json::array({fmt::format("exec {} {}{}", launch_line(pods.of, names, pods.role),
                                 fmt::join(more, " "), engine.lines_of_nodes(pods))});
  } else {
    std::vector<std::string> words = launch_arguments(pods, names, engine.program);
    words.insert(words.end(), more.begin(), more.end());
    container["command"] = engine.program;
    container["args"] = words;
  }
  container["env"] = environment(engine);
  container["ports"] = Json::array({{{"name", "modelserver"}, {"containerPort", port}},
                                    {{"name", "nixl"}, {"containerPort", 5600}}});
  const std::string devices = std::to_string(pods.devices);
  container["resources"] = {{"limits", {{"nvidia.com/gpu", devices}}},
                            {"requests", {{"nvidia.com/gpu", devices}}}};
  container["volumeMounts"] = Json::array({{{"name", "shm"}, {"mountPath", "/dev/shm"}}});
  return container;
}

/// Sends a request to a prefill worker first, then to the decode one beside it.
Json routing_sidecar(const EngineManifest& engine) {
  Json sidecar = {{"name", "routing-proxy"}, {"image", "REPLACE_ROUTING_SIDECAR_IMAGE"}};
  sidecar["args"] = {"--port=8000"};
  for (const std::string_view word : engine.sidecar_arguments) sidecar["args"].push_back(word);
  sidecar["ports"] = Json::array({{{"name", "sidecar"}, {"containerPort", 8000}}});
  sidecar["restartPolicy"] = "Always";
  sidecar["securityContext"] = {{"allowPrivilegeEscalation", false}, {"runAsNonRoot", true}};
  return sidecar;
}

Json leader_worker_set(const WorkerPods& pods, const LaunchNames& names) {
  const std::string model = resource_name(names.model, "");
  const Json labels = {{"llm-d.ai/inference-serving", "true"},
                       {"llm-d.ai/model", model},
                       {"llm-d.ai/role", pods.name()}};
  Json spec = Json::object();
  if (pods.role == WorkerRole::decoding) {
    spec["initContainers"] = Json::array({routing_sidecar(manifest_of(pods))});
  }
  spec["containers"] = Json::array({model_server(pods, names)});
  spec["volumes"] = Json::array({{{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}});
  return {{"apiVersion", "leaderworkerset.x-k8s.io/v1"},
          {"kind", "LeaderWorkerSet"},
          {"metadata", {{"name", model + "-" + pods.name()}, {"labels", labels}}},
          {"spec",
           {{"replicas", pods.of.workers},
            {"leaderWorkerTemplate",
             {{"size", pods.nodes},
              {"workerTemplate", {{"metadata", {{"labels", labels}}}, {"spec", spec}}}}}}}};
}

/// Whether llm-d can run the workers.
bool can_be_deployed(const WorkerPods& pods) {
  const EngineManifest& engine = manifest_of(pods);
  return !engine.program.empty() && (engine.groups_across_pods || pods.groups_fit_pods());
}

}  // namespace

std::string dynamo_manifest(const ServingPlan& plan, const LaunchNames& names,
                            std::int64_t devices_per_node) {
  const WorkerPods prefill(plan.prefill, WorkerRole::prompts, devices_per_node);
  const WorkerPods decode(plan.decode, WorkerRole::decoding, devices_per_node);
  const Json container = {{"name", "main"}, {"image", dynamo_image(manifest_of(decode))}};
  const Json frontend = {{"name", "Frontend"},
                         {"type", "frontend"},
                         {"replicas", 1},
                         {"podTemplate", {{"spec", {{"containers", Json::array({container})}}}}}};
  const Json manifest = {{"apiVersion", "nvidia.com/v1beta1"},
                         {"kind", "DynamoGraphDeployment"},
                         {"metadata", {{"name", resource_name(names.model, "-disagg")}}},
                         {"spec",
                          {{"components", Json::array({frontend, dynamo_worker(prefill, names),
                                                       dynamo_worker(decode, names)})}}}};
  return yaml_text(manifest);
}

std::string llm_d_manifest(const ServingPlan& plan, const LaunchNames& names,
                           std::int64_t devices_per_node) {
  const WorkerPods prefill(plan.prefill, WorkerRole::prompts, devices_per_node);
  const WorkerPods decode(plan.decode, WorkerRole::decoding, devices_per_node);
  if (!can_be_deployed(prefill) || !can_be_deployed(decode)) return "";
  return yaml_text(leader_worker_set(prefill, names)) + "---\n" +
         yaml_text(leader_worker_set(decode, names));
}

}  // namespace braid
