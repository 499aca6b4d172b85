#pragma once

#include <string>
#include <vector>

namespace braid::test {

/// What a run of the braid program left behind.
struct Ran {
  int status = -1;  ///< Exit status; 128 + signal when it was killed.
  std::string out;
  std::string err;
};

/// Runs the program at the path words[0] with the other words as arguments (no shell), in the
/// folder or, where that is empty, in the current one.
Ran run_program(std::vector<std::string> words, const std::string& folder = {});

/// Runs braid with these arguments.
Ran run_braid(const std::vector<std::string>& arguments, const std::string& folder = {});

/// The same in this process, for tests that run thousands of commands. A crash ends the test
/// program.
Ran run_braid_here(const std::vector<std::string>& arguments);

}  // namespace braid::test
