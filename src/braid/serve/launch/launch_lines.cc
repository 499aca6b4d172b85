#include "braid/serve/launch/launch_lines.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace braid {
namespace {

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
  // Not for workers of prompts alone (examples/backends/trtllm/engine_configs of Dynamo).
  if (role == WorkerRole::prompts) extra += "disable_overlap_scheduler: true\\n";
  if (of.draft_tokens > 0) {
    extra += fmt::format(
        "disable_overlap_scheduler: true\\nspeculative_config: {{decoding_type: DraftTarget, "
        "max_draft_len: {}, speculative_model_dir: {}}}\\n",
        of.draft_tokens, names.draft);
  }
  return line + " --extra_llm_api_options <(printf '" + extra + "')";
}

/// "# 6 workers of prompts in fp8, 1 GPUs each"
std::string headline(const WorkerPlan& of, WorkerRole role) {
  const char* what = role == WorkerRole::prompts    ? " of prompts"
                     : role == WorkerRole::decoding ? " of decoding"
                                                    : "";
  return fmt::format("# {} workers{} in {}, {} GPUs each\n", of.workers, what, of.format.name,
                     of.layout.devices());
}

}  // namespace

double group_sequences(const WorkerPlan& of) {
  return std::ceil(of.limits.sequences / static_cast<double>(of.layout.dp));
}

std::string launch_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role) {
  if (of.engine->name == "sglang") return sglang_line(of, names, role);
  if (of.engine->name == "trtllm") return trtllm_line(of, names, role);
  return vllm_line(of, names, role);
}

std::string launch_lines(const ServingPlan& plan, const LaunchNames& names) {
  const auto lines_of = [&](const WorkerPlan& of, WorkerRole role) {
    return headline(of, role) + launch_line(of, names, role) + "\n";
  };
  if (!plan.disaggregated) return lines_of(plan.decode, WorkerRole::all);
  return lines_of(plan.prefill, WorkerRole::prompts) + lines_of(plan.decode, WorkerRole::decoding);
}

}  // namespace braid
