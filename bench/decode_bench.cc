// Not a benchmark of kernels: it prints what one step of one layer takes by processes of this
// machine, scheme by scheme (docs/notes/serving.md).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "braid/run/torch/torch_decode.h"

#include "serve/cache/trial_traffic.h"

namespace braid {
namespace {

constexpr int kSteps = 9;

/// Sequences of `prefix` tokens; with a spread of `percent` that many more or fewer, the long ones
/// first.
DecodeTrial trial_of(std::int32_t ranks, std::int64_t sequences, std::int64_t prefix,
                     std::int64_t percent) {
  DecodeTrial trial{{8, 8, 64, 0.125, 0}, ranks, {}, {}, 3};
  for (std::int64_t b = 0; b < sequences; ++b) {
    const std::int64_t over =
        percent * (sequences - 1 - 2 * b) / std::max<std::int64_t>(1, sequences - 1);
    trial.prefixes.push_back(prefix + prefix * over / 100);
    trial.home.push_back(static_cast<std::int32_t>(b * ranks / sequences));
  }
  return trial;
}

void print_row(const DecodeTrial& trial, std::int64_t prefix, std::int64_t percent) {
  for (const DecodeScheme scheme : kDecodeSchemes) {
    const DecodeRun run = decode_by_processes(trial, scheme, kSteps, false);
    const double steps = kSteps * static_cast<double>(trial.ranks);
    double formula = 0;
    for (int s = 0; s < kSteps; ++s) formula += test::trial_traffic(trial, scheme, s);
    fmt::print("{:>7} {:>8} {:>7}%  {:<14} {:>9.2f} {:>9.2f} {:>14.0f} {:>14.0f}\n",
               trial.home.size(), prefix, percent, name_of(scheme), 1e3 * run.step_s,
               1e3 * run.computing_s, static_cast<double>(run.sent_bytes) / steps, formula / steps);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace braid

int main(int count, char** words) {
  const std::int32_t ranks = count > 1 ? std::atoi(words[1]) : 2;
  fmt::print("{} processes, a layer of 8 heads of 64 in float64\n", ranks);
  fmt::print("{:>7} {:>8} {:>8}  {:<14} {:>9} {:>9} {:>14} {:>14}\n", "batch", "prefix", "spread",
             "scheme", "step, ms", "CPU, ms", "bytes a rank", "by formula");
  for (const std::int64_t sequences : {4, 16}) {
    for (const std::int64_t prefix : {256, 2048, 8192}) {
      braid::print_row(braid::trial_of(ranks, sequences, prefix, 0), prefix, 0);
    }
    braid::print_row(braid::trial_of(ranks, sequences, 8192, 50), 8192, 50);
  }
  return 0;
}
