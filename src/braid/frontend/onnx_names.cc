#include "braid/frontend/onnx_names.h"

#include <unordered_set>

#include <fmt/format.h>

#include "braid/base/index.h"

namespace braid {
namespace {

const std::string& own_name(const OnnxModel& model, const OnnxNode& node) {
  if (!node.name.empty()) return node.name;
  for (const OnnxValueId output : node.outputs) {
    if (output >= 0) return model.values[at(output)];
  }
  return model.operations[at(node.operation)].name;
}

}  // namespace

std::vector<std::string> node_names(const OnnxModel& model) {
  std::vector<std::string> names;
  names.reserve(model.nodes.size());
  std::unordered_set<std::string> taken;
  taken.reserve(model.nodes.size());
  std::int64_t repeated = 0;
  for (const OnnxNode& node : model.nodes) {
    std::string name = own_name(model, node);
    for (const std::string base = name; !taken.insert(name).second;) {
      name = fmt::format("{}#{}", base, ++repeated);
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace braid
