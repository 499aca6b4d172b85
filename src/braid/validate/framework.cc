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

// In this order; the first whose word occurs in the trainer's name.
constexpr std::array kTrainers = {
    // Megatron-Bridge and NeMo recipes: distributed optimizer, Transformer Engine's attention.
    Entry{"megatron-bridge", {true, true, Zero::optimizer, false, Recompute::none, true, false}},
    Entry{"nemo", {true, true, Zero::optimizer, false, Recompute::none, true, false}},
    Entry{"transformer engine", {true, true, Zero::optimizer, false, Recompute::none, true, false}},
    Entry{"/ te", {true, true, Zero::optimizer, false, Recompute::none, true, false}},
    Entry{"megatron-deepspeed", {false, false, Zero::none, true, Recompute::none, false, true}},
    // Megatron-LM to 2022 (Shoeybi et al. 2019, Narayanan et al. 2021, Korthikanti et al. 2022):
    // scores in memory, one fused kernel of scale, mask and softmax; dropout 0.1; fp16
    // gradients, reduced after the last backward pass.
    Entry{"megatron", {false, false, Zero::none, true, Recompute::none, false, true}},
    // MaxText's base.yml: fully sharded over all devices, everything recomputed.
    Entry{"maxtext", {true, true, Zero::parameters, false, Recompute::full, true, false}},
    Entry{"libai", {false, false, Zero::none, true, Recompute::none, false, true}},
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
