#pragma once

#include <string>
#include <vector>

#include "braid/base/json.h"
#include "braid/validate/accuracy.h"

namespace braid {

/// What `braid validate --json` prints (docs/file-formats.md, "Accuracy"): groups, what could not
/// be predicted and why, and each run's prediction with its breakdown.
Json accuracy_to_json(const std::vector<MeasuredRun>& runs,
                      const std::vector<Prediction>& predictions,
                      const std::vector<std::string>& columns,
                      const std::vector<AccuracyGroup>& groups);

}  // namespace braid
