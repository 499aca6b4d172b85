#include "braid/machine/system_text.h"

#include <fmt/format.h>

namespace braid {
namespace {

std::string efficiency_text(const Efficiency& e) {
  return fmt::format(
      "    matmul: {:.6g}\n    vector: {:.6g}\n    attention: {:.6g}\n    memory: {:.6g}\n"
      "    memory_half_size: {:.6g} B\n    kernel_launch: {:.6g} us\n    host_operator: 0 us\n"
      "    overlap_loss: 1\n    tile: [{}, {}, {}]\n",
      e.matmul_peak_fraction, e.vector_peak_fraction, e.attention_peak_fraction,
      e.memory_peak_fraction, e.memory_half_bytes, 1e6 * e.kernel_launch_s, e.tile_m, e.tile_n,
      e.tile_k);
}

std::string chip_text(const MeasuredMachine& machine, const std::string& name) {
  const Chip& chip = machine.device.chip;
  const double flops_per_s = chip.peaks.front().matmul_flops_per_s;
  std::string text = fmt::format(
      "chip:\n  name: {}-device\n  description: '{} of the cores of {}'\n"
      "  kind: other\n  peak: {{f32: {:.6g} GFLOP/s}}\n  vector: {:.6g} GFLOP/s\n  compute_units: "
      "{}\n"
      "  memory: {{name: main memory, size: {:.6g} MiB, bandwidth: {:.6g} GB/s}}\n"
      "  efficiency:\n",
      name, machine.split.threads, machine.facts.processor, 1e-9 * flops_per_s,
      1e-9 * chip.vector_flops_per_s, chip.compute_units, chip.memory.bytes / (1 << 20),
      1e-9 * chip.memory.bytes_per_s);
  text += efficiency_text(chip.efficiency);
  text += fmt::format(
      "  sources:\n    peak: 'the fastest of the GEMMs measured, all devices at work'\n"
      "    vector: 'the same units as the peak'\n"
      "    memory: 'the size as the system says, shared among devices; the bandwidth of the "
      "fastest sum that no cache holds, all devices at work'\n"
      "    efficiency: 'fitted to {} operators measured with {}: {:.1f} % off on average'\n"
      "  assumed:\n    overlap_loss: 'messages are copied by the cores that compute'\n"
      "    host_operator: 'kernels run on the cores that issue them'\n",
      machine.device.operators.size(), machine.libraries,
      100 * mean_error(machine.device.operators));
  return text;
}

}  // namespace

std::string system_text(const MeasuredMachine& machine, const std::string& name) {
  return fmt::format("name: {}\ndescription: '{}, measured'\n", name, machine.facts.processor) +
         chip_text(machine, name) +
         fmt::format(
             "devices_per_node: {}\nhost: none\n"
             "intra_node: {{name: loopback, topology: switch, bandwidth: {:.6g} GB/s, "
             "latency: {:.6g} us, efficiency: 1, half_size: 0 B}}\n"
             "sources:\n  intra_node: '{}: {:.1f} % off on average'\n",
             machine.split.devices, 1e-9 * machine.link.bytes_per_s, 1e6 * machine.link.latency_s,
             machine.messages, 100 * machine.link.mean_error);
}

}  // namespace braid
