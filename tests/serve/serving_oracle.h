#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "braid/serve/cache_split.h"
#include "braid/serve/serving_plan.h"
#include "braid/serve/worker_memory.h"
#include "braid/serve/worker_rates.h"

namespace braid::test {

/// Drafted tokens that a layout's workers may have, 0 among them: none where stages, attention
/// groups or caches are divided, or some layer of the draft model has no whole heads for each rank.
inline std::vector<std::int64_t> drafts_of(const ServingJob& job, const ServingLayout& layout) {
  std::vector<std::int64_t> drafts = {0};
  if (job.draft.model == nullptr || layout.pp * layout.dp * layout.cp > 1) return drafts;
  const auto divides = [&](double heads) {
    return std::fmod(heads, static_cast<double>(layout.tp)) == 0;
  };
  for (const ServedLayer& layer : job.draft.model->layers) {
    if (!divides(layer.heads) || !divides(layer.state_heads)) return drafts;
  }
  for (std::int64_t k = 1; k <= kMostDraftTokens; ++k) drafts.push_back(k);
  return drafts;
}

/// The most requests a second and device that a kind of aggregated worker answers within the
/// targets, every chunk and every batch looked at; 0: none.
inline double most_of_worker(const ServingJob& job, const Worker& worker) {
  const Engine& engine = *worker.engine;
  const double kept = kept_tokens(engine, job.input_tokens, job.output_tokens);
  const auto held_with = [&](double chunk) {
    return held_sequences(worker, worker_memory(worker, chunk), kept);
  };
  const double held = held_with(engine.chunk_tokens);
  if (held < 1) return 0;
  const StepModel step(worker);
  const TimeFactors factors = factors_of(engine.corrections, corrected_runs_of(worker, false));
  double most = 0;
  for (const double chunk : kChunkSizes) {
    const WorkerSteps steps(&step, {job.input_tokens, job.output_tokens, job.cached_share},
                            {chunk, held});
    for (const double batch : batch_sizes(held)) {
      if (batch > held_with(chunk)) continue;
      const ServingTimes times = batch_times(steps, batch, factors);
      if (times.ttft_s > job.ttft_s || times.tpot_s > job.tpot_s) continue;
      most = std::max(most, times.requests_per_s / static_cast<double>(worker.layout.devices()));
    }
  }
  return most;
}

/// The most requests a second and device of all services of aggregated workers in the space of
/// `job`, which has one engine and format: by looking at each. 0: none holds the targets.
inline double most_of_all_aggregated(const ServingJob& job) {
  const Engine& engine = *job.engines.front();
  const ServingFormat& format = job.formats.front();
  double most = 0;
  for (ServingLayout layout : serving_layouts(*job.model, *job.system)) {
    if (layout.dp > 1 && layout.tp > 1 && !engine.groups_divide_heads) continue;
    for (const std::int64_t cp : cache_splits(*job.model, engine, layout.tp)) {
      layout.cp = cp;
      for (const std::int64_t k : drafts_of(job, layout)) {
        std::optional<DraftModel> draft;
        if (k > 0) {
          draft = DraftModel{job.draft.model,
                             draft_format(*job.draft.model, format.name),
                             {job.draft.acceptance, k, 1}};
        }
        most = std::max(most, most_of_worker(job, {job.model, &engine, job.system, job.kernels,
                                                   format, layout, draft ? &*draft : nullptr}));
      }
    }
  }
  return most;
}

}  // namespace braid::test
