#include "braid/serve/queueing.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Queueing, ErlangsCIsItsSum) {
  for (const int servers : {1, 2, 5, 40}) {
    for (const double load : {0.1, 0.9, 0.5 * servers, 0.95 * servers}) {
      if (load >= servers) continue;
      double sum = 0, term = 1;
      for (int k = 0; k < servers; ++k) {
        sum += term;
        term *= load / (k + 1);
      }
      const double busy = term / (1 - load / servers);
      EXPECT_NEAR(erlang_c(load, servers), busy / (sum + busy), 1e-12);
    }
    EXPECT_EQ(erlang_c(servers, servers), 1);
  }
}

TEST(Queueing, WaitsAreThoseOfKnownQueues) {
  // M/M/1: busy / (1 - busy) · service; M/D/1: half of that.
  EXPECT_NEAR(mean_wait_s(0.8, 1, 1, 1), 4, 1e-12);
  EXPECT_NEAR(mean_wait_s(0.8, 1, 1, 0), 2, 1e-12);
  // M/M/2 at 1 of 2: C = 1/3, wait 1/3 of a service.
  EXPECT_NEAR(mean_wait_s(1, 2, 1, 1), 1.0 / 3, 1e-12);
  EXPECT_EQ(mean_wait_s(2, 2, 1, 1), std::numeric_limits<double>::infinity());
  // Twice as fast in all, half the wait.
  EXPECT_NEAR(mean_wait_s(6, 4, 0.5, 0), mean_wait_s(3, 4, 1, 0) / 2, 1e-12);
}

}  // namespace
}  // namespace braid
