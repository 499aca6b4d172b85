#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/plan/stage_load.h"
#include "braid/planners/mixed/places.h"
#include "braid/system/system.h"

namespace braid {
namespace {

/// The slowest flow, flow by flow.
double by_flows_s(const System& system, std::span<const Flow> flows, double bytes) {
  const std::vector<double> rates = flow_rates(system, flows, bytes);
  double slowest_s = 0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    slowest_s =
        std::max(slowest_s, link_latency_s(system, flows[f].from, flows[f].to) + bytes / rates[f]);
  }
  return slowest_s;
}

// Of all flows, whatever was asked for before.
TEST(MixedPlaces, MessagesTakeWhatTheirFlowsTake) {
  std::mt19937_64 random(1);
  for (const char* name : {"p3.8xlarge:3nodes+g4dn.12xlarge:2nodes", "dgx-a100:2nodes+dgx-h100:13",
                           "dgx-a100:1nodes+tpu-v5p-pod:1nodes"}) {
    System system = load_system(name);
    const std::vector<DeviceRun> runs = device_runs(system);
    MixedPlaces places(system, runs);
    for (int trial = 0; trial < 400; ++trial) {
      std::vector<std::int32_t> used, below, next, above;
      std::int32_t receivers = 0, senders = 0;
      for (const DeviceRun& run : runs) {
        const auto draw = [&](std::int64_t most) {
          const bool none = most == 0 || random() % 3 == 0;
          return none ? 0 : static_cast<std::int32_t>(random() % std::min<std::uint64_t>(32, most));
        };
        used.push_back(draw(run.count));
        below.push_back(draw(run.count - used.back()));
        next.push_back(used.back() + below.back());
        above.push_back(draw(run.count - next.back()));
        receivers += below.back();
        senders += above.back();
      }
      if (receivers == 0 || senders == 0) continue;
      const MixedPlace to{used, below}, from{next, above};
      for (const double bytes : {1e3, 1e6, 1e9}) {
        const auto flows = handover_flows(places.devices(from), places.devices(to));
        EXPECT_EQ(places.message_s(from, to, bytes), by_flows_s(system, flows, bytes)) << name;
      }
    }
  }
}

}  // namespace
}  // namespace braid
