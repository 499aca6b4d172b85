#include "braid/kernels/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "braid/kernels/laws.h"

namespace braid {
namespace {

struct GemmTile {
  double m, n;
};
constexpr std::array kGemmTiles = {GemmTile{16, 64}, GemmTile{64, 64}, GemmTile{128, 128},
                                   GemmTile{128, 256}, GemmTile{256, 128}};
constexpr std::array kSplits = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0};
constexpr int kGemmVariants = static_cast<int>(kGemmTiles.size() * kSplits.size());
constexpr double kLeastPart = 128;
constexpr double kStage = 64;
constexpr double kLargestTile = 32768;
constexpr double kHostOverlap = 12;

/// What does not depend on the tile.
struct GemmTraffic {
  double bytes_per_s = 0;
  double memory_s = 0, quantise_s = 0;
};

GemmTraffic traffic_of(const GemmFigures& f, const GemmForm::Setting& on, const GemmShape& s) {
  const double w = s.n * s.k * on.format.weight_bytes;
  const double x = s.m * s.k * on.format.activation_bytes;
  const double y = 2 * s.m * s.n;
  const double cache = f.cache * on.machine.l2_bytes;
  const double again = x * std::max(0.0, s.n / f.strip_columns - 1);
  const double kept = fourth_power(std::min(cache / x, 1e3));
  GemmTraffic traffic;
  traffic.bytes_per_s = f.memory * on.machine.memory_bytes_per_s;
  traffic.memory_s = (w * missed(cache, s.cycled_bytes + x + y, f.l2_gain) +
                      (x + y) * missed(cache, w + x + y, f.l2_gain) + again / (1 + kept * kept)) /
                     traffic.bytes_per_s;
  if (on.format.quantising_reads > 0) {
    const double bytes = s.m * s.k * (2 * on.format.quantising_reads + on.format.activation_bytes);
    traffic.quantise_s = bytes / f.quantise + f.quantise_row * s.m;
  }
  return traffic;
}

bool allowed(const GemmFigures& f, const GemmShape& s, const GemmTile& tile, double split) {
  if (split > 1 && (f.splits_k == 0 || s.k / split < kLeastPart)) return false;
  if (f.rows_by_m == 0) return true;
  if (s.m > 128) return tile.m >= 128;
  return tile.m == (s.m <= 16 ? 16 : 64);
}

double tiled_time(const GemmFigures& f, const GemmForm::Setting& on, const GemmShape& s,
                  const GemmTraffic& traffic, int variant) {
  const GemmTile tile = kGemmTiles[static_cast<std::size_t>(variant) / kSplits.size()];
  const double split = kSplits[static_cast<std::size_t>(variant) % kSplits.size()];
  if (!allowed(f, s, tile, split)) return kNotDone;
  const double waves = std::ceil(s.m / tile.m) * std::ceil(s.n / tile.n) * split / on.machine.sms;
  const double turns = waves < 1 ? 1 : rounds(waves, f.whole_waves);
  const double k_part = std::ceil(s.k / split / kStage) * kStage;
  const double compute = 2 * tile.m * tile.n * on.machine.sms / (f.peak * on.machine.flops_per_s);
  const double loads =
      (tile.m * on.format.activation_bytes + tile.n * on.format.weight_bytes) / f.feed;
  const double epilogue = f.epilogue * (0.2 + 0.8 * tile.m * tile.n / kLargestTile);
  const double busy = waves * k_part * compute;
  const double u = busy / (busy + traffic.memory_s + turns * epilogue + f.floor);
  const double tile_s = turns * (k_part * side_by_side(compute, loads, f.step) + epilogue) *
                        (1 + f.clock_loss * u * u * u);
  double time = overlapped(tile_s, traffic.memory_s, f.overlap) + traffic.quantise_s;
  if (split > 1) {
    time += f.reduce + 8 * split * s.m * s.n / (f.l2_gain * traffic.bytes_per_s);
  }
  return f.floor_of_host != 0 ? overlapped(time, f.floor, kHostOverlap) : time + f.floor;
}

}  // namespace

std::optional<GemmForm::Setting> GemmForm::setting(const Chip& chip, std::string_view format) {
  const std::optional<KernelFormat> known = kernel_format(format);
  if (!known) return std::nullopt;
  const std::optional<KernelMachine> machine = kernel_machine(chip, known->multiplied);
  if (!machine) return std::nullopt;
  return Setting{*machine, *known};
}

bool GemmForm::applies(std::string_view field, const Setting& setting) {
  return !field.starts_with("quantise") || setting.format.quantising_reads > 0;
}

KernelTime GemmForm::time(const Figures& figures, const Setting& setting, const Shape& shape) {
  const GemmTraffic traffic = traffic_of(figures, setting, shape);
  return least_time(kGemmVariants, [&](int variant) {
    return tiled_time(figures, setting, shape, traffic, variant);
  });
}

double GemmForm::time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                         int variant) {
  return tiled_time(figures, setting, shape, traffic_of(figures, setting, shape), variant);
}

}  // namespace braid
