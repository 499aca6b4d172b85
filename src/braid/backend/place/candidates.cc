#include "braid/backend/place/candidates.h"

#include <algorithm>
#include <set>

#include "braid/backend/place/copies_backend.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Those that the kernels of some backend read or write.
std::set<ImageLayout> used_layouts(const std::vector<FoundBackend>& backends) {
  std::set<ImageLayout> used;
  for (const FoundBackend& found : backends) {
    if (!found.backend) continue;
    for (const BackendPattern& pattern : found.backend->patterns) {
      used.insert({pattern.layouts.reads, pattern.layouts.writes});
    }
  }
  return used;
}

/// Whether all that is read has the output's form, or is a constant of one element: others are
/// plain.
bool has_one_form(const KernelJob& job) {
  for (std::size_t leaf = 0; leaf < job.leaves.size(); ++leaf) {
    const bool is_constant = job.leaf_constant(leaf) != nullptr;
    if (is_constant ? job.leaf_form(leaf).count() != 1 : job.leaf_form(leaf) != job.output_form()) {
      return false;
    }
  }
  return true;
}

class CandidateList {
 public:
  CandidateList(const FixedProgram& fixed, const ProgramOpGraph& graph,
                const std::vector<FoundBackend>& backends)
      : fixed_(fixed), graph_(graph), used_(used_layouts(backends)) {}

  void add(const Backend& backend, const BackendPattern& pattern, PatternMatch match) {
    if (reads_itself(match)) return;
    const KernelJob job = kernel_job(fixed_.program, graph_, match, fixed_.forms);
    if (!pattern.accepts(job) || !can_lie(job, pattern.layouts)) return;
    KernelCandidate candidate{&backend, &pattern, std::move(match), {}, pattern.layouts};
    for (const std::int32_t node : candidate.match.nodes) {
      if (graph_.program_node[at(node)] >= 0) {
        candidate.nodes.push_back(graph_.program_node[at(node)]);
      }
    }
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
    list.push_back(candidate);
    if (!pattern.is_elementwise || !has_one_form(job)) return;
    for (const ImageLayout each : used_) {
      candidate.layouts = {each, each};
      if (each != ImageLayout::plain && can_lie(job, candidate.layouts)) list.push_back(candidate);
    }
  }

  std::vector<KernelCandidate> list;

 private:
  const FixedProgram& fixed_;
  const ProgramOpGraph& graph_;
  std::set<ImageLayout> used_;
};

}  // namespace

std::vector<KernelCandidate> kernel_candidates(const FixedProgram& fixed,
                                               const ProgramOpGraph& graph,
                                               const std::vector<FoundBackend>& backends) {
  CandidateList candidates(fixed, graph, backends);
  const PatternMatcher matcher(graph.graph);
  std::vector<const Backend*> all{&copies_backend()};
  for (const FoundBackend& found : backends) {
    if (found.backend) all.push_back(&*found.backend);
  }
  for (std::size_t root = 0; root < graph.graph.nodes.size(); ++root) {
    if (graph.program_node[root] < 0) continue;
    for (const Backend* backend : all) {
      for (const BackendPattern& pattern : backend->patterns) {
        for (PatternMatch& match :
             matcher.matches(pattern.pattern, static_cast<std::int32_t>(root))) {
          candidates.add(*backend, pattern, std::move(match));
        }
      }
    }
  }
  for (std::size_t n = 0; n < fixed.program.nodes.size(); ++n) {
    candidates.list.push_back({nullptr, nullptr, {}, {static_cast<NodeId>(n)}, {}});
  }
  return std::move(candidates.list);
}

}  // namespace braid
