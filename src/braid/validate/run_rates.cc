#include "braid/validate/run_rates.h"

#include <cmath>

#include "braid/validate/measured_time.h"
#include "braid/validate/run_model.h"

namespace braid {
namespace {

std::int64_t sequence_of(const MeasuredRun& run) {
  if (run.tokens_per_s_per_device <= 0 || run.model_tflops_per_device <= 0) return 0;
  const double wanted = run.model_tflops_per_device * 1e12 / run.tokens_per_s_per_device;
  constexpr double kTolerance = 0.02;
  double nearest = kTolerance;
  std::int64_t sequence = 0;
  MeasuredRun candidate = run;
  for (candidate.seq_len = 512; candidate.seq_len <= (1 << 20); candidate.seq_len *= 2) {
    const RunModel model = model_of(candidate);
    if (!model.graph) return 0;
    const double flops = reported_flops(*model.graph, 1, Recompute::none, false) /
                         static_cast<double>(candidate.seq_len);
    const double off = std::abs(flops / wanted - 1);
    if (off < nearest) {
      nearest = off;
      sequence = candidate.seq_len;
    }
  }
  return sequence;
}

std::int64_t batch_of(const MeasuredRun& run) {
  if (run.seq_len > 0 && run.iteration_time_s > 0 && run.tokens_per_s_per_device > 0) {
    constexpr double kTolerance = 0.005;
    const double samples = run.iteration_time_s * run.tokens_per_s_per_device *
                           static_cast<double>(run.devices) / static_cast<double>(run.seq_len);
    const double whole = std::round(samples);
    const bool told = whole >= 1 && whole < 1e9 && std::abs(samples / whole - 1) < kTolerance;
    return told ? static_cast<std::int64_t>(whole) : 0;
  }
  if (run.micro_batch == 0 || run.dp == 0 || run.pp > 1) return 0;
  std::int64_t batch = 0;
  return __builtin_mul_overflow(run.micro_batch, run.dp, &batch) ? 0 : batch;
}

}  // namespace

MeasuredRun with_told_by_rates(const MeasuredRun& run) {
  MeasuredRun told = run;
  if (told.seq_len == 0) told.seq_len = sequence_of(told);
  if (told.global_batch == 0) told.global_batch = batch_of(told);
  return told;
}

}  // namespace braid
