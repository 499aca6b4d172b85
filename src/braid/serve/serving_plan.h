#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/serve/steady_state.h"

namespace braid {

/// A draft model that workers may have beside the model.
struct DraftOffer {
  const ServedModel* model = nullptr;  ///< nullptr: none.
  double acceptance = 0;               ///< As in Speculation.
  std::int64_t draft_tokens = 0;       ///< That all workers draft; 0: as many as are best, or none.
};

/// What a service must do, and what it may be made of.
struct ServingJob {
  const ServedModel* model = nullptr;
  const System* system = nullptr;        ///< Homogeneous.
  const ChipKernels* kernels = nullptr;  ///< Of its chip.
  std::vector<const Engine*> engines;
  std::vector<ServingFormat> formats;
  double input_tokens = 0, output_tokens = 0;
  double ttft_s = 0, tpot_s = 0;  ///< Targets: means that must not be exceeded.
  double cached_share = 0;        ///< Of inputs, what prefix caches have.
  bool aggregated = true, disaggregated = true;
  DraftOffer draft;
  std::int64_t budget = 1'000'000;  ///< Steps that may be evaluated.
};

/// Workers of one kind in a plan.
struct WorkerPlan {
  const Engine* engine = nullptr;
  ServingFormat format;
  ServingLayout layout;
  std::int64_t workers = 1;
  BatchLimits limits;  ///< Sequences: of one worker.
  std::int64_t draft_tokens = 0;
  double requests_per_s = 0;  ///< That one worker takes within the targets.
};

/// A service within its targets.
struct ServingPlan {
  bool disaggregated = false;
  WorkerPlan decode;   ///< Of an aggregated service: all.
  WorkerPlan prefill;  ///< Of a disaggregated one.
  double ttft_s = 0, tpot_s = 0;
  double requests_per_s = 0;  ///< Of the whole service, all within the targets.
  std::int64_t devices = 0;   ///< That it uses.
  double requests_per_s_per_device() const { return requests_per_s / static_cast<double>(devices); }
};

/// A point of the front of time per token against output per device.
struct ServingPoint {
  double tpot_s = 0, ttft_s = 0;
  double tokens_per_s_per_device = 0;
  ServingLayout layout;
  double sequences = 0;
  std::int64_t draft_tokens = 0;
};

/// A precision of the job that no worker of the space has.
struct UnservedFormat {
  std::string name;  ///< ServingFormat::name.
  /// "no kernels of GEMMs in nvfp4 are known of h100-sxm"; empty: weights and one request do not
  /// fit.
  std::string lacks;
  double missing_bytes = 0;  ///< Then, what a GPU of the largest worker lacks at least.
};

/// What a search found.
struct ServingOutcome {
  /// None: nothing in the space holds the targets, or has room (`options` is 0).
  std::optional<ServingPlan> plan;
  std::vector<UnservedFormat> unserved;  ///< In the job's order.
  /// Aggregated workers of the plan's engine and format within the TTFT, by chunks of the engine.
  std::vector<ServingPoint> points;
  std::vector<ServingPoint> front;  ///< Of these; by time per token.
  std::int64_t options = 0;         ///< Workers that the space has: engine, format, layout.
  std::int64_t evaluated = 0;       ///< Steps that were evaluated.
  bool proven = true;               ///< The space was searched in full.
  /// Of any option: no target below can be held; infinite without options.
  double least_ttft_s = 0, least_tpot_s = 0;
};

/// The space: every engine, format and layout with tensor parallelism, attention groups and stages
/// in powers of two, tensor parallelism within a node and dividing all heads, experts split by
/// tensor or by expert parallelism; batch limits of 1, 2, 3, 4, 6, 8, 12 … sequences that fit
/// memory; chunks of 2,048, 4,096, 8,192 and 16,384 tokens; aggregated workers, as many as there is
/// room for, or prefill and decode workers, any numbers of either. Aggregated workers may also
/// divide caches by tokens (cache_splits()) or, with one stage and one attention group,
/// draft 1 to kMostDraftTokens tokens with a draft model whose heads their tensor parallelism
/// divides. Groups of engines that do not divide heads within them have one rank.
std::vector<ServingLayout> serving_layouts(const ServedModel& model, const System& system);
inline constexpr std::array kChunkSizes = {2048.0, 4096.0, 8192.0, 16384.0};

/// Throws Error naming --input-len where requests are longer than the model's context.
void check_context(const ServingJob& job);

/// The plan of that space with most requests a second and device within both targets; of those the
/// one with fewest devices to a worker. Exact: options are looked at in the order of a bound, the
/// most of `b / (output · decode(b))` per device for b up to the batch, until it is below the best.
/// Throws Error where the chip
/// has kernels for none of the formats, for a context beyond the model's, and for a draft model
/// that cannot draft for it (check_draft()).
ServingOutcome plan_serving(const ServingJob& job);

/// Workers for `rate` requests a second at the rate of a plan's worker: the fewest.
std::int64_t workers_for_rate(const WorkerPlan& of, double rate);

/// Devices for `rate` requests a second at the rate of the plan's workers: the fewest whole ones,
/// of either kind where it has two.
std::int64_t devices_for_rate(const ServingPlan& plan, double rate);

}  // namespace braid
