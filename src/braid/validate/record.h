#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/validate/accuracy.h"

namespace braid {

/// How accurate predictions of a file of runs were, by dataset, as a CSV file to keep beside it:
/// dataset, runs, mean_error and memory_error (shares; empty where nothing was measured), and
/// not_predicted, the lines (separated by spaces) of runs that could not be predicted.
std::string accuracy_record(const std::vector<MeasuredRun>& runs,
                            const std::vector<Prediction>& predictions);

/// Where predictions have become worse than a record says, one line each: a dataset's mean error of
/// time or memory has grown by more than a tenth (errors below a thousandth count as one), a run
/// that was predicted is so no more, or a dataset has lost runs or is not recorded. Empty when all
/// is as good as it was. Throws Error for a record that is none.
std::vector<std::string> worse_than_record(std::string_view record, const std::string& file,
                                           const std::vector<MeasuredRun>& runs,
                                           const std::vector<Prediction>& predictions);

}  // namespace braid
