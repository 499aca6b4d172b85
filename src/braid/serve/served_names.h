#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/serve/served_rows.h"

namespace braid {

/// The model that a path as "deepseek-ai/DeepSeek-R1" speaks of, as load_served_model() takes it;
/// nullopt: unknown.
std::optional<std::string> served_name_of(std::string_view model_path);

/// The cluster that "h100_sxm" speaks of, as load_system() takes it; nullopt: unknown.
std::optional<std::string> served_cluster_of(std::string_view system);

/// A row's precision; where it says none what the checkpoint's name says, else bf16.
std::string served_precision_of(const ServedRow& row);

}  // namespace braid
