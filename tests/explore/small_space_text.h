#pragma once

#include <string>

#include "braid/base/file.h"

#include "support/source_path.h"

namespace braid {

/// Two of everything under DFModel's rules: 64 points.
inline std::string small_space_text() {
  return read_file(test::source_path("tests/explore/small_space.yaml"));
}

/// Two of everything for planners: 32 points.
inline std::string small_systems_text() {
  return R"(name: small systems
devices: [4, 8]
planners: [braid, megatron]
workloads:
  gpt: {model: gpt2, global_batch: 16, seq_len: 512, precision: bf16}
  uno: {model: candle-uno, global_batch: 1024, precision: bf16}
chips:
  big: {chip: h100-sxm, price: 30 kUSD}
  flow: {chip: sn30, power: 500 W}
networks:
  nodes: {cluster: dgx-h100, price: [10 USD per GB/s, 20 USD per GB/s], power: 0.1 W per GB/s}
  pairs:
    network:
      devices_per_node: 2
      intra_node: {name: bridge, topology: switch, bandwidth: 100 GB/s, latency: 2 us, efficiency: 0.9}
      levels:
        - {name: fabric, topology: switch, bandwidth: 25 GB/s, latency: 5 us, efficiency: 0.9}
    price: 5 USD per GB/s
    power: 0.2 W per GB/s
ratios:
  - {name: nodes over pairs, of: throughput, above: {network: nodes}, below: {network: pairs}}
)";
}

/// The text with the first `from` in it replaced, or nothing without one.
inline std::string replaced_in(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}
inline std::string with(const std::string& from, const std::string& to) {
  return replaced_in(small_space_text(), from, to);
}
inline std::string systems_with(const std::string& from, const std::string& to) {
  return replaced_in(small_systems_text(), from, to);
}

}  // namespace braid
