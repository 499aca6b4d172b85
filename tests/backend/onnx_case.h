#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "braid/program/tensor_difference.h"

namespace braid {

/// The outcome of the cases of a folder of ONNX's test data.
struct OnnxCaseCounts {
  int cases = 0, of_known_operations = 0, left_out_of_known = 0;
  std::vector<std::string> passed;
  std::map<std::string, int> unknown_operations;  ///< By how many cases have them.
  std::map<std::string, std::string> left_out;    ///< Why cases did not run, by name.
  std::vector<std::string> failures;
};

enum class Expectations : std::uint8_t {
  given,
  spoiled,  ///< One element of each expected tensor is changed: no case may pass.
};

struct CaseRules {
  Tolerance tolerance;
  Expectations expectations = Expectations::given;
};

/// Runs every case (a folder with model.onnx and test_data_set_*) below `folder`.
OnnxCaseCounts run_onnx_cases(const std::filesystem::path& folder, const CaseRules& rules);

}  // namespace braid
