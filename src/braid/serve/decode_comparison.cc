#include "braid/serve/decode_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/serve/worker_memory.h"

namespace braid {
namespace {

constexpr double kTableEntryBytes = 4;

/// What one device has of the sequences.
struct DeviceShare {
  double sequences = 0;  ///< Whose attention it computes.
  double tokens = 0;     ///< Of these, in its memory or waiting for room there.
};

class Comparison {
 public:
  explicit Comparison(const DecodeJob& job)
      : job_(job),
        devices_(static_cast<double>(job.system->device_count)),
        batch_(static_cast<double>(job.lengths.size())),
        tokens_(std::accumulate(job.lengths.begin(), job.lengths.end(), 0.0)),
        alone_(worker(1)),
        together_(worker(job.system->device_count)) {}

  /// Whether a device has room beside the weights.
  bool fits(DecodeScheme scheme) const { return memory_of(scheme).room_bytes > 0; }

  DecodeEstimate estimate(DecodeScheme scheme) const {
    DecodeEstimate result;
    result.scheme = scheme;
    result.layer =
        decode_traffic(decode_layer(*job_.model), scheme, devices_, batch_, job_.joint, 1);
    const DeviceShare fullest = share(scheme);
    const double mean = scheme == DecodeScheme::tensor ? tokens_ : tokens_ / devices_;
    result.imbalance = mean > 0 ? fullest.tokens / mean : 1;
    const WorkerMemory memory = memory_of(scheme);
    const double fits = std::min(1.0, memory.room_bytes / (fullest.tokens * memory.token_bytes));
    result.waiting = (1 - fits) * batch_;
    add_kernels(scheme, fullest, fits, result);
    const double blocks = fullest.tokens * fits / job_.engine->block_tokens;
    const double evicted = 2 * (1 - fits) * fullest.tokens * memory.token_bytes;
    result.host_s +=
        (kTableEntryBytes * blocks + evicted / job_.output_tokens) / job_.host_bytes_per_s;
    result.tokens_per_s = (batch_ - result.waiting) / result.step_s();
    return result;
  }

 private:
  WorkerMemory memory_of(DecodeScheme scheme) const {
    return worker_memory(worker(scheme == DecodeScheme::tensor ? job_.system->device_count : 1),
                         job_.engine->chunk_tokens);
  }

  Worker worker(std::int64_t tp) const {
    return {job_.model,  job_.engine,          job_.system, job_.kernels,
            job_.format, {tp, 1, 1, tp, 1, 1}, nullptr};
  }

  DeviceShare share(DecodeScheme scheme) const {
    if (scheme == DecodeScheme::tensor) return {batch_, tokens_};
    if (splits_cache(scheme)) return {batch_, tokens_ / devices_};
    std::vector<DeviceShare> shares(at(job_.system->device_count));
    for (std::size_t i = 0; i < job_.lengths.size(); ++i) {
      DeviceShare& own = shares[i % shares.size()];
      own.sequences += 1;
      own.tokens += job_.lengths[i];
    }
    return *std::max_element(
        shares.begin(), shares.end(),
        [](const DeviceShare& a, const DeviceShare& b) { return a.tokens < b.tokens; });
  }

  void add_kernels(DecodeScheme scheme, const DeviceShare& share, double fits,
                   DecodeEstimate& result) const {
    const bool tensor = scheme == DecodeScheme::tensor;
    const StepModel& step = tensor ? together_ : alone_;
    StepShape shape{share.sequences * fits, share.tokens / std::max(1.0, share.sequences)};
    StepParts parts = step.parts(shape);
    if (splits_cache(scheme)) {
      const double attention = parts.attention;
      shape.sequences /= devices_;
      parts = step.parts(shape);
      parts.attention = attention;
      parts.collectives = fits * exchange_s(result.layer);
    }
    const auto time_s = [&](const StepParts& of) { return step.time(of, shape, step.figures()); };
    const double engine_s = time_s(StepParts());
    StepParts exchanged;
    std::swap(exchanged.collectives, parts.collectives);
    result.exchange_s = time_s(exchanged) - engine_s;
    result.compute_s = time_s(parts) - engine_s;
    result.host_s += engine_s;
  }

  /// Of all layers.
  double exchange_s(const DecodeTraffic& layer) const {
    const double all = devices_ / (devices_ - 1);
    const double one_s =
        together_.collective_s(Collective::all_gather, devices_, all * layer.gathered) +
        together_.collective_s(Collective::all_to_all, devices_, all * layer.partials) +
        (layer.moved > 0 ? together_.collective_s(Collective::all_to_all, devices_, layer.moved)
                         : 0);
    return static_cast<double>(job_.model->layer_count()) * one_s;
  }

  const DecodeJob& job_;
  double devices_, batch_, tokens_;
  StepModel alone_, together_;
};

}  // namespace

DecodeLayer decode_layer(const ServedModel& model) {
  const ServedLayer& layer = model.layers.front();
  return {model.hidden, layer.heads, layer.kv_heads, layer.head_dim};
}

std::vector<double> spread_lengths(double prefix, double spread, std::int64_t count) {
  std::mt19937 random(1);
  std::vector<double> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
    lengths.push_back(std::max(1.0, std::round(prefix * (1 + spread * (2 * share - 1)))));
  }
  return lengths;
}

std::vector<DecodeEstimate> compare_decoding(const DecodeJob& job) {
  for (const ServedLayer& layer : job.model->layers) {
    if (layer.mixing == TokenMixing::attention && layer.window == 0 && layer.experts == 0) continue;
    throw Error(job.model->name + " has layers that are not compared",
                "take a model of attention without windows, states or experts");
  }
  if (job.system->device_count < 2) {
    throw Error(Where{"", 0, "--cluster"}, "one device has nothing to divide", "take two or more");
  }
  const Comparison comparison(job);
  std::vector<DecodeEstimate> estimates;
  for (const DecodeScheme scheme : kDecodeSchemes) {
    if (!comparison.fits(scheme)) return {};
    estimates.push_back(comparison.estimate(scheme));
  }
  return estimates;
}

}  // namespace braid
