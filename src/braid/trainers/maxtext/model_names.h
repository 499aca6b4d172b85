#pragma once

#include <array>

#include "braid/trainers/exchange/model_names.h"

namespace braid {

/// Models of the catalogue that MaxText has by name (src/maxtext/configs/models); of several names
/// of one, export writes the first.
inline constexpr std::array<NamedModel, 23> kMaxtextModels = {
    {{"deepseek-v2", "deepseek2-236b"},
     {"deepseek-v3", "deepseek3-671b"},
     {"mistral-7b", "mistral-7b"},
     {"qwen3-235b-a22b", "qwen3-235b-a22b"},
     {"qwen3-30b-a3b", "qwen3-30b-a3b"},
     {"gemma-2-9b", "gemma2-9b"},
     {"gemma-7b", "gemma-7b"},
     {"gpt-oss-120b", "gpt-oss-120b"},
     {"gpt3-175b", "gpt3-175b"},
     {"kimi-k2", "kimi-k2-1t"},
     {"llama-2-13b", "llama2-13b"},
     {"llama-2-70b", "llama2-70b"},
     {"llama-2-7b", "llama2-7b"},
     {"llama-3-405b", "llama3-405b"},
     {"llama-3-405b", "llama3.1-405b"},
     {"llama-3-70b", "llama3-70b"},
     {"llama-3-70b", "llama3.1-70b"},
     {"llama-3-70b", "llama3.3-70b"},
     {"llama-3-8b", "llama3-8b"},
     {"llama-3-8b", "llama3.1-8b"},
     {"mixtral-8x22b", "mixtral-8x22b"},
     {"mixtral-8x7b", "mixtral-8x7b"},
     {"qwen3-8b", "qwen3-8b"}}};

}  // namespace braid
