#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// Devices of one type as a text names them.
struct NamedHardware {
  std::string cluster;     ///< Of the catalogue.
  std::int64_t count = 0;  ///< 0: not said.
  bool nodes = false;      ///< The count is of nodes.
  friend bool operator==(const NamedHardware&, const NamedHardware&) = default;
};

/// Reads "A100-SXM4-80GB (Selene)", "12x V100 + 4x T4", "3x p3.8xlarge (V100) and 1 x g4dn.12xlarge
/// (T4)", "p3.8xlarge:3nodes+g4dn.12xlarge:1nodes": the types in the order of the text, each once.
/// Types are joined by + & , ; / and "and" outside of parentheses; a catalogue name of a cluster
/// counts before that of a chip, which stands for a cluster that it is usually found in; chips of
/// one family are several types only where it is said how many there are of each. Parts without a
/// known name are passed over. Empty: nothing is known.
std::vector<NamedHardware> named_hardware(std::string_view text);

/// "v100" for clusters with any V100.
std::string chip_family(const std::string& cluster);

}  // namespace braid
