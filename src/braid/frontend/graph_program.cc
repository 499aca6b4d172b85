#include "braid/frontend/graph_program.h"

#include "braid/frontend/graph_translator.h"

namespace braid {

Program program_from_graph(const Graph& graph) {
  return GraphTranslator(graph, false).program().program;
}

LayeredProgram layered_program(const Graph& graph, AttentionForm attention) {
  return GraphTranslator(graph, true, attention).program();
}

double weight_bytes(const Program& program) {
  double bytes = 0;
  for (const ProgramValue& each : program.values) {
    if (each.constant) bytes += static_cast<double>(each.constant->data.size());
  }
  for (const MissingWeight& each : program.missing) {
    bytes +=
        static_cast<double>(element_count(each.shape)) * static_cast<double>(bytes_of(each.type));
  }
  return bytes;
}

}  // namespace braid
