#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/text.h"
#include "braid/serve/launch/engine_arguments.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 14> kTrtllmOfNoConcern = {"--host",
                                                                 "--port",
                                                                 "--backend",
                                                                 "--log-level",
                                                                 "--tokenizer",
                                                                 "--trust-remote-code",
                                                                 "--reasoning-parser",
                                                                 "--tool-parser",
                                                                 "--gpus-per-node",
                                                                 "--num-postprocess-workers",
                                                                 "--metadata-server-config-file",
                                                                 "--max-beam-width",
                                                                 "--served-model-name",
                                                                 "--enable-chunked-prefill"};

// Keys of the file of options that change no figure here, or that are the engine's own way.
constexpr std::array<std::string_view, 13> kTrtllmKeysOfNoConcern = {"print_iter_log",
                                                                     "enable_iter_perf_stats",
                                                                     "return_perf_metrics",
                                                                     "stream_interval",
                                                                     "trust_remote_code",
                                                                     "backend",
                                                                     "hostname",
                                                                     "port",
                                                                     "enable_chunked_prefill",
                                                                     "scheduler_config",
                                                                     "cache_transceiver_config",
                                                                     "disable_overlap_scheduler",
                                                                     "num_postprocess_workers"};

double count_in(const Value& at) {
  constexpr std::int64_t kMost = 1'000'000'000;
  return static_cast<double>(at.as_int_in(1, kMost));
}

std::int64_t degree_in(const Value& at) { return at.as_int_in(1, 1 << 16); }

void read_trtllm_cache(const Value& config, const EngineArguments& to) {
  for (const auto& [key, at] : config.members()) {
    if (key == "dtype") {
      const std::string dtype(at.as_string());
      if (dtype == "auto") continue;
      if (dtype != "fp8" && dtype != "bfloat16" && dtype != "float16") {
        at.fail("caches in " + in_quotes(dtype) + " are not known here", "say fp8 or auto");
      }
      to.worker.cache = dtype == "fp8" ? "fp8" : "bf16";
    } else if (key == "free_gpu_memory_fraction") {
      to.worker.memory_share = at.as_double_in(1e-6, 1);
    } else if (key == "tokens_per_block") {
      to.worker.block_tokens = count_in(at);
    } else if (key == "enable_block_reuse") {
      to.notes.emplace_back("enable_block_reuse: --cached says what share of the input is found");
    } else {
      to.notes.push_back("kv_cache_config." + std::string(key) + ": not modelled");
    }
  }
}

void read_trtllm_drafts(const Value& config, const EngineArguments& to) {
  const std::string type = config["decoding_type"].string_or("");
  const std::string model =
      config["speculative_model_dir"].string_or(config["speculative_model"].string_or(""));
  if (type != "DraftTarget" || model.empty()) {
    return note_other_drafts(to, "speculative_config", type);
  }
  to.worker.draft = model;
  to.worker.draft_tokens = config["max_draft_len"].as_int_in(1, kMostDrafted);
}

/// One key of the file of options; false: nothing is known of it.
bool read_key(std::string_view key, const Value& at, bool& groups, const EngineArguments& to) {
  LaunchedWorker& worker = to.worker;
  if (key == "tensor_parallel_size") {
    worker.tp = degree_in(at);
  } else if (key == "pipeline_parallel_size") {
    worker.pp = degree_in(at);
  } else if (key == "moe_expert_parallel_size") {
    worker.ep = degree_in(at);
  } else if (key == "max_batch_size") {
    worker.sequences = count_in(at);
  } else if (key == "max_num_tokens") {
    worker.chunk_tokens = count_in(at);
  } else if (key == "max_seq_len") {
    worker.context = count_in(at);
  } else if (key == "enable_attention_dp") {
    groups = at.as_bool();
  } else if (key == "kv_cache_config") {
    read_trtllm_cache(at, to);
  } else if (key == "speculative_config") {
    read_trtllm_drafts(at, to);
  } else if (key == "cuda_graph_config" || key == "moe_config" || key == "attention_dp_config") {
    to.notes.push_back(std::string(key) + ": not modelled");
  } else {
    return std::find(kTrtllmKeysOfNoConcern.begin(), kTrtllmKeysOfNoConcern.end(), key) !=
           kTrtllmKeysOfNoConcern.end();
  }
  return true;
}

