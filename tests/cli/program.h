#pragma once

#include <string>
#include <vector>

namespace braid::testing {

/// What a run of the braid program left behind.
struct Ran {
  int status = -1;  ///< Exit status; 128 + signal when it was killed.
  std::string out;
  std::string err;
};

/// Runs the program with these arguments (no shell).
Ran run_braid(const std::vector<std::string>& arguments);

}  // namespace braid::testing
