#include <array>

#include <fmt/format.h>

#include "braid/serve/launch/engine_manifest.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 3> kSglangProgram = {"python3", "-m",
                                                            "sglang.launch_server"};
constexpr std::array<std::string_view, 4> kSglangMore = {
    "--host", "0.0.0.0", "--disaggregation-transfer-backend", "nixl"};
constexpr std::array<std::string_view, 2> kSglangSidecar = {"--kv-connector=sglang",
                                                            "--secure-serving=false"};

std::vector<std::string> sglang_dynamo_arguments(const WorkerPods& pods, const LaunchNames& names) {
  std::vector<std::string> words = launch_arguments(pods, names, kSglangProgram);
  words.insert(words.end(), {"--disaggregation-transfer-backend", "nixl",
                             "--disaggregation-bootstrap-port", "12345", "--host", "0.0.0.0"});
  return words;
}

std::string sglang_lines_of_nodes(const WorkerPods& pods) {
  return fmt::format(
      " \\\n  --nnodes {} --node-rank ${{LWS_WORKER_INDEX:-0}} \\\n"
      "  --dist-init-addr ${{LWS_LEADER_ADDRESS}}:20000",
      pods.nodes);
}

}  // namespace

constinit const EngineManifest kSglangManifest = {.dynamo_module = "dynamo.sglang",
                                                  .dynamo_image = "sglang",
                                                  .dynamo_arguments = sglang_dynamo_arguments,
                                                  .program = kSglangProgram,
                                                  .more_arguments = kSglangMore,
                                                  .address_variable = {},
                                                  .sidecar_arguments = kSglangSidecar,
                                                  .lines_of_nodes = sglang_lines_of_nodes,
                                                  .groups_across_pods = true};

}  // namespace braid
