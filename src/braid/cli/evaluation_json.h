#pragma once

#include "braid/base/json.h"
#include "braid/evaluate/evaluation.h"

namespace braid {

/// What `braid evaluate --json` prints: {fits, misfit, yours, best, status, changes, …}; what there
/// is none of is null.
Json to_json(const ConfigurationEvaluation& evaluation);

}  // namespace braid
