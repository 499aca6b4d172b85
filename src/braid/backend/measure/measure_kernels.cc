#include "braid/backend/measure/measure_kernels.h"

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "braid/backend/measure/child_process.h"

namespace braid {
namespace {

/// A kernel that is right, and what it works on.
struct ReadyKernel {
  std::size_t trial = 0;
  std::unique_ptr<ComputeKernel> kernel;
  std::vector<DenseTensor> inputs;
  std::vector<const DenseTensor*> pointers;
  std::vector<DenseTensor> outputs;
  std::vector<DenseTensor*> written;
};

/// The reference kernels' answers for random numbers, by job_text(): rivals for one job are held
/// against one answer, which may take long.
using ReferenceAnswers = std::map<std::string, KnownAnswer>;

const KnownAnswer& reference_answer(const KernelJob& job, ReferenceAnswers& answers) {
  const std::string text = job_text(job);
  const auto known = answers.find(text);
  if (known != answers.end()) return known->second;
  return answers.emplace(text, random_answer(job, 1)).first->second;
}

/// Sets the finding where there is nothing to measure.
std::unique_ptr<ReadyKernel> ready_kernel(const KernelTrial& trial, ReferenceAnswers& answers,
                                          KernelFinding& finding) {
  auto ready = std::make_unique<ReadyKernel>();
  try {
    ready->kernel = trial.pattern->make(*trial.job);
    if (ready->kernel == nullptr) return nullptr;
    if (trial.known != nullptr) {
      ready->inputs = trial.known->inputs;
      finding.problem = region_problem(*ready->kernel, *trial.known);
    } else {
      const KnownAnswer& answer = reference_answer(*trial.job, answers);
      ready->inputs = answer.inputs;
      finding.problem = kernel_problem(*ready->kernel, *trial.job, trial.pattern->layouts, answer);
    }
  } catch (const std::exception& error) {
    finding.problem = error.what();
  }
  if (!finding.problem.empty()) return nullptr;
  ready->inputs = laid_inputs(*trial.job, trial.pattern->layouts, ready->inputs);
  for (const DenseTensor& each : ready->inputs) ready->pointers.push_back(&each);
  for (const ValueId output : trial.job->region.outputs) {
    const TensorForm& form = trial.job->form(output);
    ready->outputs.emplace_back(form.type, form.shape);
  }
  for (DenseTensor& each : ready->outputs) ready->written.push_back(&each);
  return ready;
}

std::vector<KernelFinding> measured_here(std::span<const KernelTrial> trials,
                                         const MeasureOptions& options) {
  std::vector<KernelFinding> findings(trials.size());
  std::vector<std::unique_ptr<ReadyKernel>> kernels;
  std::vector<std::function<void()>> tasks;
  ReferenceAnswers answers;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (auto ready = ready_kernel(trials[i], answers, findings[i])) {
      ready->trial = i;
      tasks.emplace_back([k = ready.get()] { k->kernel->run_all(k->pointers, k->written); });
      kernels.push_back(std::move(ready));
    }
  }
  const std::vector<Measurement> measured = measure(tasks, options);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    findings[kernels[k]->trial].measured = measured[k];
  }
  return findings;
}

// A line of text for each finding: a letter for its kind, then its figures or the problem.

std::string text_of(const std::vector<KernelFinding>& findings) {
  std::string text;
  for (const KernelFinding& each : findings) {
    if (each.measured) {
      const Measurement& m = *each.measured;
      text += fmt::format("m {:.17g} {:.17g} {:.17g} {:.17g} {} {} {}\n", m.median_s, m.low_s,
                          m.high_s, m.variance_s2, m.samples, m.outliers, m.runs_per_sample);
    } else {
      std::string problem = each.problem;
      std::replace(problem.begin(), problem.end(), '\n', ' ');
      text += problem.empty() ? "r\n" : "p " + problem + "\n";
    }
  }
  return text;
}

/// Nothing where the text is not whole: the child ended before it had written all.
std::vector<KernelFinding> findings_of(const std::string& text, std::size_t count) {
  std::vector<KernelFinding> findings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    KernelFinding finding;
    if (line.starts_with("p ")) {
      finding.problem = line.substr(2);
    } else if (line.starts_with("m ")) {
      Measurement m;
      std::istringstream figures(line.substr(2));
      figures >> m.median_s >> m.low_s >> m.high_s >> m.variance_s2 >> m.samples >> m.outliers >>
          m.runs_per_sample;
      if (!figures) return {};
      finding.measured = m;
    }
    findings.push_back(std::move(finding));
  }
  if (findings.size() != count) findings.clear();
  return findings;
}

}  // namespace

std::vector<KernelFinding> measure_kernels(std::span<const KernelTrial> trials,
                                           const MeasureOptions& options, double limit_s) {
  if (trials.empty()) return {};
  const ChildAnswer answer = run_in_child([&] { return text_of(measured_here(trials, options)); },
                                          limit_s * static_cast<double>(trials.size()));
  if (answer.problem.empty()) {
    std::vector<KernelFinding> findings = findings_of(answer.text, trials.size());
    if (!findings.empty()) return findings;
  }
  if (trials.size() == 1) {
    return {{std::nullopt, answer.problem.empty() ? "ended its process" : answer.problem, true}};
  }
  std::vector<KernelFinding> findings;
  for (const KernelTrial& trial : trials) {
    findings.push_back(measure_kernels(std::span(&trial, 1), options, limit_s).front());
  }
  return findings;
}

}  // namespace braid
