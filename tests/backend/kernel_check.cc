#include "backend/kernel_check.h"

#include <cmath>

#include <fmt/format.h>

#include "braid/backend/executor.h"
#include "braid/base/error.h"
#include "braid/program/numbers.h"
#include "braid/program/random_tensor.h"

#include "backend/onnx_case.h"

namespace braid {
namespace {

double greatest_magnitude(const DenseTensor& tensor) {
  double most = 0;
  for (const double each : numbers_of<double>(tensor)) most = std::max(most, std::abs(each));
  return most;
}

/// f32 sums in another order: some units of the last place of the greatest terms.
std::string kernel_difference(Kernel& kernel, const KernelJob& job) {
  const std::vector<DenseTensor> inputs = random_inputs(job.region, 17);
  const DenseTensor expected = run(job.region, inputs).front();
  std::vector<const DenseTensor*> pointers;
  for (const DenseTensor& each : inputs) pointers.push_back(&each);
  DenseTensor output(expected.type, expected.shape);
  const Tolerance tolerance{1e-5, 1e-5 * greatest_magnitude(expected)};
  // Twice: what a kernel keeps must not change its answer.
  for (int time = 0; time < 2; ++time) {
    kernel.run(pointers, output);
    const std::string differs = difference(output, expected, tolerance);
    if (!differs.empty()) return differs;
  }
  return "";
}

void check_match(const BackendPattern& pattern, const std::string& name, const KernelJob& job,
                 KernelCheck& check) {
  if (!pattern.accepts(job)) return;
  const std::unique_ptr<Kernel> kernel = pattern.make(job);
  if (kernel == nullptr) {
    ++check.refused[name];
    return;
  }
  const std::string differs = kernel_difference(*kernel, job);
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
    for (const BackendPattern& pattern : found.backend->patterns) {
      for (std::size_t root = 0; root < graph.graph.nodes.size(); ++root) {
        for (const PatternMatch& match :
             matcher.matches(pattern.pattern, static_cast<std::int32_t>(root))) {
          check_match(pattern, fmt::format("{}: {}", found.name, pattern.name),
                      kernel_job(program, graph, match, forms), check);
        }
      }
    }
  }
}

}  // namespace braid
