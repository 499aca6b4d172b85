#include "braid/validate/framework.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace braid {
namespace {

struct Entry {
  std::string_view word;
  TrainerDefaults defaults;
};

constexpr TrainerDefaults kTransformerEngine = {.zero = Zero::optimizer};

/// Megatron-LM to 2022 (Shoeybi et al. 2019, Narayanan et al. 2021, Korthikanti et al. 2022):
/// scores in memory, one fused kernel of scale, mask and softmax; dropout 0.1; fp16 gradients,
/// reduced after the last backward pass.
constexpr TrainerDefaults kMegatron = {.flash_attention = false,
                                       .sequence_parallel = false,
                                       .dropout = true,
                                       .overlap_gradients = false,
                                       .half_gradients = true};

// In this order; the first whose word occurs in the trainer's name.
constexpr std::array kTrainers = {
    // Megatron-Bridge and NeMo recipes: distributed optimizer, Transformer Engine's attention.
    Entry{"megatron-bridge", kTransformerEngine},
    Entry{"nemo", kTransformerEngine},
    Entry{"transformer engine", kTransformerEngine},
    Entry{"/ te", kTransformerEngine},
    Entry{"megatron-deepspeed", kMegatron},
    Entry{"megatron", kMegatron},
    // MaxText's base.yml: fully sharded over all devices, everything recomputed.
    Entry{"maxtext", {.zero = Zero::parameters, .recompute = Recompute::full}},
    Entry{"libai", kMegatron},
    // Llama 3 report, section 3.3.2: the first chunk holds the embedding alone, the last one the
    // output projection alone.
    Entry{"meta internal", {.one_layer_chunks = true}},
    // Composer and PyTorch FSDP in 2023: FlashAttention 1 and 2 or their Triton forms.
    Entry{"composer", {.old_attention = true}},
    Entry{"pytorch fsdp", {.old_attention = true}},
};

}  // namespace

TrainerDefaults trainer_defaults(const std::string& framework) {
  std::string name = framework;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Entry& entry : kTrainers) {
    if (name.find(entry.word) != std::string::npos) return entry.defaults;
  }
  return {};
}

}  // namespace braid
