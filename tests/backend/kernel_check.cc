#include "backend/kernel_check.h"

#include <fmt/format.h>

#include "braid/backend/executor.h"
#include "braid/backend/measure/kernel_problem.h"
#include "braid/base/index.h"

namespace braid {
namespace {

void check_match(const BackendPattern& pattern, const std::string& name, const KernelJob& job,
                 KernelCheck& check) {
  if (!pattern.accepts(job) || !can_lie(job, pattern.layouts)) return;
  const std::unique_ptr<ComputeKernel> kernel = pattern.make(job);
  if (kernel == nullptr) {
    ++check.refused[name];
    return;
  }
  const std::string differs = kernel_problem(*kernel, job, pattern.layouts, random_answer(job, 17));
  if (differs.empty()) {
    ++check.right[name];
  } else {
    check.wrong.push_back(fmt::format("{}: {}: {}", name, job_text(job), differs));
  }
}

}  // namespace

void check_kernels(const Program& program, const std::vector<DenseTensor>& inputs,
                   const std::vector<FoundBackend>& backends, KernelCheck& check) {
  const std::vector<TensorForm> forms = forms_of(program, inputs);
  const ProgramOpGraph graph = op_graph_of(program);
  const PatternMatcher matcher(graph.graph);
  for (const FoundBackend& found : backends) {
    if (!found.backend) continue;
    const auto check_one = [&](const BackendPattern& pattern, const PatternMatch& match) {
      if (reads_itself(match) || graph.program_value[at(match.nodes.back())] < 0) return;
      check_match(pattern, fmt::format("{}: {}", found.name, pattern.name),
                  kernel_job(program, graph, match, forms), check);
    };
    for (const BackendPattern& pattern : found.backend->patterns) {
      for (std::size_t root = 0; root < graph.graph.nodes.size(); ++root) {
        for (const PatternMatch& match :
             matcher.matches(pattern.pattern, static_cast<std::int32_t>(root))) {
          check_one(pattern, match);
        }
      }
    }
    for (const GeneratedPatterns& each : found.backend->generated) {
      for (const PatternMatch& match : generated_matches(graph.graph, each.rule)) {
        for (const BackendPattern& pattern : each.patterns) check_one(pattern, match);
      }
    }
  }
}

}  // namespace braid
