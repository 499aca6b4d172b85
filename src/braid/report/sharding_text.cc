#include "braid/report/sharding_text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "braid/graph/graph_json.h"
#include "braid/graph/graph_json_names.h"

namespace braid {
namespace {

struct Use {
  const Option* option = nullptr;
  std::int32_t first = 0;  ///< Layer.
  int count = 0;
};

/// Options in use that say how they divide.
std::vector<Use> uses_of(const Plan& plan) {
  std::vector<Use> uses;
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Option& option =
            options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])];
        if (option.sharded.empty()) continue;
        auto use = std::find_if(uses.begin(), uses.end(),
                                [&](const Use& other) { return other.option == &option; });
        if (use == uses.end()) use = uses.insert(use, {&option, chunk.layers[i], 0});
        ++use->count;
      }
    }
  }
  return uses;
}

}  // namespace

std::vector<std::string> sharding_text(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Use& use : uses_of(plan)) {
    const std::string& layer = plan.profile.layers[static_cast<std::size_t>(use.first)].name;
    std::string& line =
        lines.emplace_back(fmt::format("{}x {} {}:", use.count, layer, use.option->name));
    const char* separator = " ";
    for (const ShardedOperator& op : use.option->sharded) {
      // Mostly "block0.mlp.up" of the layer "block0".
      const bool inside = op.name.rfind(layer + ".", 0) == 0;
      line += fmt::format("{}{} {}", separator, inside ? op.name.substr(layer.size() + 1) : op.name,
                          name_in(split_names, op.split));
      separator = ", ";
    }
  }
  return lines;
}

}  // namespace braid
