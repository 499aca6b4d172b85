#include "braid/report/html_stage_graph.h"

#include <fmt/format.h>

#include "braid/plan/names.h"
#include "braid/report/row_lanes.h"

namespace braid {
namespace {

/// Rows that hand over to each other, each pair once.
RowEdges row_edges(const Plan& plan, const std::vector<std::size_t>& drawn) {
  std::vector<std::size_t> row_of(plan.stages.size(), drawn.size());
  for (std::size_t r = 0; r < drawn.size(); ++r) row_of[drawn[r]] = r;
  RowEdges edges;
  for (const ChunkEdge& edge : chunk_edges(plan)) {
    const std::size_t from = row_of[static_cast<std::size_t>(edge.source_stage)];
    const std::size_t to = row_of[static_cast<std::size_t>(edge.target_stage)];
    // What goes round from the last stage to the first is not drawn.
    if (from < to && to < drawn.size()) edges.insert({from, to});
  }
  return edges;
}

std::string title_of(const Plan& plan, std::size_t stage,
                     const std::vector<std::size_t>& successors) {
  const Parallelism form = form_of(plan, stage);
  std::size_t layers = 0;
  for (const Chunk& chunk : plan.stages[stage].chunks) layers += chunk.layers.size();
  std::string text =
      fmt::format("stage {}: {} {}, dp {} tp {} cp {}, micro-batches of {}", stage + 1, layers,
                  layers == 1 ? "layer" : "layers", form.dp, form.tp, form.cp, form.micro_batch);
  const std::string order = own_order_text(plan.stages[stage]);
  if (!order.empty()) text += ", " + order;
  for (std::size_t i = 0; i < successors.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "; hands over to " : ", ", successors[i] + 1);
  }
  return text;
}

}  // namespace

StageGraphDrawing stage_graph_drawing(const Plan& plan, const std::vector<std::size_t>& drawn) {
  StageGraphDrawing drawing;
  const RowEdges edges = row_edges(plan, drawn);
  drawing.lanes = lanes_of(drawn.size(), edges);
  drawing.edges.assign(edges.begin(), edges.end());
  std::vector<std::vector<std::size_t>> successors(drawn.size());
  for (const auto& [from, to] : edges) successors[from].push_back(drawn[to]);
  for (std::size_t r = 0; r < drawn.size(); ++r) {
    drawing.titles.push_back(title_of(plan, drawn[r], successors[r]));
  }
  return drawing;
}

}  // namespace braid
