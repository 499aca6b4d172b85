#include "braid/serve/served_names.h"

#include <array>
#include <cctype>

namespace braid {
namespace {

struct NamePair {
  std::string_view begins, name;
};

/// Beginnings of the last part of a path, without case; R1 and V3.1 have V3's shape, K2.5's
/// language model K2's.
constexpr std::array kModels = {
    NamePair{"deepseek-r1", "deepseek-v3"},
    NamePair{"deepseek-v3", "deepseek-v3"},
    NamePair{"deepseek-v2", "deepseek-v2"},
    NamePair{"llama-3.1-8b", "llama-3-8b"},
    NamePair{"llama-3.1-70b", "llama-3-70b"},
    NamePair{"llama-3.3-70b", "llama-3-70b"},
    NamePair{"llama-3.1-405b", "llama-3-405b"},
    NamePair{"gpt-oss-120b", "gpt-oss-120b"},
    NamePair{"qwen3-32b", "qwen3-32b"},
    NamePair{"qwen3-235b", "qwen3-235b-a22b"},
    NamePair{"qwen3-30b", "qwen3-30b-a3b"},
    NamePair{"qwen3-8b", "qwen3-8b"},
    NamePair{"qwen3.5-397b", "qwen3.5-397b-a17b"},
    NamePair{"minimax-m2", "minimax-m2.5"},
    NamePair{"kimi-k2", "kimi-k2"},
    NamePair{"glm-5", "glm-5"},
    NamePair{"mixtral-8x7b", "mixtral-8x7b"},
    NamePair{"mixtral-8x22b", "mixtral-8x22b"},
};
constexpr std::array kSystems = {
    NamePair{"a100_sxm", "dgx-a100"}, NamePair{"h100_sxm", "dgx-h100"},
    NamePair{"h200_sxm", "dgx-h200"}, NamePair{"b200_sxm", "dgx-b200"},
    NamePair{"b300_sxm", "dgx-b300"}, NamePair{"gb200", "gb200-nvl72"},
    NamePair{"gb300", "gb300-nvl72"},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::optional<std::string> served_name_of(std::string_view model_path) {
  const std::string name = lower(model_path.substr(model_path.rfind('/') + 1));
  for (const NamePair& pair : kModels) {
    if (name.starts_with(pair.begins)) return std::string(pair.name);
  }
  return std::nullopt;
}

std::optional<std::string> served_cluster_of(std::string_view system) {
  for (const NamePair& pair : kSystems) {
    if (system == pair.begins) return std::string(pair.name);
  }
  return std::nullopt;
}

std::string served_precision_of(const ServedRow& row) {
  if (!row.precision.empty()) return row.precision;
  const std::string path = lower(row.model);
  if (path.find("fp4") != std::string::npos) return "fp4";
  return path.find("fp8") != std::string::npos ? "fp8" : "bf16";
}

}  // namespace braid
