#include "braid/serve/launch/manifests.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "braid/base/yaml_text.h"
#include "braid/trainers/exchange/shell_script.h"

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

/// A kind of worker with the pods that one of it takes.
struct Pods {
  Pods(const WorkerPlan& plan, WorkerRole what, std::int64_t devices_per_node)
      : of(plan),
        role(what),
        nodes(std::max<std::int64_t>(
            1, (plan.layout.devices() + devices_per_node - 1) / devices_per_node)),
        devices(plan.layout.devices() / nodes) {}

  const WorkerPlan& of;
  WorkerRole role;
  std::int64_t nodes, devices;  ///< Pods of a worker; GPUs of each.
  const char* name() const { return role == WorkerRole::prompts ? "prefill" : "decode"; }
};

/// The arguments of a worker's launch line, from the first behind the program on.
std::vector<std::string> arguments_of(const Pods& pods, const LaunchNames& names) {
  const std::string line = launch_line(pods.of, names, pods.role);
  std::vector<std::string> words = read_shell_script(line, "").commands.front();
  // vllm serve, python3 -m sglang.launch_server
  words.erase(words.begin(), words.begin() + (pods.of.engine->name == "vllm" ? 2 : 3));
  return words;
}

Json trtllm_options(const Pods& pods, const LaunchNames& names) {
  const ServingLayout& layout = pods.of.layout;
  Json options = {{"tensor_parallel_size", layout.stage_devices()},
                  {"pipeline_parallel_size", layout.pp},
                  {"moe_expert_parallel_size", layout.moe_ep},
                  {"enable_attention_dp", layout.dp > 1},
                  {"max_batch_size", static_cast<std::int64_t>(group_sequences(pods.of))},
                  {"max_num_tokens", static_cast<std::int64_t>(pods.of.limits.chunk_tokens)},
                  {"max_seq_len", static_cast<std::int64_t>(names.context)},
                  {"enable_chunked_prefill", true},
                  {"cache_transceiver_config", {{"backend", "DEFAULT"}}}};
  if (pods.role == WorkerRole::prompts) options["disable_overlap_scheduler"] = true;
  if (pods.of.format.cache == "fp8") options["kv_cache_config"] = {{"dtype", "fp8"}};
  return options;
}

std::vector<std::string> dynamo_arguments(const Pods& pods, const LaunchNames& names) {
  if (pods.of.engine->name == "trtllm") {
    return {"--model-path",           names.model,
            "--served-model-name",    names.model,
            "--override-engine-args", trtllm_options(pods, names).dump(),
            "--disaggregation-mode",  pods.name()};
  }
  std::vector<std::string> words = arguments_of(pods, names);
  if (pods.of.engine->name == "sglang") {
    words.insert(words.end(), {"--disaggregation-transfer-backend", "nixl",
                               "--disaggregation-bootstrap-port", "12345", "--host", "0.0.0.0"});
  } else {
    words.insert(words.begin(), "--model");
    words.insert(words.end(), {"--disaggregation-mode", pods.name()});
  }
  return words;
}

std::string dynamo_image(const Engine& engine) {
  const std::string name = engine.name == "trtllm" ? "tensorrtllm" : engine.name;
  return "nvcr.io/nvidia/ai-dynamo/" + name + "-runtime:1.3.1";
}

Json dynamo_worker(const Pods& pods, const LaunchNames& names) {
  const std::string module = "dynamo." + pods.of.engine->name;
  Json component = {{"name", pods.name()}};
  component["type"] = pods.name();
  component["replicas"] = pods.of.workers;
  if (pods.nodes > 1) component["multinode"] = {{"nodeCount", pods.nodes}};
  const Json secret = {{"secretRef", {{"name", "hf-token-secret"}}}};
  Json container = {{"name", "main"}, {"image", dynamo_image(*pods.of.engine)}};
  container["command"] = {"python3", "-m", module};
  container["args"] = dynamo_arguments(pods, names);
  container["envFrom"] = Json::array({secret});
  container["resources"] = {{"limits", {{"nvidia.com/gpu", std::to_string(pods.devices)}}}};
  component["podTemplate"] = {{"spec", {{"containers", Json::array({container})}}}};
  return component;
}

/// What vLLM and SGLang are told beside on each pod of a worker of several.
std::string lines_of_nodes(const Pods& pods) {
  const ServingLayout& layout = pods.of.layout;
  if (pods.of.engine->name == "sglang") {
    return fmt::format(
        " \\\n  --nnodes {} --node-rank ${{LWS_WORKER_INDEX:-0}} \\\n"
        "  --dist-init-addr ${{LWS_LEADER_ADDRESS}}:20000",
        pods.nodes);
  }
  if (layout.dp > 1) {
    const std::int64_t local = layout.dp / pods.nodes;
    return fmt::format(
        " \\\n  --data-parallel-hybrid-lb --data-parallel-size-local {} \\\n"
        "  --data-parallel-address ${{LWS_LEADER_ADDRESS}} --data-parallel-rpc-port 5555 \\\n"
        "  --data-parallel-start-rank $(( ${{LWS_WORKER_INDEX:-0}} * {} ))",
        local, local);
  }
  return fmt::format(
      " \\\n  --nnodes {} --node-rank ${{LWS_WORKER_INDEX:-0}} \\\n"
      "  --master-addr ${{LWS_LEADER_ADDRESS}} \\\n"
      "  $([ ${{LWS_WORKER_INDEX:-0}} -gt 0 ] && echo --headless)",
      pods.nodes);
}

