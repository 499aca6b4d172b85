#include "braid/kernels/experts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "braid/kernels/laws.h"

namespace braid {
namespace {

constexpr std::array kExpertTileColumns = {128.0, 64.0};
constexpr int kExpertVariants =
    static_cast<int>(kExpertTileRows.size() * kExpertTileColumns.size());
constexpr double kWholeTile = 128 * 128;
constexpr double kLatencyShare = 2;

/// One of the two grouped GEMMs.
struct ExpertGemm {
  double n = 0, k = 0;
};

struct ExpertGemmTime {
  double tiles_s = 0, busy_s = 0, time_s = 0;
};

ExpertGemmTime grouped_gemm(const ExpertFigures& f, const ExpertForm::Setting& on,
                            const ExpertForm::Shape& s, const ExpertGemm& gemm, int variant) {
  const std::size_t size = static_cast<std::size_t>(variant) % kExpertTileRows.size();
  const double tm = kExpertTileRows[size];
  const double tn = kExpertTileColumns[static_cast<std::size_t>(variant) / kExpertTileRows.size()];
  const KernelFormat& format = on.format;
  const double waves = s.load.tiles[size] * std::ceil(gemm.n / tn) / on.machine.sms;
  const double compute = 2 * tm * tn * on.machine.sms / (f.peak * on.machine.flops_per_s);
  const double loads = (tm * format.activation_bytes + tn * format.weight_bytes) / f.feed;
  const double work = side_by_side(compute, loads);
  const double stage = f.short_stage != 0 ? 16 : 64;
  const double k = std::ceil(gemm.k / stage) * stage;
  const double all =
      rounds(waves, f.whole_waves) * (k * work + f.block * (0.2 + 0.8 * tm * tn / kWholeTile));
  const double one = k * std::max(work, f.step) + f.epilogue;
  const double weights = s.load.active * (on.first_gemms + 1) * s.of.hidden * s.of.intermediate /
                         s.of.tp * format.weight_bytes;
  const double bytes = s.load.active * gemm.n * gemm.k * format.weight_bytes *
                           missed(f.cache * on.machine.l2_bytes, weights, f.l2_gain) +
                       s.load.rows * (gemm.k * format.activation_bytes + gemm.n * 2);
  const double tiles = overlapped(all, one, kLatencyShare);
  return {tiles, waves * k * compute,
          overlapped(tiles, bytes / (f.memory * on.machine.memory_bytes_per_s), f.overlap)};
}

double expert_time(const ExpertFigures& f, const ExpertForm::Setting& on,
                   const ExpertForm::Shape& s, int variant) {
  if (f.large_tiles != 0 &&
      kExpertTileRows[static_cast<std::size_t>(variant) % kExpertTileRows.size()] < 64) {
    return kNotDone;
  }
  const double inner = s.of.intermediate / s.of.tp;
  const ExpertGemmTime first =
      grouped_gemm(f, on, s, {on.first_gemms * inner, s.of.hidden}, variant);
  const ExpertGemmTime second = grouped_gemm(f, on, s, {s.of.hidden, inner}, variant);
  const double u = (first.busy_s + second.busy_s) / (first.tiles_s + second.tiles_s + f.floor);
  const double moved = f.moves_all != 0 ? s.of.tokens * s.of.experts_per_token : s.load.rows;
  return (first.time_s + second.time_s) * (1 + f.clock_loss * u * u * u) +
         4 * moved * (s.of.hidden + inner) / f.move + f.token * s.of.tokens + f.floor;
}

/// Inverse of the distribution with density `x^-skew` from `least` to `most`.
double power_law(double quantile, double skew, double least, double most) {
  const double e = 1 - skew;
  const double low = std::pow(least, e);
  return std::pow(low + quantile * (std::pow(most, e) - low), 1 / e);
}

}  // namespace

ExpertLoad expert_load(const ExpertShape& s) {
  const double rows = s.tokens * s.experts_per_token;
  const auto experts = static_cast<std::size_t>(std::max(s.experts, 1.0));
  std::vector<double> shares(experts, 1);
  if (s.skew > 0) {
    // Where the exponent is 1 the formula has no value; near it, it is as good as the limit.
    const double skew = s.skew == 1 ? kAboveTolerance : s.skew;
    const bool many = rows > s.experts;
    for (std::size_t i = 0; i < experts; ++i) {
      const double quantile = 1 - (static_cast<double>(i) + 0.5) / s.experts;
      shares[i] =
          power_law(quantile, skew, many ? 1 : 0.01, many ? std::max(0.8 * s.tokens, 1.01) : 2);
    }
  }
  double all = 0;
  for (const double share : shares) all += share;
  ExpertLoad load;
  const auto here = static_cast<std::size_t>(s.experts / s.ep);
  for (std::size_t i = 0; i < here; ++i) {
    const std::size_t expert = std::min(i * static_cast<std::size_t>(s.ep), experts - 1);
    const double own = std::min(shares[expert] / all * rows, s.tokens);
    const double active = s.skew > 0 ? -std::expm1(-own) : std::min(1.0, own);
    load.rows += own;
    load.active += active;
    for (std::size_t t = 0; t < kExpertTileRows.size(); ++t) {
      load.tiles[t] += active * expert_tiles(own / active, kExpertTileRows[t]);
    }
  }
  return load;
}

std::optional<ExpertForm::Setting> ExpertForm::setting(const Chip& chip, std::string_view format) {
  const std::size_t slash = format.find('/');
  const std::optional<KernelFormat> known = kernel_format(format.substr(0, slash));
  if (!known) return std::nullopt;
  const std::optional<KernelMachine> machine = kernel_machine(chip, known->multiplied);
  if (!machine) return std::nullopt;
  const bool gated = format.find("nongated") == std::string_view::npos;
  return Setting{*machine, *known, gated ? 2.0 : 1.0};
}

KernelTime ExpertForm::time(const Figures& figures, const Setting& setting, const Shape& shape) {
  return least_time(kExpertVariants,
                    [&](int variant) { return expert_time(figures, setting, shape, variant); });
}

double ExpertForm::time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                           int variant) {
  return expert_time(figures, setting, shape, variant);
}

}  // namespace braid
