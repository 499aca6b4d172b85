#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/system/system.h"

namespace braid {

class Value;

/// How near a chip and the network around it come to their published figures: what
/// `braid calibrate` fits. All are dimensionless but the two times.
struct Achieved {
  double matmul = 0, attention = 0, memory = 0;     ///< Efficiency's fractions.
  double kernel_launch_s = 0, host_operator_s = 0;  ///< Efficiency's times.
  double overlap_loss = 0;                          ///< Efficiency's; 0: none.
  double intra_node = 0;                            ///< NetworkLevel::efficiency inside the node.
  double inter_node = 0;     ///< NetworkLevel::efficiency of the first level above; 0: none.
  double narrow_matmul = 0;  ///< Efficiency's; 0: as matmul.
  friend bool operator==(const Achieved&, const Achieved&) = default;
};

/// Figures of a system's first group, and the other way round.
Achieved achieved_of(const System& system);
void apply(const Achieved& achieved, System& system);

/// Figures of one chip and how many runs they were fitted to.
struct CalibratedChip {
  std::string chip;  ///< Catalogue name.
  std::size_t runs = 0;
  Achieved achieved;
};

/// What a calibration file holds (docs/file-formats.md, "Calibration").
struct Calibration {
  std::string file;
  std::vector<CalibratedChip> chips;
};

/// Reads a file that `braid calibrate --out` wrote or a user did: at least chip names; a figure
/// that an entry lacks is 0 and means the catalogue's. Throws Error for one out of its range, a
/// chip twice, or no chip at all.
Calibration read_calibration(const std::string& path);
/// The same from the root of a document; `file` stays empty.
Calibration calibration_from(const Value& root);

/// The file's text. Reading it again gives the figures to five digits.
std::string calibration_text(const std::vector<CalibratedChip>& chips);

/// Puts the figures in place of the catalogue's in every group whose chip has an entry, and says so
/// in the provenance. The first level above nodes takes the least figure of the system's chips.
/// False when no chip of the system has an entry.
bool apply_calibration(const Calibration& calibration, System& system);

}  // namespace braid
