#pragma once

#include <string>

namespace braid {

/// `braid validate` of measured serving runs: errors of TPOT and TTFT by engine, mode and system,
/// and why rows were not predicted. `text` is that of `file`. Returns the exit status.
int validate_serving(const std::string& text, const std::string& file, bool json);

/// `braid calibrate` of these: figures of each engine that the rows are of, printed, or written to
/// `out`, a folder, as ENGINE.yaml with all else as in the catalogue. With `cross_validate`, the
/// errors for each system from figures that were fitted to the others.
int calibrate_serving(const std::string& text, const std::string& file, const std::string& out,
                      bool cross_validate);

}  // namespace braid
