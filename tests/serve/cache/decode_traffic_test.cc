#include "braid/serve/cache/decode_traffic.h"

#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr DecodeLayer kLlama7b{4096, 32, 32, 128, 1, 1};

/// Bytes that cross the links, each counted where it leaves a device.
class Wires {
 public:
  Wires(int devices, DeviceJoint joint) : sent_(static_cast<std::size_t>(devices)), joint_(joint) {}
  void send(int from, int to, double bytes) {
    const int devices = static_cast<int>(sent_.size());
    if (joint_ == DeviceJoint::switched) {
      if (from != to) sent_[static_cast<std::size_t>(from)] += bytes;
      return;
    }
    for (int at = from; at != to; at = (at + 1) % devices) {
      sent_[static_cast<std::size_t>(at)] += bytes;
    }
  }
  /// Around a ring every part is passed on to all but one.
  void all_gather(double part) {
    const int devices = static_cast<int>(sent_.size());
    for (int d = 0; d < devices; ++d) {
      if (joint_ == DeviceJoint::ring) send(d, (d + devices - 1) % devices, part);
      for (int to = 0; to < devices && joint_ == DeviceJoint::switched; ++to) send(d, to, part);
    }
  }
  double mean() const {
    double sum = 0;
    for (const double bytes : sent_) sum += bytes;
    return sum / static_cast<double>(sent_.size());
  }

 private:
  std::vector<double> sent_;
  DeviceJoint joint_;
};

double counted(const DecodeLayer& layer, DecodeScheme scheme, int devices, int batch,
               DeviceJoint joint) {
  Wires wires(devices, joint);
  const double each = static_cast<double>(batch) / devices;
  const double query = layer.heads * layer.head_dim * layer.value_bytes;
  const double key_value = 2 * layer.kv_heads * layer.head_dim * layer.value_bytes;
  if (scheme == DecodeScheme::data) return 0;
  if (scheme == DecodeScheme::tensor) {
    // Reduce-scatter and all-gather each send every part to all but one.
    for (int i = 0; i < 4; ++i) wires.all_gather(each * layer.hidden * layer.value_bytes);
    return wires.mean();
  }
  wires.all_gather(each * (query + (scheme == DecodeScheme::cache ? key_value : 0)));
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      wires.send(from, to, each * (query + 2 * layer.heads * layer.statistic_bytes));
      // New tokens go to devices in turn.
      if (scheme == DecodeScheme::cache_queries) {
        wires.send(from, to, each / devices * key_value);
      }
    }
  }
  return wires.mean();
}

TEST(DecodeTraffic, IsWhatMessagesAddUpTo) {
  const DecodeLayer grouped{2048, 16, 4, 128, 2, 4};
  for (const DecodeLayer& layer : {kLlama7b, grouped}) {
    for (const DecodeScheme scheme : kDecodeSchemes) {
      for (const int devices : {1, 2, 3, 4, 8}) {
        for (const DeviceJoint joint : {DeviceJoint::switched, DeviceJoint::ring}) {
          const double others = (devices - 1.0) / devices;
          const double formula = decode_traffic(layer, scheme, devices, 24, joint, others).total();
          EXPECT_NEAR(formula, counted(layer, scheme, devices, 24, joint), 1e-9 * formula)
              << name_of(scheme) << devices;
        }
      }
    }
  }
}

double share(DecodeScheme scheme, double devices, DeviceJoint joint) {
  const auto total = [&](DecodeScheme of) {
    return decode_traffic(kLlama7b, of, devices, 32, joint).total();
  };
  return total(scheme) / total(DecodeScheme::tensor);
}

// Jeon, figure 4.1 at N = 4: what its two formulas give, and what they give for one batch.
TEST(DecodeTraffic, ThesisComparesTwoBatches) {
  const double printed = printed_decode_traffic(kLlama7b, DecodeScheme::tensor, 4, 32) /
                         printed_decode_traffic(kLlama7b, DecodeScheme::cache, 4, 32);
  EXPECT_NEAR(printed, 3.18, 0.005);
  EXPECT_NEAR(share(DecodeScheme::cache, 4, DeviceJoint::switched), 1, 0.004);
  // Its all-to-all is that of a ring, with which it sends a quarter more than tensor parallelism.
  EXPECT_NEAR(printed_decode_traffic(kLlama7b, DecodeScheme::cache, 4, 32),
              decode_traffic(kLlama7b, DecodeScheme::cache, 4, 32, DeviceJoint::ring).total(),
              1e-6);
  EXPECT_NEAR(share(DecodeScheme::cache, 4, DeviceJoint::ring), 1.258, 0.001);
}

TEST(DecodeTraffic, VariantsSave) {
  EXPECT_NEAR(share(DecodeScheme::cache_queries, 4, DeviceJoint::switched), 0.67, 0.005);
  EXPECT_NEAR(share(DecodeScheme::cache_queries, 8, DeviceJoint::switched), 0.575, 0.005);
  EXPECT_NEAR(share(DecodeScheme::cache_newest, 4, DeviceJoint::switched), 0.5, 0.005);
  EXPECT_NEAR(share(DecodeScheme::cache_newest, 8, DeviceJoint::switched), 0.5, 0.005);
}

}  // namespace
}  // namespace braid
