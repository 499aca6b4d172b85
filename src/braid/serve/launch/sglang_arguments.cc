#include <array>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/serve/launch/engine_arguments.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 34> kSglangOfNoConcern = {
    "--host",
    "--port",
    "--served-model-name",
    "--trust-remote-code",
    "--api-key",
    "--log-level",
    "--log-requests",
    "--chat-template",
    "--tool-call-parser",
    "--reasoning-parser",
    "--tokenizer-path",
    "--tokenizer-mode",
    "--download-dir",
    "--load-format",
    "--random-seed",
    "--revision",
    "--enable-metrics",
    "--nnodes",
    "--node-rank",
    "--dist-init-addr",
    "--dist-timeout",
    "--watchdog-timeout",
    "--disaggregation-bootstrap-port",
    "--disaggregation-ib-device",
    "--disaggregation-transfer-backend",
    "--enable-dp-lm-head",
    "--moe-dense-tp-size",
    "--attention-backend",
    "--decode-attention-backend",
    "--prefill-attention-backend",
    "--stream-interval",
    "--dtype",
    "--skip-server-warmup",
    "--base-gpu-id"};

constexpr std::array kSglangNotModelled = {
    NotModelled{"--disable-cuda-graph", "steps are taken to be captured in CUDA graphs"},
    NotModelled{"--cuda-graph-max-bs", "larger steps are taken to be captured too"},
    NotModelled{"--disable-radix-cache", "--cached says what share of the input is found"},
    NotModelled{"--enable-mixed-chunk", "prompts and decoding are taken to have own steps"},
    NotModelled{"--disable-overlap-schedule", "the engine's time of a step is that with overlap"},
    NotModelled{"--max-prefill-tokens", "a step takes as many new tokens as a chunk"},
    NotModelled{"--schedule-conservativeness", "requests are admitted as by default"},
    NotModelled{"--enable-two-batch-overlap", "steps are taken to be one batch"},
    NotModelled{"--enable-eplb", "experts are taken to be chosen evenly"},
    NotModelled{"--cpu-offload-gb", "all weights are taken to be on the GPUs"},
    NotModelled{"--enable-torch-compile", "kernels are those that were measured"}};

void read_sglang_drafts(const EngineArguments& to) {
  const auto algorithm = to.given.text("--speculative-algorithm");
  const auto model = to.given.text("--speculative-draft-model-path");
  const auto steps = to.given.count("--speculative-num-steps", 1, kMostDrafted);
  const auto width = to.given.count("--speculative-eagle-topk", 1, 64);
  to.given.has("--speculative-num-draft-tokens");
  if (!algorithm) return;
  if (*algorithm != "STANDALONE" || !model || !steps || width.value_or(1) != 1) {
    return note_other_drafts(to, "--speculative-algorithm", *algorithm);
  }
  to.worker.draft = *model;
  to.worker.draft_tokens = *steps;
}

void read_sglang_layout(const EngineArguments& to) {
  GivenArguments& given = to.given;
  LaunchedWorker& worker = to.worker;
  const std::int64_t ranks = degree_of(given, "--tp-size");
  worker.pp = degree_of(given, "--pp-size");
  worker.dp = degree_of(given, "--dp-size");
  worker.cp = degree_of(given, "--dcp-size");
  worker.ep = degree_of(given, "--ep-size");
  const auto exchange = given.text("--moe-a2a-backend");
  worker.all_ranks_have_experts = given.has("--enable-ep-moe") ||
                                  given.has("--enable-deepep-moe") ||
                                  (exchange && *exchange == "deepep");
  worker.data_is_copies = !given.has("--enable-dp-attention");
  worker.tp = ranks;
  if (worker.data_is_copies) return;
  if (ranks % worker.dp != 0) {
    given.fail("--dp-size",
               fmt::format("{} attention groups do not divide {} ranks", worker.dp, ranks),
               "give --tp-size a multiple of it: it counts the ranks of all groups");
  }
  worker.tp = ranks / worker.dp;
}

