#include "braid/planners/mixed/met_pipelines.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "braid/planners/mixed/pipeline_ease.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

/// Whether two pipelines differ in nothing but which devices have which stage, layers,
/// micro-batches and the lesser stages of ZeRO: of such only the fastest is shown.
bool is_run_alike(std::span<const PlacedStage> a, std::span<const PlacedStage> b) {
  const auto key = [](const PlacedStage& stage) {
    const Configuration& config = stage.config;
    return std::make_tuple(config.tp, config.cp, config.ep, config.dp, config.recompute,
                           config.zero == Zero::parameters, config.offload_optimizer,
                           config.offload_weights, config.offload_activations);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const PlacedStage& left, const PlacedStage& right) {
                      return left.devices.size() == right.devices.size() && key(left) == key(right);
                    });
}

std::int64_t seq_len_of(const MixedJob& job) { return job.chain().layers->layers().seq_len; }

}  // namespace

void MetPipelines::add(double time_s, std::vector<PlacedStage> stages) {
  if (space_.preference == Preference::easiest) {
    Met& known = easy_[ease_of(stages, seq_len_of(job_))];
    if (time_s < known.time_s) known = {time_s, stages};
  }
  if (found_.size() >= capacity() && time_s >= found_.back().time_s) return;
  const auto same = std::find_if(found_.begin(), found_.end(), [&](const Met& known) {
    return is_run_alike(known.stages, stages);
  });
  if (same != found_.end()) {
    if (time_s >= same->time_s) return;
    found_.erase(same);
  }
  const auto place = std::find_if(found_.begin(), found_.end(),
                                  [&](const Met& known) { return time_s < known.time_s; });
  found_.insert(place, {time_s, std::move(stages)});
  if (found_.size() > capacity()) found_.pop_back();
}

Candidate MetPipelines::candidate_of(const Met& met) const {
  Candidate candidate;
  candidate.plan = job_.plan(met.stages);
  candidate.metrics = measure(candidate.plan);
  return candidate;
}

/// Puts the plan to recommend first, of the pipelines that the search met. The others follow, as
/// many as were asked for.
void MetPipelines::recommend(Outcome& outcome) const {
  std::vector<TimedEase> known;
  std::vector<const Met*> met;
  for (const auto& [ease, found] : easy_) {
    known.push_back({found.time_s, ease});
    met.push_back(&found);
  }
  const std::size_t first = easiest_of(known);
  Recommendation& recommendation = outcome.recommendation.emplace();
  recommendation.of_all = false;
  recommendation.ease = known[first].ease;
  recommendation.ease_of_fastest = ease_of(found_.front().stages, seq_len_of(job_));
  if (recommendation.ease_of_fastest.offload) {
    double& least_s = recommendation.without_offload_s.emplace(kInfinity);
    for (const TimedEase& one : known) {
      if (!one.ease.offload) least_s = std::min(least_s, one.time_s);
    }
  }
  if (met[first]->time_s <= found_.front().time_s) return;
  std::vector<Candidate> others = std::exchange(outcome.candidates, {});
  recommendation.fastest = others.front();
  outcome.candidates.push_back(candidate_of(*met[first]));
  for (std::size_t i = 0; i < others.size() && outcome.candidates.size() < capacity(); ++i) {
    if (i > 0 && is_run_alike(found_[i].stages, met[first]->stages)) continue;
    outcome.candidates.push_back(std::move(others[i]));
  }
}

void MetPipelines::put_into(Outcome& outcome) const {
  for (const Met& met : found_) outcome.candidates.push_back(candidate_of(met));
  if (space_.preference == Preference::easiest) recommend(outcome);
}

}  // namespace braid
