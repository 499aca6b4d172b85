#include <fmt/format.h>

#include "braid/backend/place/placement_file.h"
#include "braid/base/error.h"

namespace braid {

void check_placement(const PlacementFile& file, const FixedProgram& fixed,
                     const std::vector<FoundBackend>& backends, const std::string& path) {
  const std::vector<ProgramNode>& nodes = fixed.program.nodes;
  std::vector<int> times(nodes.size(), 0);
  for (const PlacedTurn& turn : file.placement.turns) {
    const auto value = static_cast<std::size_t>(turn.value);
    if (value < fixed.forms.size() && turn.from != turn.to &&
        can_lie(fixed.forms[value], turn.from) && can_lie(fixed.forms[value], turn.to)) {
      continue;
    }
    throw Error({path, 0, "turns"}, fmt::format("value {} cannot be turned so", turn.value),
                "place the model again");
  }
  for (std::size_t g = 0; g < file.operators.size(); ++g) {
    const PlacedGroup& group = file.placement.groups[g];
    for (std::size_t i = 0; i < group.nodes.size(); ++i) {
      const auto node = static_cast<std::size_t>(group.nodes[i]);
      if (node >= nodes.size() || nodes[node].name != file.operators[g][i]) {
        throw Error({path, 0, fmt::format("groups[{}]", g)},
                    fmt::format("{} is not operator {} of the model", file.operators[g][i], node),
                    "the model has changed: place it again");
      }
      ++times[node];
    }
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (times[n] == 1) continue;
    throw Error({path, 0, "groups"}, fmt::format("{} is in {} groups", nodes[n].name, times[n]),
                "each operator is in one");
  }
  for (const auto& [name, version] : file.versions) {
    const FoundBackend* found = nullptr;
    for (const FoundBackend& each : backends) {
      if (each.name == name) found = &each;
    }
    if (found == nullptr || !found->backend) {
      throw Error({path, 0, "backends"},
                  fmt::format("{} is not here{}{}", name, found == nullptr ? "" : ": ",
                              found == nullptr ? "" : found->missing),
                  "place the model again");
    }
    if (found->backend->version != version) {
      throw Error({path, 0, "backends"},
                  fmt::format("{} was {} and is {} now", name, version, found->backend->version),
                  "place the model again");
    }
  }
}

}  // namespace braid
