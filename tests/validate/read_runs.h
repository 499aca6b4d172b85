#pragma once

#include <string>

#include "braid/base/file.h"
#include "braid/validate/measured_run.h"

namespace braid::test {

/// The measured runs of a file.
inline MeasuredRuns read_runs(const std::string& path) {
  return parse_measured_runs(read_file(path), path);
}

}  // namespace braid::test
