#include "braid/base/json.h"
#include "braid/serve/launch/engine_manifest.h"

namespace braid {
namespace {

Json trtllm_options(const WorkerPods& pods, const LaunchNames& names) {
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

std::vector<std::string> trtllm_dynamo_arguments(const WorkerPods& pods, const LaunchNames& names) {
  return {"--model-path",           checkpoint_name(pods.of, names),
          "--served-model-name",    names.model,
          "--override-engine-args", trtllm_options(pods, names).dump(),
          "--disaggregation-mode",  pods.name()};
}

}  // namespace

constinit const EngineManifest kTrtllmManifest = {.dynamo_module = "dynamo.trtllm",
                                                  .dynamo_image = "tensorrtllm",
                                                  .dynamo_arguments = trtllm_dynamo_arguments};

}  // namespace braid
