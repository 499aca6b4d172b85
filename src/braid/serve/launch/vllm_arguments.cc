#include <array>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/text.h"
#include "braid/serve/launch/engine_arguments.h"

namespace braid {
namespace {

// Where it listens, what it logs, how it parses and finds things: no time depends on these.
constexpr std::array<std::string_view, 36> kVllmOfNoConcern = {"--host",
                                                               "--port",
                                                               "--served-model-name",
                                                               "--trust-remote-code",
                                                               "--api-key",
                                                               "--disable-log-requests",
                                                               "--no-enable-log-requests",
                                                               "--disable-log-stats",
                                                               "--uvicorn-log-level",
                                                               "--chat-template",
                                                               "--enable-auto-tool-choice",
                                                               "--tool-call-parser",
                                                               "--reasoning-parser",
                                                               "--tokenizer",
                                                               "--tokenizer-mode",
                                                               "--download-dir",
                                                               "--load-format",
                                                               "--seed",
                                                               "--revision",
                                                               "--hf-overrides",
                                                               "--generation-config",
                                                               "--distributed-executor-backend",
                                                               "--data-parallel-size-local",
                                                               "--data-parallel-address",
                                                               "--data-parallel-rpc-port",
                                                               "--data-parallel-start-rank",
                                                               "--data-parallel-backend",
                                                               "--data-parallel-hybrid-lb",
                                                               "--data-parallel-external-lb",
                                                               "--headless",
                                                               "--nnodes",
                                                               "--node-rank",
                                                               "--master-addr",
                                                               "--master-port",
                                                               "--api-server-count",
                                                               "--enable-chunked-prefill"};

constexpr std::array kVllmNotModelled = {
    NotModelled{"--enforce-eager", "steps are taken to be captured in CUDA graphs"},
    NotModelled{"--cpu-offload-gb", "all weights are taken to be on the GPUs"},
    NotModelled{"--swap-space", "caches are taken to stay on the GPUs"},
    NotModelled{"--enable-prefix-caching", "--cached says what share of the input is found there"},
    NotModelled{"--no-enable-prefix-caching", "--cached says what share of the input is found"},
    NotModelled{"--no-enable-chunked-prefill", "prompts are taken to be cut into chunks"},
    NotModelled{"--async-scheduling", "the engine's time of a step is what was measured without"},
    NotModelled{"--enable-dbo", "steps are taken to be one batch"},
    NotModelled{"--enable-lora", "the model is taken to be alone"},
    NotModelled{"--enable-eplb", "experts are taken to be chosen evenly"},
    NotModelled{"--all2all-backend", "exchanges of experts are those that were measured"},
    NotModelled{"--prefill-context-parallel-size", "prompts are not sharded by tokens"}};

/// {"method": "draft_model", "model": M, "num_speculative_tokens": K}
void read_vllm_drafts(const EngineArguments& to) {
  const auto text = to.given.text("--speculative-config");
  if (!text) return;
  const Document document = Document::parse(*text, Document::Syntax::json, "--speculative-config");
  const Value root = document.root();
  const std::string method = root["method"].string_or("draft_model");
  const std::string model = root["model"].string_or("");
  if (method != "draft_model" || model.empty()) {
    return note_other_drafts(to, "--speculative-config", method);
  }
  to.worker.draft = model;
  to.worker.draft_tokens = root["num_speculative_tokens"].as_int_in(1, kMostDrafted);
}

/// {"kv_connector": C, "kv_role": "kv_producer"}
void read_vllm_transfer(const EngineArguments& to) {
  const auto text = to.given.text("--kv-transfer-config");
  if (!text) return;
  const Document document = Document::parse(*text, Document::Syntax::json, "--kv-transfer-config");
  const std::string role = document.root()["kv_role"].string_or("");
  if (role != "kv_producer" && role != "kv_consumer") return;
  to.worker.tells_role = true;
  to.worker.role = role == "kv_producer" ? WorkerRole::prompts : WorkerRole::decoding;
}

void read_vllm_arguments(const EngineArguments& to) {
  GivenArguments& given = to.given;
  LaunchedWorker& worker = to.worker;
  worker.tp = degree_of(given, "--tensor-parallel-size");
  worker.pp = degree_of(given, "--pipeline-parallel-size");
  worker.dp = degree_of(given, "--data-parallel-size");
  worker.cp = degree_of(given, "--decode-context-parallel-size");
  worker.all_ranks_have_experts = given.has("--enable-expert-parallel");
  worker.sequences = tokens_of(given, "--max-num-seqs").value_or(0);
  worker.chunk_tokens = tokens_of(given, "--max-num-batched-tokens").value_or(0);
  worker.context = tokens_of(given, "--max-model-len").value_or(0);
  worker.memory_share = share_of(given, "--gpu-memory-utilization").value_or(0);
  worker.block_tokens = tokens_of(given, "--block-size").value_or(0);
  worker.cache = cache_of(given, "--kv-cache-dtype");
  if (const auto dtype = given.text("--dtype"); dtype && *dtype == "float32") {
    to.notes.emplace_back("--dtype: what is not quantised is taken to be in 16 bits");
  }
  if (const auto method = given.text("--quantization")) {
    worker.precision = precision_of_method(*method);
    if (worker.precision.empty()) {
      to.notes.push_back("--quantization: " + in_quotes(*method) + " is not known here");
    }
  }
  read_vllm_drafts(to);
  read_vllm_transfer(to);
  note_given(to, kVllmNotModelled);
  given.ignore(kVllmOfNoConcern);
}

std::string vllm_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role) {
  const ServingLayout& l = of.layout;
  std::string line = fmt::format("vllm serve {} --tensor-parallel-size {}", names.model, l.tp);
  if (l.pp > 1) line += fmt::format(" --pipeline-parallel-size {}", l.pp);
  if (l.cp > 1) line += fmt::format(" --decode-context-parallel-size {}", l.cp);
  if (l.dp > 1) line += fmt::format(" --data-parallel-size {}", l.dp);
  if (l.moe_ep > 1) line += " --enable-expert-parallel";
  line +=
      fmt::format(" --max-num-seqs {:.0f} --max-num-batched-tokens {:.0f} --max-model-len {:.0f}",
                  group_sequences(of), of.limits.chunk_tokens, names.context);
  if (of.format.cache == "fp8") line += " --kv-cache-dtype fp8";
  if (of.draft_tokens > 0) {
    line += fmt::format(
        " --speculative-config '{{\"method\":\"draft_model\",\"model\":\"{}\","
        "\"num_speculative_tokens\":{},\"draft_tensor_parallel_size\":{}}}'",
        names.draft, of.draft_tokens, l.tp);
  }
  if (role != WorkerRole::all) {
    line += fmt::format(
        " --kv-transfer-config '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"{}\"}}'",
        "kv_both");
  }
  return line;
}

constexpr std::array kVllmStarts = {CommandStart{"vllm", "serve"},
                                    CommandStart{"vllm.entrypoints.openai.api_server", ""}};
constexpr std::array kVllmNames = {OtherName{"-tp", "--tensor-parallel-size"},
                                   OtherName{"-pp", "--pipeline-parallel-size"},
                                   OtherName{"-dp", "--data-parallel-size"},
                                   OtherName{"-dpl", "--data-parallel-size-local"},
                                   OtherName{"-dpa", "--data-parallel-address"},
                                   OtherName{"-dpp", "--data-parallel-rpc-port"},
                                   OtherName{"-dcp", "--decode-context-parallel-size"},
                                   OtherName{"-pcp", "--prefill-context-parallel-size"},
                                   OtherName{"-ep", "--enable-expert-parallel"},
                                   OtherName{"-q", "--quantization"},
                                   OtherName{"-sc", "--speculative-config"}};

}  // namespace

constinit const EngineCommand kVllmCommand = {.engine = "vllm",
                                              .title = "vLLM",
                                              .example = "vllm serve",
                                              .starts = kVllmStarts,
                                              .names = kVllmNames,
                                              .model = "--model",
                                              .to_fp8 = "--quantization fp8",
                                              .read = read_vllm_arguments,
                                              .line = vllm_line,
                                              .manifest = &kVllmManifest};

}  // namespace braid
