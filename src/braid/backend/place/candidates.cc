#include "braid/backend/place/candidates.h"

#include <algorithm>
#include <map>
#include <numeric>
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

/// What the rules of backends generate for a graph, by root.
class GeneratedMatches {
 public:
  GeneratedMatches(const ProgramOpGraph& graph, const std::vector<const Backend*>& backends) {
    for (const Backend* backend : backends) {
      for (const GeneratedPatterns& each : backend->generated) {
        for (PatternMatch& match : generated_matches(graph.graph, each.rule)) {
          const std::int32_t root = match.nodes.back();
          matches_[{&each, root}].push_back(std::move(match));
        }
      }
    }
  }

  const std::vector<PatternMatch>& of(const GeneratedPatterns& generated, std::int32_t root) const {
    static const std::vector<PatternMatch> none;
    const auto found = matches_.find({&generated, root});
    return found == matches_.end() ? none : found->second;
  }

 private:
  std::map<std::pair<const GeneratedPatterns*, std::int32_t>, std::vector<PatternMatch>> matches_;
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
  const GeneratedMatches generated(graph, all);
  for (std::size_t root = 0; root < graph.graph.nodes.size(); ++root) {
    // Kernels of patterns give one value.
    if (graph.program_node[root] < 0 || graph.program_value[root] < 0) continue;
    for (const Backend* backend : all) {
      for (const BackendPattern& pattern : backend->patterns) {
        for (PatternMatch& match :
             matcher.matches(pattern.pattern, static_cast<std::int32_t>(root))) {
          candidates.add(*backend, pattern, std::move(match));
        }
      }
      for (const GeneratedPatterns& each : backend->generated) {
        for (const PatternMatch& match : generated.of(each, static_cast<std::int32_t>(root))) {
          for (const BackendPattern& pattern : each.patterns) {
            candidates.add(*backend, pattern, match);
          }
        }
      }
    }
  }
  for (std::size_t n = 0; n < fixed.program.nodes.size(); ++n) {
    candidates.list.push_back({nullptr, nullptr, {}, {static_cast<NodeId>(n)}, {}});
  }
  return std::move(candidates.list);
}

KernelJob candidate_job(const FixedProgram& fixed, const ProgramOpGraph& graph,
                        const KernelCandidate& candidate) {
  return candidate.is_region() ? region_job(fixed.program, candidate.nodes, fixed.forms)
                               : kernel_job(fixed.program, graph, candidate.match, fixed.forms);
}

namespace {

/// By number of nodes before it, how many values go from there to what is behind.
std::vector<std::int64_t> values_crossing(const Program& program) {
  const std::size_t count = program.nodes.size();
  std::vector<std::size_t> made(program.values.size(), 0), last(program.values.size(), 0);
  for (std::size_t n = 0; n < count; ++n) {
    for (const ValueId input : program.nodes[n].inputs) {
      if (input >= 0 && !program.values[at(input)].constant) last[at(input)] = n;
    }
    for (const ValueId output : program.nodes[n].outputs) {
      if (output >= 0) made[at(output)] = n + 1;
    }
  }
  // A value crosses the places behind its maker up to its last reader.
  std::vector<std::int64_t> crossing(count + 1, 0);
  for (std::size_t v = 0; v < made.size(); ++v) {
    for (std::size_t place = made[v]; place <= last[v]; ++place) ++crossing[place];
  }
  return crossing;
}

}  // namespace

std::vector<std::size_t> cut_places(const Program& program, std::int64_t parts) {
  const std::size_t count = program.nodes.size();
  const std::vector<std::int64_t> crossing = values_crossing(program);
  std::set<std::size_t> places{0, count};
  for (std::int64_t part = 1; part < parts; ++part) {
    const std::size_t wanted = count * at(part) / at(parts);
    std::size_t nearest = 0;
    for (std::size_t place = 1; place < count; ++place) {
      const auto distance = [&](std::size_t p) { return p < wanted ? wanted - p : p - wanted; };
      if (crossing[place] == 1 && distance(place) < distance(nearest)) nearest = place;
    }
    places.insert(nearest);
  }
  return {places.begin(), places.end()};
}

std::vector<KernelCandidate> region_candidates(const FixedProgram& fixed,
                                               const std::vector<FoundBackend>& backends,
                                               const std::vector<std::size_t>& places) {
  std::vector<KernelCandidate> candidates;
  for (std::size_t from = 0; from + 1 < places.size(); ++from) {
    for (std::size_t to = from + 1; to < places.size(); ++to) {
      KernelCandidate candidate;
      candidate.nodes.resize(places[to] - places[from]);
      std::iota(candidate.nodes.begin(), candidate.nodes.end(), static_cast<NodeId>(places[from]));
      const KernelJob job = region_job(fixed.program, candidate.nodes, fixed.forms);
      for (const FoundBackend& found : backends) {
        if (!found.backend) continue;
        for (const BackendPattern& region : found.backend->regions) {
          if (region.is_whole_alone || !region.accepts(job)) continue;
          candidate.backend = &*found.backend;
          candidate.pattern = &region;
          candidates.push_back(candidate);
        }
      }
    }
  }
  return candidates;
}

}  // namespace braid
