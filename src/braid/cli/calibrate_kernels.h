#pragma once

#include <string>

namespace braid {

struct KernelCalibration {
  std::string tables;  ///< A folder of tables.
  std::string source;  ///< Whose measurements.
  std::string out;     ///< A folder for the figures; empty: they are not written.
  bool json = false;
};

/// Fits kernel figures to tables, writes a file for each chip and prints how far off they are. An
/// exit status of verbs.h.
int calibrate_kernels(const KernelCalibration& options);

}  // namespace braid
