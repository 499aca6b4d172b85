#pragma once

#include <string>
#include <vector>

#include "cli/program.h"

namespace braid::test {

/// As run_braid(), in this process, for tests that run thousands of commands. A crash ends the test
/// program.
Ran run_braid_here(const std::vector<std::string>& arguments);

}  // namespace braid::test
