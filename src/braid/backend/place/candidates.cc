#include "braid/backend/place/candidates.h"

#include <algorithm>

#include "braid/base/index.h"

namespace braid {

std::vector<KernelCandidate> kernel_candidates(const FixedProgram& fixed,
                                               const ProgramOpGraph& graph,
                                               const std::vector<FoundBackend>& backends) {
  std::vector<KernelCandidate> candidates;
  const PatternMatcher matcher(graph.graph);
  for (std::size_t root = 0; root < graph.graph.nodes.size(); ++root) {
    if (graph.program_node[root] < 0) continue;
    for (const FoundBackend& found : backends) {
      if (!found.backend) continue;
      for (const BackendPattern& pattern : found.backend->patterns) {
        for (PatternMatch& match :
             matcher.matches(pattern.pattern, static_cast<std::int32_t>(root))) {
          if (reads_itself(match) ||
              !pattern.accepts(kernel_job(fixed.program, graph, match, fixed.forms)))
            continue;
          KernelCandidate candidate{&*found.backend, &pattern, std::move(match), {}};
          for (const std::int32_t node : candidate.match.nodes) {
            if (graph.program_node[at(node)] >= 0) {
              candidate.nodes.push_back(graph.program_node[at(node)]);
            }
          }
          std::sort(candidate.nodes.begin(), candidate.nodes.end());
          candidates.push_back(std::move(candidate));
        }
      }
    }
  }
  for (std::size_t n = 0; n < fixed.program.nodes.size(); ++n) {
    candidates.push_back({nullptr, nullptr, {}, {static_cast<NodeId>(n)}});
  }
  return candidates;
}

}  // namespace braid
