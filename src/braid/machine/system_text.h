#pragma once

#include <string>

#include "braid/machine/fit_chip.h"
#include "braid/machine/machine_facts.h"
#include "braid/machine/measure_links.h"

namespace braid {

/// All that is known of a measured machine.
struct MeasuredMachine {
  MachineFacts facts;
  DeviceSplit split;
  FittedChip device;
  LinkFigures link;
  std::string libraries;  ///< "oneDNN 2.6.3, OpenBLAS 0.3.21".
  std::string messages;   ///< What was sent and how.
};

/// A cluster's file (docs/file-formats.md) of one node with the machine's devices, each figure with
/// its source. Reading it gives the figures to six digits.
std::string system_text(const MeasuredMachine& machine, const std::string& name);

}  // namespace braid