/// Whether all ranks are attention groups.
bool read_options(const std::string& name, const EngineArguments& to) {
  bool groups = false;
  const Document document = Document::parse(to.text_of_file(name), Document::Syntax::yaml, name);
  if (document.root().is_null()) return false;
  for (const auto& [key, at] : document.root().members()) {
    if (!read_key(key, at, groups, to)) to.unknown.emplace_back(key);
  }
  return groups;
}

void read_trtllm_arguments(const EngineArguments& to) {
  GivenArguments& given = to.given;
  LaunchedWorker& worker = to.worker;
  bool groups = false;
  worker.tp = degree_of(given, "--tp_size");
  worker.pp = degree_of(given, "--pp_size");
  worker.ep = degree_of(given, "--ep_size");
  worker.sequences = tokens_of(given, "--max_batch_size").value_or(0);
  worker.chunk_tokens = tokens_of(given, "--max_num_tokens").value_or(0);
  worker.context = tokens_of(given, "--max_seq_len").value_or(0);
  worker.memory_share = share_of(given, "--kv_cache_free_gpu_memory_fraction").value_or(0);
  worker.cache = cache_of(given, "--kv_cache_dtype");
  // What the file says counts, whatever the flags say.
  for (const char* option : {"--extra_llm_api_options", "--config"}) {
    if (const auto name = given.text(option)) {
      groups = read_options(*name, to) || groups;
    }
  }
  if (groups) {
    worker.dp = worker.tp;
    worker.tp = 1;
  }
  if (const auto role = given.text("--server_role")) {
    worker.tells_role = *role == "CONTEXT" || *role == "GENERATION";
    if (*role == "CONTEXT") worker.role = WorkerRole::prompts;
    if (*role == "GENERATION") worker.role = WorkerRole::decoding;
  }
  given.ignore(kTrtllmOfNoConcern);
}

std::string trtllm_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role) {
  const ServingLayout& l = of.layout;
  std::string line =
      fmt::format("trtllm-serve {} --backend pytorch --tp_size {}", names.model, l.tp * l.dp);
  if (l.pp > 1) line += fmt::format(" --pp_size {}", l.pp);
  if (l.moe_ep > 1) line += fmt::format(" --ep_size {}", l.moe_ep);
  line += fmt::format(" --max_batch_size {:.0f} --max_num_tokens {:.0f} --max_seq_len {:.0f}",
                      group_sequences(of), of.limits.chunk_tokens, names.context);
  // What has no flag stands in the file of --extra_llm_api_options.
  std::string extra;
  if (l.dp > 1) extra += "enable_attention_dp: true\\n";
  extra += "enable_chunked_prefill: true\\n";
  if (of.format.cache == "fp8") extra += "kv_cache_config: {dtype: fp8}\\n";
  if (role != WorkerRole::all) extra += "cache_transceiver_config: {backend: DEFAULT}\\n";
  // Not for prefill workers (examples/backends/trtllm/engine_configs of Dynamo).
  if (role == WorkerRole::prompts) extra += "disable_overlap_scheduler: true\\n";
  if (of.draft_tokens > 0) {
    extra += fmt::format(
        "disable_overlap_scheduler: true\\nspeculative_config: {{decoding_type: DraftTarget, "
        "max_draft_len: {}, speculative_model_dir: {}}}\\n",
        of.draft_tokens, names.draft);
  }
  return line + " --extra_llm_api_options <(printf '" + extra + "')";
}

constexpr std::array kTrtllmStarts = {CommandStart{"trtllm-serve", "serve"},
                                      CommandStart{"trtllm-serve", ""}};

}  // namespace

constinit const EngineCommand kTrtllmCommand = {.engine = "trtllm",
                                                .title = "TensorRT-LLM",
                                                .example = "trtllm-serve",
                                                .starts = kTrtllmStarts,
                                                .names = {},
                                                .model = "",
                                                .to_fp8 = "",
                                                .read = read_trtllm_arguments,
                                                .line = trtllm_line,
                                                .manifest = &kTrtllmManifest};

}  // namespace braid
