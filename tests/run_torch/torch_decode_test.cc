#include "braid/run/torch/torch_decode.h"

#include <gtest/gtest.h>

#include "serve/cache/trial_traffic.h"

namespace braid::test {
namespace {

/// Heads that share keys, lengths that differ, one shorter than there are ranks, maybe a window.
DecodeTrial small_trial(std::int32_t ranks, std::int64_t window) {
  DecodeTrial trial{{8, 4, 16, 0.25, window}, ranks, {}, {}, 7};
  const std::int64_t prefixes[] = {0, 200, 3, 65};
  for (int b = 0; b < 4; ++b) {
    trial.prefixes.push_back(prefixes[b]);
    trial.home.push_back(static_cast<std::int32_t>(b % ranks));
  }
  return trial;
}

TEST(DecodeProcesses, EverySchemeIsOneProcessAndSendsWhatItsFormulaSays) {
  constexpr int kSteps = 3;
  for (const std::int32_t ranks : {2, 4}) {
    const DecodeTrial trial = small_trial(ranks, ranks == 4 ? 50 : 0);
    for (const DecodeScheme scheme : kDecodeSchemes) {
      const DecodeRun run = decode_by_processes(trial, scheme, kSteps, true);
      EXPECT_LE(run.apart, 1e-12) << name_of(scheme) << ' ' << ranks;
      double bytes = 0;
      for (int s = 0; s < kSteps; ++s) bytes += test::trial_traffic(trial, scheme, s);
      EXPECT_NEAR(static_cast<double>(run.sent_bytes), bytes, 1e-6)
          << name_of(scheme) << ' ' << ranks;
    }
  }
}

}  // namespace
}  // namespace braid::test
