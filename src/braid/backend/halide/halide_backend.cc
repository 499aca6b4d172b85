#include "braid/backend/halide/halide_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/halide/halide_module.h"
#include "braid/backend/kernel/program_module.h"
#include "braid/backend/kernel/shared_library.h"
#include "braid/backend/pattern/operator_class.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// More are rarely one after the other, and take long to compile.
constexpr std::size_t kMostNodes = 12;

bool is_anchor(OperatorClass each) {
  return each == OperatorClass::fusable || each == OperatorClass::reduction;
}

/// A kernel is a chain of what works element by element and of movements with one product,
/// convolution or computation of rows in it.
PatternRule fusion_rule(const HalideModule& module) {
  const auto class_of = [](const OpGraph& graph, std::int32_t node) {
    return operator_class(graph.nodes[at(node)].operation);
  };
  PatternRule rule;
  rule.most_nodes = kMostNodes;
  rule.absorbs_movements = true;
  rule.takes = [m = &module](const OpGraph& graph, std::int32_t node) {
    const OpNode& each = graph.nodes[at(node)];
    return each.kind == OpNode::Kind::operation && m->knows(each.operation);
  };
  rule.fuses = [takes = rule.takes, class_of](const OpGraph& graph, const NodeList& nodes,
                                              const NodeList& more) {
    const auto anchors = [&](const NodeList& list) {
      return std::count_if(list.begin(), list.end(),
                           [&](std::int32_t node) { return is_anchor(class_of(graph, node)); });
    };
    return std::all_of(more.begin(), more.end(),
                       [&](std::int32_t node) { return takes(graph, node); }) &&
           anchors(nodes) + anchors(more) <= 1;
  };
  return rule;
}

/// The product or convolution of a job; nullptr where there is none.
const ProgramNode* tiled_node(const KernelJob& job) {
  for (const ProgramNode& node : job.region.nodes) {
    if (node.operation == "MatMul" || node.operation == "Gemm" || node.operation == "Conv") {
      return &node;
    }
  }
  return nullptr;
}

/// For jobs without product or convolution.
BackendPattern untiled_pattern(const HalideModule& module) {
  return {"fused", any(),
          [m = &module](const KernelJob& job) {
            return tiled_node(job) == nullptr && m->computes(job);
          },
          [m = &module](const KernelJob& job) { return m->kernel(job, {}); }};
}

BackendPattern tiled_pattern(const HalideModule& module, const HalideTile& tile) {
  return {fmt::format("fused {}x{}", tile.vectors, tile.rows), any(),
          [m = &module, tile](const KernelJob& job) {
            const ProgramNode* node = tiled_node(job);
            return node != nullptr && m->computes(job) &&
                   m->suits(tile, job.form(node->outputs.front()).shape);
          },
          [m = &module, tile](const KernelJob& job) { return m->kernel(job, tile); }};
}

}  // namespace

FoundBackend halide_backend(const BackendOptions& options) {
  const std::string path = module_path("braid-halide.so", BRAID_MODULE_FOLDER);
  const SharedLibrary library(path);
  const auto module_of = library.function<HalideModuleFunction>("braid_halide_module");
  if (module_of == nullptr) {
    return {"halide", std::nullopt,
            (library.is_loaded() ? path + " lacks a function" : library.problem()) +
                "; install libhalide14-0"};
  }
  const HalideModule& module = *module_of(options.threads);
  Backend backend{"halide", module.version(), {}};
  GeneratedPatterns generated{fusion_rule(module), {untiled_pattern(module)}};
  for (const HalideTile& tile : module.tiles()) {
    generated.patterns.push_back(tiled_pattern(module, tile));
  }
  backend.generated.push_back(std::move(generated));
  return {"halide", std::move(backend), {}};
}

}  // namespace braid
