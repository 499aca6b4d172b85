#pragma once

#include <string>

namespace braid {

/// `braid validate` of measured serving runs: errors of TPOT and TTFT by engine, mode and system,
/// how many times lie in their intervals, and why rows were not predicted. `text` is that of
/// `file`. Returns the exit status.
int validate_serving(const std::string& text, const std::string& file, bool json);

/// Where `braid calibrate` of serving runs writes.
struct ServingCalibration {
  std::string out;       ///< Folder; empty: engines' files are printed.
  std::string evidence;  ///< File of how far off each held-out run is; empty: none.
  bool cross_validate = false;
};

/// `braid calibrate` of these: what is fitted to each engine that the rows are of, as ENGINE.yaml
/// with all else as in the catalogue. With `cross_validate`, errors of rows whose configuration
/// nothing was fitted to, and how many of these lie in their intervals.
int calibrate_serving(const std::string& text, const std::string& file,
                      const ServingCalibration& options);

}  // namespace braid
