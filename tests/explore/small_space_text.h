#pragma once

#include <string>

namespace braid {

/// Two of everything under DFModel's rules: 64 points.
inline std::string small_space_text() {
  return R"(name: small
devices: 8
rules: dfmodel
parallelism: [given, shapes]
workloads:
  tiny: {kind: transformer, hidden: 512, heads: 8, seq_len: 128, layers: 8, global_batch: 32}
  fold: {kind: fft, points: 1048576, radix: 32}
chips:
  flow: {tiles: 64, tile: [8, 8], clock: 1 GHz, sram: 4 MiB, price: 1000 USD, power: 100 W}
  plain: {tiles: 64, tile: [8, 8], clock: 2 GHz, sram: 1 MiB, style: kernel-by-kernel, price: 1500 USD, power: 120 W}
memories:
  slow: {capacity: 64 GB, bandwidth: 20 GB/s, price: 1 USD per GB/s, power: 0.16 W per GB/s}
  fast: {capacity: 16 GB, bandwidth: 500 GB/s, price: 2 USD per GB/s, power: 0.05 W per GB/s}
topologies:
  torus: {dimensions: [ring, ring], sizes: [4, 2], roles: [tensor, data]}
  mesh: {dimensions: [fully-connected], sizes: [8], roles: [tensor]}
links:
  thin: {bandwidth: 10 GB/s, latency: 1 us, price: 2 USD per GB/s, power: 0.05 W per GB/s, port_price: 12 USD per GB/s, port_power: 0 W per GB/s}
  wide: {bandwidth: [100 GB/s, 20 GB/s], price: 2 USD per GB/s, power: [0.01 W per GB/s, 0.05 W per GB/s], port_price: 24 USD per GB/s, port_power: 0.05 W per GB/s}
ratios:
  - {name: wide over thin, of: utilisation, above: {links: wide}, below: {links: thin}, published: 2}
  - {name: searched over given, of: throughput, above: {parallelism: shapes, workload: tiny}, below: {parallelism: given, workload: tiny}}
)";
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
