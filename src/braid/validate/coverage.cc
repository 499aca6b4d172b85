#include "braid/validate/coverage.h"

#include <cmath>
#include <map>

#include "braid/base/parallel.h"
#include "braid/trust/interval.h"

namespace braid {
namespace {

struct OneRun {
  bool inside = false, inside_left_out = false;
  double width = 0, width_left_out = 0;
};

bool holds(const ErrorInterval& interval, double error) {
  return std::exp(error) >= interval.low && std::exp(error) <= interval.high;
}

OneRun check(const RunError& run, const Evidence& runs) {
  OneRun result;
  const auto others = [&](const RunError& other) { return &other != &run; };
  const auto strangers = [&](const RunError& other) { return other.source != run.source; };
  if (const auto interval = time_interval(run.traits, runs, others)) {
    result.inside = holds(*interval, run.error);
    result.width = interval->width();
  }
  if (const auto interval = time_interval(run.traits, runs, strangers)) {
    result.inside_left_out = holds(*interval, run.left_out);
    result.width_left_out = interval->width();
  }
  return result;
}

void add(const OneRun& run, SourceCoverage& sum) {
  ++sum.runs;
  sum.covered += run.inside ? 1 : 0;
  sum.covered_left_out += run.inside_left_out ? 1 : 0;
  sum.width += run.width;
  sum.width_left_out += run.width_left_out;
}

void divide(SourceCoverage& sum) {
  const auto runs = static_cast<double>(sum.runs);
  for (double* const figure :
       {&sum.covered, &sum.covered_left_out, &sum.width, &sum.width_left_out}) {
    *figure /= runs;
  }
}

}  // namespace

std::vector<SourceCoverage> coverage_of(const Evidence& runs) {
  std::vector<OneRun> checked(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) { checked[i] = check(runs[i], runs); });
  std::map<std::string, SourceCoverage> sources;
  SourceCoverage all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SourceCoverage& source = sources[runs[i].source];
    source.source = runs[i].source;
    add(checked[i], source);
    add(checked[i], all);
  }
  std::vector<SourceCoverage> result;
  result.reserve(sources.size() + 1);
  for (auto& [name, source] : sources) result.push_back(std::move(source));
  result.push_back(std::move(all));
  for (SourceCoverage& source : result) divide(source);
  return result;
}

}  // namespace braid
