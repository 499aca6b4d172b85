#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "braid/serve/served_rows.h"

namespace braid {

// What names say that others have for models and clusters (data/serving/checkpoints.yaml).

/// The model that a path as "deepseek-ai/DeepSeek-R1" speaks of, as load_served_model() takes it,
/// or such a name itself with a precision behind it, "llama-3-70b-fp4"; nullopt: unknown.
std::optional<std::string> served_name_of(std::string_view model_path);

/// The longest sequence of that checkpoint where it is not the model's; 0: the model's.
std::int64_t positions_of_checkpoint(std::string_view model_path);

/// The cluster that "h100_sxm" speaks of, as load_system() takes it; nullopt: unknown.
std::optional<std::string> served_cluster_of(std::string_view system);

/// In what the weights of a checkpoint are.
struct NamedPrecision {
  std::string precision;  ///< As ServingFormat::name.
  std::string why;        ///< For people: "by the model's name".
};
/// What its name says, else what it is published in, else bf16.
NamedPrecision precision_of_checkpoint(std::string_view model_path);

/// A row's precision, or its checkpoint's where it says none.
std::string served_precision_of(const ServedRow& row);

}  // namespace braid
