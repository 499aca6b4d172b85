#include "braid/backend/place/candidate_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "braid/backend/measure/measure_kernels.h"
#include "braid/backend/place/layout_backend.h"
#include "braid/base/index.h"

namespace braid {

CandidateCosts::CandidateCosts(const FixedProgram& fixed, const ProgramOpGraph& graph,
                               const std::vector<KernelCandidate>& candidates, CostStore* store,
                               const PlaceOptions& options, ProgramPlacement& result)
    : fixed_(fixed),
      graph_(graph),
      candidates_(candidates),
      store_(store),
      options_(options),
      result_(result),
      costs_s_(candidates.size(), std::nan("")),
      by_first_(fixed.program.nodes.size()),
      machine_(machine_name()) {
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const KernelCandidate& each = candidates[c];
    by_first_[at(each.nodes.front())].push_back(c);
    keys_.emplace_back(each.pattern, each.backend == nullptr
                                         ? std::string()
                                         : job_text(candidate_job(fixed, graph, each)));
  }
}

double CandidateCosts::cost_s(std::size_t candidate) {
  if (std::isnan(costs_s_[candidate])) find_costs(rivals_of(candidate));
  return costs_s_[candidate];
}

bool CandidateCosts::is_free(std::size_t candidate) {
  if (!std::isnan(costs_s_[candidate]) || candidates_[candidate].backend == nullptr) return true;
  return is_known(*candidates_[candidate].backend, keys_[candidate], &candidates_[candidate]);
}

double CandidateCosts::turning_s(const TensorForm& form, ImageLayout from, ImageLayout to) {
  if (!can_lie(form, from) || !can_lie(form, to)) return std::numeric_limits<double>::infinity();
  KernelJob job = turning_job(form);
  const Key key(&turning_pattern(from, to), job_text(job));
  if (!is_known(layout_backend(), key, nullptr)) {
    known_s_.emplace(key, std::numeric_limits<double>::infinity());
    measure_all({{key, store_key(layout_backend(), key), std::move(job), nullptr, {}}});
  }
  return known_s_.at(key);
}

std::int64_t CandidateCosts::kernels() const {
  std::set<Key> keys;
  for (const Key& each : keys_) {
    if (each.first != nullptr) keys.insert(each);
  }
  for (const auto& [key, cost_s] : known_s_) keys.insert(key);
  return static_cast<std::int64_t>(keys.size());
}

std::vector<std::size_t> CandidateCosts::rivals_of(std::size_t candidate) const {
  const KernelCandidate& asked = candidates_[candidate];
  std::vector<std::size_t> rivals;
  for (const std::size_t c : by_first_[at(asked.nodes.front())]) {
    const KernelCandidate& each = candidates_[c];
    const bool is_rival =
        asked.is_region() ? each.is_region() && each.nodes == asked.nodes : !each.is_region();
    if (is_rival) rivals.push_back(c);
  }
  return rivals;
}

void CandidateCosts::find_costs(const std::vector<std::size_t>& rivals) {
  std::vector<Unknown> unknown;
  std::vector<std::size_t> waiting;
  for (const std::size_t c : rivals) {
    const KernelCandidate& candidate = candidates_[c];
    if (candidate.backend == nullptr) {
      costs_s_[c] = fixed_.reference_s[at(candidate.nodes.front())];
      continue;
    }
    const Key& key = keys_[c];
    waiting.push_back(c);
    if (is_known(*candidate.backend, key, &candidate)) continue;
    known_s_.emplace(key, std::numeric_limits<double>::infinity());
    unknown.push_back({key, store_key(*candidate.backend, key),
                       candidate_job(fixed_, graph_, candidate), &candidate, std::nullopt});
    if (candidate.is_region()) unknown.back().known = answer_of(candidate);
  }
  measure_all(unknown);
  for (const std::size_t candidate : waiting) costs_s_[candidate] = known_s_.at(keys_[candidate]);
}

CostKey CandidateCosts::store_key(const Backend& backend, const Key& key) const {
  return {backend.name, backend.version, key.first->name, key.second, options_.threads, machine_};
}

bool CandidateCosts::is_known(const Backend& backend, const Key& key,
                              const KernelCandidate* candidate) {
  if (known_s_.contains(key)) return true;
  if (store_ == nullptr) return false;
  const CostKey stored = store_key(backend, key);
  const std::optional<KernelFinding> found = store_->find(stored);
  if (!found) return false;
  take(key, backend.name, candidate, *found);
  if (found->measured) ++result_.known;
  return true;
}

KnownAnswer CandidateCosts::answer_of(const KernelCandidate& region) {
  if (!answers_) {
    std::vector<KernelCandidate> regions;
    for (const KernelCandidate& each : candidates_) {
      if (each.is_region()) regions.push_back(each);
    }
    answers_.emplace(fixed_, regions);
  }
  return answers_->of(region);
}

void CandidateCosts::measure_all(const std::vector<Unknown>& unknown) {
  if (options_.progress && !unknown.empty()) options_.progress(result_.measured);
  std::vector<KernelTrial> trials;
  trials.reserve(unknown.size());
  for (const Unknown& each : unknown) {
    trials.push_back({each.key.first, &each.job, each.known ? &*each.known : nullptr});
  }
  const std::vector<KernelFinding> findings =
      measure_kernels(trials, options_.measure, options_.kernel_limit_s);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    take(unknown[i].key, unknown[i].store_key.backend, unknown[i].candidate, findings[i]);
    if (findings[i].measured) ++result_.measured;
    if (store_ != nullptr) store_->add(unknown[i].store_key, findings[i]);
  }
}

void CandidateCosts::take(const Key& key, const std::string& backend,
                          const KernelCandidate* candidate, const KernelFinding& finding) {
  double& cost_s = known_s_[key];
  cost_s = std::numeric_limits<double>::infinity();
  if (finding.measured) {
    cost_s = finding.measured->median_s;
  } else if (finding.problem.empty()) {
    ++result_.refused;
  } else {
    const std::string what =
        candidate != nullptr && candidate->is_region()
            ? fmt::format("{} operators from {} on", candidate->nodes.size(),
                          fixed_.program.nodes[at(candidate->nodes.front())].name)
            : key.second;
    result_.wrong.push_back(
        fmt::format("{}: {}: {}: {}", backend, key.first->name, what, finding.problem));
  }
}

}  // namespace braid
