#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph/model_shape.h"

namespace braid {

/// A model that torchtitan has, by the names in its registries.
struct TorchtitanModel {
  std::string_view name, flavor;  ///< "llama3", "8B"
  ModelShape shape;               ///< What torchtitan builds.
  /// 0.2.2 divides it into pipeline stages, and its sequence over ranks.
  bool has_pipelines = false, has_context_parallelism = false;
  bool older = true;         ///< 0.2.2 has it; else only later versions.
  std::int64_t longest = 0;  ///< Sequence that later versions take.
};

/// The flavors of torchtitan 0.2.2 and of its main branch of August 2026 that braid has shapes for,
/// but for the tiny ones of its tests (torchtitan/models/*/__init__.py).
std::span<const TorchtitanModel> torchtitan_models();

/// The flavor whose operators are those of `shape`: every size and every part counts. nullptr:
/// there is none.
const TorchtitanModel* torchtitan_model_of(const ModelShape& shape);
/// The flavor by its names; nullptr: there is none.
const TorchtitanModel* torchtitan_model_called(std::string_view name, std::string_view flavor);

/// In what the flavor differs from `shape` that costs neither time nor memory ("rotary base
/// 5000000", "rotary scaling"); empty: in nothing.
std::vector<std::string> torchtitan_differences(const TorchtitanModel& model,
                                                const ModelShape& shape);

/// "llama3 (8B, 70B, 405B), …"; `older`: of 0.2.2 alone.
std::string torchtitan_model_names(bool older);

}  // namespace braid
