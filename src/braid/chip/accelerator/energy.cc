#include "braid/chip/accelerator/energy.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace braid {
namespace {

// Jouppi et al. 2021, table 2: joules of an access of 64 bits.
struct SramPoint {
  double bytes, access_j;
};
constexpr SramPoint kSram[] = {{8 * 1024, 7.5e-12}, {32 * 1024, 8.5e-12}, {1024 * 1024, 14e-12}};
constexpr double kAccessBytes = 8;

constexpr double kReadAndWrite = 2;

}  // namespace

std::optional<double> published_mac_j(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return 0.59e-12;  // 0.21 + 0.38
    case Dtype::f16:
      return 0.72e-12;  // 0.34 + 0.38
    case Dtype::f32:
      return 1.69e-12;  // 1.31 + 0.38
    case Dtype::i8:
      return 0.10e-12;  // 0.07 + 0.03
    default:
      return std::nullopt;
  }
}

double sram_byte_j(double bytes) {
  const double within = std::clamp(bytes, std::begin(kSram)->bytes, std::rbegin(kSram)->bytes);
  const auto* above = std::find_if(std::next(std::begin(kSram)), std::prev(std::end(kSram)),
                                   [&](const SramPoint& point) { return within <= point.bytes; });
  const SramPoint& below = *std::prev(above);
  const double share = std::log(within / below.bytes) / std::log(above->bytes / below.bytes);
  return below.access_j * std::pow(above->access_j / below.access_j, share) / kAccessBytes;
}

ChipActivity& ChipActivity::operator+=(const ChipActivity& more) {
  macs += more.macs;
  vector_operations += more.vector_operations;
  register_bytes += more.register_bytes;
  tensor_l2_bytes += more.tensor_l2_bytes;
  vector_l2_bytes += more.vector_l2_bytes;
  global_buffer_bytes += more.global_buffer_bytes;
  hbm_bytes += more.hbm_bytes;
  link_bytes += more.link_bytes;
  seconds += more.seconds;
  return *this;
}

ChipActivity operator*(double times, const ChipActivity& one) {
  ChipActivity product = one;
  for (double* amount :
       {&product.macs, &product.vector_operations, &product.register_bytes,
        &product.tensor_l2_bytes, &product.vector_l2_bytes, &product.global_buffer_bytes,
        &product.hbm_bytes, &product.link_bytes, &product.seconds}) {
    *amount *= times;
  }
  return product;
}

ChipEnergy chip_energy(const Accelerator& chip, const EnergyFigures& figures,
                       const ChipActivity& activity) {
  ChipEnergy energy;
  energy.arithmetic_j =
      activity.macs * figures.mac_j + activity.vector_operations * figures.vector_operation_j;
  const double sram_j = activity.tensor_l2_bytes * sram_byte_j(chip.tensor.l2_bytes) +
                        activity.vector_l2_bytes * sram_byte_j(chip.vector.l2_bytes) +
                        activity.global_buffer_bytes * sram_byte_j(chip.global_buffer_bytes);
  energy.on_chip_j =
      activity.register_bytes * figures.register_byte_j + figures.sram_factor * sram_j;
  energy.hbm_j = activity.hbm_bytes * figures.hbm_byte_j;
  energy.link_j = activity.link_bytes * figures.link_byte_j;
  energy.static_j = activity.seconds * figures.static_w_per_um2 * die_area(chip).total_um2();
  return energy;
}

double register_bytes_per_mac(const Accelerator& chip) {
  return kReadAndWrite * word_bytes(chip) * chip.rates.register_words;
}

ChipActivity busiest_second(const Accelerator& chip) {
  const double words_to_bytes = kReadAndWrite * word_bytes(chip) * chip.clock_hz;
  ChipActivity activity;
  activity.macs = mac_units(chip) * chip.clock_hz;
  activity.vector_operations = vector_lanes(chip) * chip.clock_hz;
  activity.register_bytes = activity.macs * register_bytes_per_mac(chip);
  const double l2_bytes = chip.rates.l2_words * words_to_bytes;
  activity.tensor_l2_bytes = static_cast<double>(chip.tensor.count) * l2_bytes;
  activity.vector_l2_bytes = static_cast<double>(chip.vector.count) * l2_bytes;
  activity.global_buffer_bytes = chip.rates.global_buffer_words * words_to_bytes;
  activity.hbm_bytes = chip.hbm_bytes_per_s;
  activity.link_bytes = chip.link_bytes_per_s;
  activity.seconds = 1;
  return activity;
}

double peak_power_w(const Accelerator& chip, const EnergyFigures& figures) {
  return chip_energy(chip, figures, busiest_second(chip)).total_j();
}

}  // namespace braid
