#include "braid/trainers/exchange/recomputed_modules.h"

#include <string>

#include <fmt/format.h>

namespace braid {

void take_recomputed_modules(std::string_view modules, std::string_view option, Import& run) {
  bool attention = false, norms = false;
  std::string others, word;
  const auto take = [&] {
    if (word == "core_attn") {
      attention = true;
    } else if (word == "layernorm") {
      norms = true;
    } else if (!word.empty()) {
      others += (others.empty() ? "" : ", ") + word;
    }
    word.clear();
  };
  for (const char c : modules) {
    if (std::string_view(" ,[]'\"").find(c) == std::string_view::npos) {
      word += c;
    } else {
      take();
    }
  }
  take();
  if (!attention) run.does.push_back({&TrainerBehaviour::selective_attention, false});
  // Which norms are modules of their own, the trainer's file says.
  if (!norms) {
    run.does.push_back({&TrainerBehaviour::selective_norms, false});
    run.does.push_back({&TrainerBehaviour::selective_expert_norms, false});
  }
  if (!others.empty()) {
    run.notes.push_back(fmt::format("{}: not recomputed here: {}", option, others));
  }
}

std::string kept_beside_plan(const TrainerBehaviour& does, bool fused_norms) {
  if (!does.selective_attention_output && !does.selective_activations &&
      !(does.selective_norms && fused_norms)) {
    return "";
  }
  return "the output of attention's core, activation functions' inputs and outputs, and norms that "
         "Transformer Engine computes with a GEMM stay in memory, which takes more than the plan "
         "says";
}

}  // namespace braid
