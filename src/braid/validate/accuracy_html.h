#pragma once

#include <string>
#include <vector>

#include "braid/validate/accuracy.h"

namespace braid {

/// One HTML page about how far off predictions are, which needs nothing else: the groups beside the
/// constant efficiency and the bound, predicted against measured, errors by hardware, tensor and
/// pipeline parallelism, micro-batch and sequence length, the ten worst runs with what their time
/// and memory are made of, and what could not be predicted. Groups are accuracy_by's by `columns`.
/// All text of the runs is escaped.
std::string accuracy_page(const std::vector<MeasuredRun>& runs,
                          const std::vector<Prediction>& predictions,
                          const std::vector<std::string>& columns,
                          const std::vector<AccuracyGroup>& groups);

}  // namespace braid
