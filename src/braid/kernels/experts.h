#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "braid/base/rounding.h"
#include "braid/kernels/form.h"
#include "braid/kernels/machine.h"
#include "braid/kernels/number_format.h"

namespace braid {

/// Rows of y that a tile of a grouped GEMM may have.
inline constexpr std::array kExpertTileRows = {8.0, 16.0, 32.0, 64.0, 128.0};

/// Tiles of so many rows that an expert with `rows` of them takes; what rounding adds to whole ones
/// takes none.
inline double expert_tiles(double rows, double tile_rows) {
  return std::ceil(rows / tile_rows - kToleranceShare);
}

/// The experts of one layer, and the rank of an expert-parallel group that has most to do.
struct ExpertShape {
  double tokens = 0;  ///< Of the whole group.
  double hidden = 0;
  double intermediate = 0;  ///< Of one expert, before it is split.
  double experts_per_token = 0, experts = 0;
  double tp = 1, ep = 1;  ///< Ranks over which an expert is split, and experts are dealt out.
  /// 0: all experts get alike many tokens. Else these are drawn from a power law of that exponent.
  double skew = 0;
};

/// How many rows the experts of that rank get.
struct ExpertLoad {
  double rows = 0;    ///< Tokens, each as often as it has experts here.
  double active = 0;  ///< Experts that have any.
  std::array<double, kExpertTileRows.size()> tiles{};  ///< Tiles of as many rows, over all experts.
};

/// With a skew: the quantiles of the power law's density `x^-skew`, from 1 to 0.8 · tokens (from
/// 0.01 to 2 where there are fewer rows than experts), the largest on this rank and then every
/// ep-th. Linear in the experts.
ExpertLoad expert_load(const ExpertShape& shape);

/// What the time of the experts of one layer depends on: routing, permuting, the two grouped GEMMs
/// with their activation, and combining.
///
/// Of each GEMM of n by k, tiles of `tm × 128` or `tm × 64` of all active experts, one after the
/// other on the SMs; compute, loads, turns and missed as in gemm.h:
///
///     work   = (compute⁴ + loads⁴)^¼
///     all    = turns (k · work + block (0.2 + 0.8 tm tn / 16384))
///     one    = k · max(work, step) + epilogue      k up to a multiple of 64 or 16
///     tiles  = (all² + one²)^½
///     bytes  = active n k b_w missed(weights) + rows (k b_x + 2 n)
///     gemm   = (tiles^overlap + (bytes / (memory · bandwidth))^overlap)^(1 / overlap)
///     moved  = 4 rows (hidden + intermediate / tp) / move
///     time   = (gemm₁ + gemm₂) (1 + clock_loss u³) + moved + tokens · token + floor
///
/// The time is the least over tiles.
struct ExpertFigures {
  double peak = 0;         ///< Of the dense peak of the format.
  double feed = 0;         ///< Bytes/s into one SM.
  double step = 0;         ///< The least seconds for one k.
  double epilogue = 0;     ///< Seconds, latency of a tile.
  double block = 0;        ///< Seconds of one SM for a tile of 128 × 128.
  double whole_waves = 0;  ///< Share that waits for the slowest SM.
  double memory = 0;       ///< Of the specified bandwidth.
  double l2_gain = 0;      ///< Bandwidth of L2 over that of memory.
  double cache = 0;        ///< Of L2, what keeps weights until the next call.
  double overlap = 0;      ///< 1: computing and memory one after the other; large: the longer.
  double clock_loss = 0;   ///< By how much tiles take longer where tensor cores are always busy.
  double move = 0;         ///< Bytes/s, permuting, activation and combining.
  double token = 0;        ///< Seconds for each token of the group.
  double floor = 0;        ///< Seconds.
  int large_tiles = 0;     ///< 1: tiles have 64 rows at least.
  int moves_all = 0;       ///< 1: rows of the group's other ranks are moved too.
  int short_stage = 0;     ///< 1: k goes by 16, not by 64.
};

struct ExpertForm {
  using Figures = ExpertFigures;
  struct Shape {
    ExpertShape of;
    ExpertLoad load;
  };
  struct Setting {
    KernelMachine machine;
    KernelFormat format;
    double first_gemms = 2;  ///< GEMMs of the hidden state: 2 with a gate.
  };
  static constexpr std::array kFields = {
      FigureField<Figures>{"peak", "", &Figures::peak, 0.6, 0.02, 1.1},
      FigureField<Figures>{"feed", "B/s", &Figures::feed, 100e9, 1e9, 1e13},
      FigureField<Figures>{"step", "s", &Figures::step, 3e-9, 1e-11, 1e-6},
      FigureField<Figures>{"epilogue", "s", &Figures::epilogue, 3e-6, 1e-8, 1e-3},
      FigureField<Figures>{"block", "s", &Figures::block, 1e-6, 1e-8, 1e-3},
      FigureField<Figures>{"whole_waves", "", &Figures::whole_waves, 0.5, 0.05, 1},
      FigureField<Figures>{"memory", "", &Figures::memory, 0.8, 0.05, 1},
      FigureField<Figures>{"l2_gain", "", &Figures::l2_gain, 2, 1, 20},
      FigureField<Figures>{"cache", "", &Figures::cache, 0.7, 0.1, 1.1},
      FigureField<Figures>{"overlap", "", &Figures::overlap, 2, 1, 12},
      FigureField<Figures>{"clock_loss", "", &Figures::clock_loss, 0.2, 0.01, 2},
      FigureField<Figures>{"move", "B/s", &Figures::move, 2e12, 1e10, 1e15},
      FigureField<Figures>{"token", "s", &Figures::token, 1e-9, 1e-12, 1e-5},
      FigureField<Figures>{"floor", "s", &Figures::floor, 1.5e-5, 1e-7, 1e-3},
  };
  static constexpr std::array kOptions = {
      OptionField<Figures>{"large_tiles", &Figures::large_tiles},
      OptionField<Figures>{"moves_all", &Figures::moves_all},
      OptionField<Figures>{"short_stage", &Figures::short_stage},
  };
  /// `format`: "bf16/cutlass", a name of kernel_format() and that of a kernel, in which "nongated"
  /// says that there is no gate.
  static std::optional<Setting> setting(const Chip& chip, std::string_view format);
  static bool applies(std::string_view /*field*/, const Setting& /*setting*/) { return true; }
  static Shape shape(const ExpertShape& of) { return {of, expert_load(of)}; }
  /// Sizes of at least 1. Cost: 10 tiles, two GEMMs each.
  static KernelTime time(const Figures& figures, const Setting& setting, const Shape& shape);
  static double time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                        int variant);
};

}  // namespace braid