Json model_server(const Pods& pods, const LaunchNames& names) {
  const bool vllm = pods.of.engine->name == "vllm";
  const int port = pods.role == WorkerRole::decoding ? 8200 : 8000;
  std::string more = fmt::format(" --port {}", port);
  if (!vllm) more += " --host 0.0.0.0 --disaggregation-transfer-backend nixl";
  Json container = {{"name", "modelserver"}, {"image", "REPLACE_MODEL_SERVER_IMAGE"}};
  if (pods.nodes > 1) {
    container["command"] = {"/bin/bash", "-c"};
    container["args"] = Json::array(
        {"exec " + launch_line(pods.of, names, pods.role) + more + lines_of_nodes(pods)});
  } else {
    std::vector<std::string> words = arguments_of(pods, names);
    const std::vector<std::string> further = read_shell_script("x" + more, "").commands.front();
    words.insert(words.end(), further.begin() + 1, further.end());
    container["command"] =
        vllm ? Json{"vllm", "serve"} : Json{"python3", "-m", "sglang.launch_server"};
    container["args"] = words;
  }
  container["env"] = Json::array(
      {{{"name", "HF_TOKEN"},
        {"valueFrom", {{"secretKeyRef", {{"name", "llm-d-hf-token"}, {"key", "HF_TOKEN"}}}}}}});
  if (vllm) {
    container["env"].push_back({{"name", "VLLM_NIXL_SIDE_CHANNEL_HOST"},
                                {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
  }
  container["ports"] = Json::array({{{"name", "modelserver"}, {"containerPort", port}},
                                    {{"name", "nixl"}, {"containerPort", 5600}}});
  const std::string devices = std::to_string(pods.devices);
  container["resources"] = {{"limits", {{"nvidia.com/gpu", devices}}},
                            {"requests", {{"nvidia.com/gpu", devices}}}};
  container["volumeMounts"] = Json::array({{{"name", "shm"}, {"mountPath", "/dev/shm"}}});
  return container;
}

/// Sends a request to a worker of prompts first, then to the decoding one beside it.
Json routing_sidecar(const Engine& engine) {
  Json sidecar = {{"name", "routing-proxy"}, {"image", "REPLACE_ROUTING_SIDECAR_IMAGE"}};
  const bool sglang = engine.name == "sglang";
  sidecar["args"] = {"--port=8000", sglang ? "--kv-connector=sglang" : "--kv-connector=nixlv2",
                     sglang ? "--secure-serving=false" : "--secure-proxy=false"};
  sidecar["ports"] = Json::array({{{"name", "sidecar"}, {"containerPort", 8000}}});
  sidecar["restartPolicy"] = "Always";
  sidecar["securityContext"] = {{"allowPrivilegeEscalation", false}, {"runAsNonRoot", true}};
  return sidecar;
}

Json leader_worker_set(const Pods& pods, const LaunchNames& names) {
  const std::string model = resource_name(names.model, "");
  const Json labels = {{"llm-d.ai/inference-serving", "true"},
                       {"llm-d.ai/model", model},
                       {"llm-d.ai/role", pods.name()}};
  Json spec = Json::object();
  if (pods.role == WorkerRole::decoding) {
    spec["initContainers"] = Json::array({routing_sidecar(*pods.of.engine)});
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

/// Whether every attention group of a worker lies on one pod, or the worker has one alone.
bool can_be_dealt(const Pods& pods) {
  const ServingLayout& layout = pods.of.layout;
  return pods.nodes == 1 || layout.dp == 1 || pods.of.engine->name == "sglang" ||
         (layout.dp % pods.nodes == 0 && layout.pp == 1);
}

}  // namespace

std::string dynamo_manifest(const ServingPlan& plan, const LaunchNames& names,
                            std::int64_t devices_per_node) {
  const Pods prefill(plan.prefill, WorkerRole::prompts, devices_per_node);
  const Pods decode(plan.decode, WorkerRole::decoding, devices_per_node);
  const Json container = {{"name", "main"}, {"image", dynamo_image(*plan.decode.engine)}};
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
  const Pods prefill(plan.prefill, WorkerRole::prompts, devices_per_node);
  const Pods decode(plan.decode, WorkerRole::decoding, devices_per_node);
  if (plan.decode.engine->name == "trtllm" || !can_be_dealt(prefill) || !can_be_dealt(decode)) {
    return "";
  }
  return yaml_text(leader_worker_set(prefill, names)) + "---\n" +
         yaml_text(leader_worker_set(decode, names));
}

}  // namespace braid
