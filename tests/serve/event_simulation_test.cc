#include "serve/event_simulation.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

SimulatedService queue_of(double service_s) {
  return {[](double) { return 0.0; }, service_s, 1e9, 1};
}

TEST(EventSimulation, DeterministicArrivalsDoNotWaitBelowCapacity) {
  std::vector<double> arrivals_s;
  for (int i = 0; i < 1000; ++i) arrivals_s.push_back(i * 1.25);
  const SimulatedTimes times = simulate_open(queue_of(1), arrivals_s);
  EXPECT_DOUBLE_EQ(times.waiting_s, 0);
  EXPECT_DOUBLE_EQ(times.ttft_s, 1);
}

TEST(EventSimulation, DeterministicArrivalsWaitEverLongerAboveCapacity) {
  std::vector<double> arrivals_s;
  for (int i = 0; i < 101; ++i) arrivals_s.push_back(i * 0.5);
  // Request i waits for i (1 - 0.5).
  EXPECT_NEAR(simulate_open(queue_of(1), arrivals_s).waiting_s, 0.5 * 50, 1e-9);
}

TEST(EventSimulation, PoissonArrivalsWaitAsPollaczekAndKhinchineSay) {
  std::mt19937_64 random(7);
  for (const double busy : {0.3, 0.6, 0.8}) {
    std::exponential_distribution<double> gap(busy);
    std::vector<double> arrivals_s;
    double now_s = 0;
    for (int i = 0; i < 200'000; ++i) arrivals_s.push_back(now_s += gap(random));
    const double expected_s = busy / (2 * (1 - busy));
    EXPECT_NEAR(simulate_open(queue_of(1), arrivals_s).waiting_s / expected_s, 1, 0.05) << busy;
  }
}

TEST(EventSimulation, OneRequestAtATimeIsPromptAndSteps) {
  const SimulatedService service{[](double) { return 0.01; }, 0.2, 8, 11};
  const SimulatedTimes times = simulate_closed(service, 1, 50);
  EXPECT_NEAR(times.ttft_s, 0.2, 1e-9);
  EXPECT_NEAR(times.tpot_s, 0.01, 1e-9);
  EXPECT_NEAR(times.requests_per_s, 1 / 0.3, 1e-6);
}

}  // namespace
}  // namespace braid
