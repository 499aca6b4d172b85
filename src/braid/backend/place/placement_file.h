#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "braid/backend/place/place_program.h"
#include "braid/base/document.h"

namespace braid {

/// A placement with all that is needed to run it again.
struct PlacementFile {
  // The model, as load_program() takes it.
  std::string model;
  std::map<std::string, std::int64_t> dims;
  std::int64_t seq_len = 0, layers = 0;
  std::uint64_t seed = 1;  ///< Of weights that the model does not bring, and of inputs.

  std::int64_t threads = 1;
  std::string machine;                              ///< machine_name() where it was made.
  std::map<std::string, std::string> versions;      ///< Of the backends that it uses.
  ProgramPlacement placement;                       ///< Its groups and predicted time.
  std::vector<std::vector<std::string>> operators;  ///< Names of each group's nodes.
  std::optional<Measurement> measured;              ///< Of whole runs.
};

/// JSON, as docs/placing.md describes it.
std::string placement_text(const PlacementFile& file);

/// Throws Error, with the line: no such file, fields that are missing or cannot be.
PlacementFile read_placement_file(const std::string& path);
PlacementFile placement_from_json(const Value& root);

/// Throws Error where the program is not the one that was placed (its nodes have other names), or a
/// backend is missing or of another version. `path` is for messages.
void check_placement(const PlacementFile& file, const FixedProgram& fixed,
                     const std::vector<FoundBackend>& backends, const std::string& path);

}  // namespace braid
