#pragma once

#include <string>

namespace braid {

/// Two of everything: 64 points.
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
  thin: {bandwidth: 10 GB/s, latency: 1 us, price: 2 USD per GB/s, power: 0.05 W per GB/s}
  wide: {bandwidth: [100 GB/s, 20 GB/s], price: 2 USD per GB/s, power: [0.01 W per GB/s, 0.05 W per GB/s], port_price: 24 USD per GB/s, port_power: 0.05 W per GB/s}
ratios:
  - {name: wide over thin, of: utilisation, above: {links: wide}, below: {links: thin}, published: 2}
  - {name: searched over given, of: throughput, above: {parallelism: shapes, workload: tiny}, below: {parallelism: given, workload: tiny}}
)";
}

inline std::string with(const std::string& from, const std::string& to) {
  std::string text = small_space_text();
  const std::size_t at = text.find(from);
  return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}

}  // namespace braid
