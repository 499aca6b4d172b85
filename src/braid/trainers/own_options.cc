#include "braid/trainers/own_options.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace braid {
namespace {

struct OwnOption {
  std::string_view trainer, option, own;
};
constexpr OwnOption kOwn[] = {
    {"megatron", "--tp", "--tensor-model-parallel-size"},
    {"megatron", "--pp", "--pipeline-model-parallel-size"},
    {"megatron", "--cp", "--context-parallel-size"},
    {"megatron", "--ep", "--expert-model-parallel-size"},
    {"megatron", "--vp", "--num-layers-per-virtual-pipeline-stage"},
    {"megatron", "--vp", "--num-virtual-stages-per-pipeline-rank"},
    {"megatron", "--layout", "--pipeline-model-parallel-layout"},
    {"megatron", "--micro-batch", "--micro-batch-size"},
    {"megatron", "--global-batch", "--global-batch-size"},
    {"megatron", "--seq-len", "--seq-length"},
    {"megatron-bridge", "--tp", "tensor_model_parallel_size"},
    {"megatron-bridge", "--pp", "pipeline_model_parallel_size"},
    {"megatron-bridge", "--cp", "context_parallel_size"},
    {"megatron-bridge", "--ep", "expert_model_parallel_size"},
    {"megatron-bridge", "--vp", "virtual_pipeline_model_parallel_size"},
    {"megatron-bridge", "--micro-batch", "micro_batch_size"},
    {"megatron-bridge", "--global-batch", "global_batch_size"},
    {"megatron-bridge", "--seq-len", "seq_length"},
    {"torchtitan", "--tp", "tensor_parallel_degree"},
    {"torchtitan", "--pp", "pipeline_parallel_degree"},
    {"torchtitan", "--cp", "context_parallel_degree"},
    {"torchtitan", "--ep", "expert_parallel_degree"},
    {"torchtitan", "--dp", "data_parallel_shard_degree"},
    {"torchtitan", "--vp", "pipeline_parallel_layers_per_stage"},
    {"torchtitan", "--micro-batch", "pipeline_parallel_microbatch_size"},
    {"torchtitan", "--micro-batch", "local_batch_size"},
    {"torchtitan", "--global-batch", "global_batch_size"},
    {"torchtitan", "--seq-len", "seq_len"},
    {"torchtitan-recipe", "--tp", "tensor_parallel_degree"},
    {"torchtitan-recipe", "--pp", "pipeline_parallel_degree"},
    {"torchtitan-recipe", "--cp", "context_parallel_degree"},
    {"torchtitan-recipe", "--ep", "expert_parallel_degree"},
    {"torchtitan-recipe", "--dp", "data_parallel_shard_degree"},
    {"torchtitan-recipe", "--micro-batch", "num_tokens_per_microbatch_per_dp_rank"},
    {"torchtitan-recipe", "--global-batch", "num_tokens_per_train_step"},
    {"torchtitan-recipe", "--seq-len", "max_context_length"},
    {"deepspeed", "--tp", "autotp_size"},
    {"deepspeed", "--tp", "--tensor-model-parallel-size"},
    {"deepspeed", "--pp", "--pipeline-model-parallel-size"},
    {"deepspeed", "--cp", "sequence_parallel_size"},
    {"deepspeed", "--ep", "autoep_size"},
    {"deepspeed", "--micro-batch", "train_micro_batch_size_per_gpu"},
    {"deepspeed", "--micro-batch", "--micro-batch-size"},
    {"deepspeed", "--global-batch", "train_batch_size"},
    {"deepspeed", "--global-batch", "--global-batch-size"},
    {"deepspeed", "--seq-len", "--seq-length"},
    {"maxtext", "--tp", "ici_tensor_parallelism"},
    {"maxtext", "--pp", "ici_pipeline_parallelism"},
    {"maxtext", "--cp", "ici_context_parallelism"},
    {"maxtext", "--ep", "ici_expert_parallelism"},
    {"maxtext", "--micro-batch", "per_device_batch_size"},
    {"maxtext", "--global-batch", "per_device_batch_size"},
    {"maxtext", "--seq-len", "max_target_length"}};

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

/// As trainers read names: `-` and `_` are one.
bool is_same(char a, char b) {
  return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

/// Where the name stands last as a whole word, outside of lines that are comments; npos: nowhere.
std::size_t last_place(std::string_view text, std::string_view name) {
  std::size_t last = std::string_view::npos;
  for (auto at = text.begin();; ++at) {
    at = std::search(at, text.end(), name.begin(), name.end(), is_same);
    if (at == text.end()) return last;
    const auto begin = static_cast<std::size_t>(at - text.begin());
    const std::size_t end = begin + name.size();
    if ((begin > 0 && is_part_of_name(text[begin - 1])) ||
        (end < text.size() && is_part_of_name(text[end]))) {
      continue;
    }
    const std::size_t line = text.substr(0, begin).rfind('\n') + 1;  // 0 behind npos.
    const std::size_t first = text.find_first_not_of(" \t", line);
    if (text[first] != '#') last = begin;
  }
}

}  // namespace

std::optional<Where> where_said(std::string_view text, const std::string& file,
                                std::string_view trainer, std::string_view option) {
  for (const OwnOption& each : kOwn) {
    if (each.trainer != trainer || each.option != option) continue;
    const std::size_t at = last_place(text, each.own);
    if (at == std::string_view::npos) continue;
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const bool is_one_line = text.find('\n') == std::string_view::npos;
    return Where{file, is_one_line ? 0 : static_cast<int>(lines) + 1,
                 std::string(text.substr(at, each.own.size()))};
  }
  return std::nullopt;
}

}  // namespace braid