void read_sglang_arguments(const EngineArguments& to) {
  GivenArguments& given = to.given;
  LaunchedWorker& worker = to.worker;
  read_sglang_layout(to);
  const double groups = worker.data_is_copies ? 1 : static_cast<double>(worker.dp);
  // SGLang divides both among the attention groups.
  worker.sequences = tokens_of(given, "--max-running-requests").value_or(0) / groups;
  worker.chunk_tokens = tokens_of(given, "--chunked-prefill-size").value_or(0) / groups;
  if (worker.chunk_tokens == 0 && given.has("--chunked-prefill-size")) {
    to.notes.emplace_back("--chunked-prefill-size: prompts are taken to be cut into chunks");
  }
  worker.context = tokens_of(given, "--context-length").value_or(0);
  worker.memory_share = share_of(given, "--mem-fraction-static").value_or(0);
  worker.block_tokens = tokens_of(given, "--page-size").value_or(0);
  worker.cache = cache_of(given, "--kv-cache-dtype");
  if (const auto method = given.text("--quantization")) {
    worker.precision = precision_of_method(*method);
    if (worker.precision.empty()) {
      to.notes.push_back("--quantization: " + in_quotes(*method) + " is not known here");
    }
  }
  const auto mode = given.text("--disaggregation-mode");
  if (mode && *mode != "null") {
    if (*mode != "prefill" && *mode != "decode") {
      given.fail("--disaggregation-mode", in_quotes(*mode) + " is no kind of worker",
                 "say prefill or decode");
    }
    worker.tells_role = true;
    worker.role = *mode == "prefill" ? WorkerRole::prompts : WorkerRole::decoding;
  }
  read_sglang_drafts(to);
  note_given(to, kSglangNotModelled);
  given.ignore(kSglangOfNoConcern);
}

std::string sglang_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role) {
  const ServingLayout& l = of.layout;
  std::string line = fmt::format("python3 -m sglang.launch_server --model-path {} --tp-size {}",
                                 names.model, l.tp * l.dp);
  if (l.pp > 1) line += fmt::format(" --pp-size {}", l.pp);
  if (l.cp > 1) line += fmt::format(" --dcp-size {}", l.cp);
  if (l.dp > 1) line += fmt::format(" --dp-size {} --enable-dp-attention", l.dp);
  if (l.moe_ep > 1) line += fmt::format(" --ep-size {}", l.moe_ep);
  line += fmt::format(
      " --max-running-requests {:.0f} --chunked-prefill-size {:.0f} --context-length {:.0f}",
      of.limits.sequences, of.limits.chunk_tokens * static_cast<double>(l.dp), names.context);
  if (of.format.cache == "fp8") line += " --kv-cache-dtype fp8_e4m3";
  if (of.draft_tokens > 0) {
    line += fmt::format(
        " --speculative-algorithm STANDALONE --speculative-draft-model-path {} "
        "--speculative-num-steps {} --speculative-eagle-topk 1 --speculative-num-draft-tokens {}",
        names.draft, of.draft_tokens, of.draft_tokens + 1);
  }
  if (role == WorkerRole::prompts) line += " --disaggregation-mode prefill";
  if (role == WorkerRole::decoding) line += " --disaggregation-mode decode";
  return line;
}

constexpr std::array kSglangStarts = {CommandStart{"sglang.launch_server", ""},
                                      CommandStart{"sglang", "serve"}};
constexpr std::array kSglangNames = {
    OtherName{"--tp", "--tp-size"},   OtherName{"--tensor-parallel-size", "--tp-size"},
    OtherName{"--pp", "--pp-size"},   OtherName{"--pipeline-parallel-size", "--pp-size"},
    OtherName{"--dp", "--dp-size"},   OtherName{"--data-parallel-size", "--dp-size"},
    OtherName{"--ep", "--ep-size"},   OtherName{"--expert-parallel-size", "--ep-size"},
    OtherName{"--dcp", "--dcp-size"}, OtherName{"--model", "--model-path"}};

}  // namespace

constinit const EngineCommand kSglangCommand = {.engine = "sglang",
                                                .title = "SGLang",
                                                .example = "python -m sglang.launch_server",
                                                .starts = kSglangStarts,
                                                .names = kSglangNames,
                                                .model = "--model-path",
                                                .to_fp8 = "--quantization fp8",
                                                .read = read_sglang_arguments,
                                                .line = sglang_line,
                                                .manifest = &kSglangManifest};

}  // namespace braid
