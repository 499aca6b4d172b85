#include "braid/chip/accelerator/accelerator_fault.h"

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/chip/accelerator/area.h"

namespace braid {
namespace {

using Fault = std::optional<AcceleratorFault>;

Fault count_fault(std::int64_t count, std::int64_t most, const char* key, const char* what) {
  if (count >= 1 && count <= most) return std::nullopt;
  return AcceleratorFault{key, fmt::format("{} {}", count, what),
                          fmt::format("give from 1 to {}", most)};
}

Fault buffer_fault(double bytes, double least, double most, const char* key) {
  if (bytes >= least && bytes <= most) return std::nullopt;
  return AcceleratorFault{
      key, fmt::format("the area model has no buffer of {}", format_bytes(bytes)),
      fmt::format("give one from {} to {}", format_bytes(least), format_bytes(most))};
}

Fault tile_fault(double bytes, double least, const char* key, const char* tile) {
  if (bytes >= least) return std::nullopt;
  return AcceleratorFault{
      key,
      fmt::format("{} do not hold the {} of {}", format_bytes(bytes), tile, format_bytes(least)),
      "give a larger buffer, or smaller cores"};
}

Fault rate_fault(double rate, const char* key) {
  if (rate > 0) return std::nullopt;
  return AcceleratorFault{key, "must be more than zero", ""};
}

/// Of rates that follow from counts and the clock.
Fault peak_fault(double flops) {
  const auto fault = implausible(flops, Unit::flops_per_s);
  if (!fault) return std::nullopt;
  return AcceleratorFault{"", fault->message, "give fewer or smaller cores, or a slower clock"};
}

}  // namespace

double least_tensor_l2_bytes(const Accelerator& chip) {
  return static_cast<double>(chip.tensor.width) * static_cast<double>(chip.tensor.depth) *
         word_bytes(chip);
}

double least_vector_l2_bytes(const Accelerator& chip) {
  constexpr double kOperands = 3;
  return kOperands * static_cast<double>(chip.vector.lanes) * word_bytes(chip);
}

std::optional<AcceleratorFault> accelerator_fault(const Accelerator& chip) {
  const TensorCores& tensor = chip.tensor;
  const VectorCores& vector = chip.vector;
  // What comes first needs least of what comes later.
  if (auto f = count_fault(tensor.count, kMostCores, "tensor_cores.count", "tensor cores"))
    return f;
  if (auto f = count_fault(tensor.width, kMostWidth, "tensor_cores.width", "columns")) return f;
  if (auto f = count_fault(tensor.depth, kMostWidth, "tensor_cores.depth", "rows")) return f;
  if (auto f = count_fault(vector.count, kMostCores, "vector_cores.count", "vector cores"))
    return f;
  if (auto f = count_fault(vector.lanes, kMostWidth, "vector_cores.lanes", "lanes")) return f;
  const double tile = least_tensor_l2_bytes(chip);
  if (auto f = tile_fault(tensor.l2_bytes, tile, "tensor_cores.l2", "weights of one array")) {
    return f;
  }
  if (auto f = tile_fault(vector.l2_bytes, least_vector_l2_bytes(chip), "vector_cores.l2",
                          "operands of all lanes")) {
    return f;
  }
  if (auto f =
          tile_fault(chip.global_buffer_bytes, tile, "global_buffer", "weights of one array")) {
    return f;
  }
  if (auto f = buffer_fault(tensor.l2_bytes, kLeastL2Bytes, kMostL2Bytes, "tensor_cores.l2")) {
    return f;
  }
  if (auto f = buffer_fault(vector.l2_bytes, kLeastL2Bytes, kMostL2Bytes, "vector_cores.l2")) {
    return f;
  }
  if (auto f = buffer_fault(chip.global_buffer_bytes, kLeastGlobalBufferBytes,
                            kMostGlobalBufferBytes, "global_buffer")) {
    return f;
  }
  if (auto f = rate_fault(chip.hbm_bytes, "hbm.size")) return f;
  if (auto f = rate_fault(chip.hbm_bytes_per_s, "hbm.bandwidth")) return f;
  if (auto f = rate_fault(chip.clock_hz, "clock")) return f;
  if (auto f = peak_fault(matmul_peak_flops(chip))) return f;
  if (auto f = peak_fault(vector_peak_flops(chip))) return f;
  if (auto f = rate_fault(chip.register_bytes, "registers")) return f;
  if (auto f = rate_fault(chip.rates.register_words, "words_per_cycle.register")) return f;
  if (auto f = rate_fault(chip.rates.l2_words, "words_per_cycle.l2")) return f;
  return rate_fault(chip.rates.global_buffer_words, "words_per_cycle.global_buffer");
}

}  // namespace braid
