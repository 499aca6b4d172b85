#include <array>

#include <fmt/format.h>

#include "braid/serve/launch/engine_manifest.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 2> kVllmProgram = {"vllm", "serve"};
constexpr std::array<std::string_view, 2> kVllmSidecar = {"--kv-connector=nixlv2",
                                                          "--secure-proxy=false"};

std::vector<std::string> vllm_dynamo_arguments(const WorkerPods& pods, const LaunchNames& names) {
  std::vector<std::string> words = launch_arguments(pods, names, kVllmProgram);
  words.insert(words.begin(), "--model");
  words.insert(words.end(), {"--disaggregation-mode", pods.name()});
  return words;
}

std::string vllm_lines_of_nodes(const WorkerPods& pods) {
  const std::int64_t groups = pods.of.layout.dp;
  if (groups > 1) {
    const std::int64_t local = groups / pods.nodes;
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

}  // namespace

constinit const EngineManifest kVllmManifest = {.dynamo_module = "dynamo.vllm",
                                                .dynamo_image = "vllm",
                                                .dynamo_arguments = vllm_dynamo_arguments,
                                                .program = kVllmProgram,
                                                .more_arguments = {},
                                                .address_variable = "VLLM_NIXL_SIDE_CHANNEL_HOST",
                                                .sidecar_arguments = kVllmSidecar,
                                                .lines_of_nodes = vllm_lines_of_nodes};

}  // namespace braid
