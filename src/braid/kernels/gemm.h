#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "braid/kernels/form.h"
#include "braid/kernels/machine.h"
#include "braid/kernels/number_format.h"

namespace braid {

/// `y[m,n] = x[m,k] w[k,n]`, x and y in 16 bits.
struct GemmShape {
  double m = 0, n = 0, k = 0;
  /// Bytes of weights that are touched between two uses of these, themselves included: what fits
  /// the cache with x and y is read from there. In training, far more than any cache holds.
  double cycled_bytes = 1e15;
};

/// What the time of a GEMM depends on, on one chip with one library in one format.
///
/// For a tile of `tm × tn` of y and k in `split` parts, with b_x and b_w bytes an element:
///
///     waves     = ⌈m / tm⌉ ⌈n / tn⌉ split / SMs
///     turns     = whole_waves ⌈waves⌉ + (1 - whole_waves) max(waves, 1)
///     compute   = 2 tm tn SMs / (peak · chip's peak)         for one k, as are the next two
///     loads     = (tm b_x + tn b_w) / feed
///     tile      = turns (k / split, up to a multiple of 64, · (compute⁴ + loads⁴ + step⁴)^¼
///                        + epilogue (0.2 + 0.8 tm tn / 32768)) · (1 + clock_loss u³)
///     missed(v) = (1 + z / l2_gain) / (1 + z),  z = (cache · L2 / v)^16
///     memory    = (W missed(W_cycled + X + Y) + (X + Y) missed(W + X + Y)
///                  + X max(0, n / strip_columns - 1) (1 - kept))
///                 / (memory · bandwidth),   kept = z / (1 + z),  z = (cache · L2 / X)^8
///     core      = (tile^overlap + memory^overlap)^(1 / overlap)
///                  + [split > 1] (reduce + 8 split m n / (l2_gain · memory · bandwidth))
///     quantised = m k (2 reads + b_x) / quantise + m · quantise_row
///     time      = core + quantised + floor
///
/// `u` is the share of the time in which tensor cores are busy: clocks fall then. The time is the
/// least over the tiles 16 × 64, 64 × 64, 128 × 128, 128 × 256, 256 × 128 and 1, 2, 4 … 32 parts of
/// 128 elements of k at least.
struct GemmFigures {
  double peak = 0;           ///< Of the format's dense peak; up to 1.1, as clocks may exceed its.
  double feed = 0;           ///< Bytes/s into one SM.
  double step = 0;           ///< The least seconds for one k.
  double epilogue = 0;       ///< Seconds, of a tile of 128 × 256.
  double whole_waves = 0;    ///< Share that waits for the slowest SM.
  double memory = 0;         ///< Of the specified bandwidth.
  double l2_gain = 0;        ///< Bandwidth of L2 over that of memory.
  double cache = 0;          ///< Of L2, what keeps data until they are read again.
  double clock_loss = 0;     ///< By how much tiles take longer where tensor cores are always busy.
  double overlap = 0;        ///< 1: computing and memory one after the other; large: the longer.
  double reduce = 0;         ///< Seconds, for adding up the parts of k.
  double floor = 0;          ///< Seconds, of a kernel that does nothing.
  double strip_columns = 0;  ///< Of y, for which x is read from memory once.
  double quantise = 0;       ///< Bytes/s.
  double quantise_row = 0;   ///< Seconds.
  int splits_k = 0;          ///< 1: the library may split k.
  int rows_by_m = 0;         ///< 1: tiles have 16 rows up to m = 16, 64 up to 128, then more.
  int floor_of_host = 0;     ///< 1: kernels of more than `floor` hide it.
};

/// How GEMMs are fitted, stored and timed.
///
///     GemmForm::Setting setting = *GemmForm::setting(load_chip("h100-sxm"), "bf16");
///     double time_s = GemmForm::time(figures, setting, {4096, 4096, 4096}).time_s;
struct GemmForm {
  using Figures = GemmFigures;
  using Shape = GemmShape;
  struct Setting {
    KernelMachine machine;
    KernelFormat format;
  };
  static constexpr std::array kFields = {
      FigureField<Figures>{"peak", "", &Figures::peak, 0.75, 0.05, 1.1},
      FigureField<Figures>{"feed", "B/s", &Figures::feed, 150e9, 1e9, 1e13},
      FigureField<Figures>{"step", "s", &Figures::step, 2e-9, 1e-11, 1e-6},
      FigureField<Figures>{"epilogue", "s", &Figures::epilogue, 2e-6, 1e-8, 1e-3},
      FigureField<Figures>{"whole_waves", "", &Figures::whole_waves, 0.6, 0.05, 1},
      FigureField<Figures>{"memory", "", &Figures::memory, 0.85, 0.1, 1, true},
      FigureField<Figures>{"l2_gain", "", &Figures::l2_gain, 3, 1, 20, true},
      FigureField<Figures>{"cache", "", &Figures::cache, 0.9, 0.2, 1.1, true},
      FigureField<Figures>{"clock_loss", "", &Figures::clock_loss, 0.2, 0.01, 2},
      FigureField<Figures>{"overlap", "", &Figures::overlap, 3, 1, 12},
      FigureField<Figures>{"reduce", "s", &Figures::reduce, 2e-6, 1e-8, 1e-3},
      FigureField<Figures>{"floor", "s", &Figures::floor, 3e-6, 1e-8, 1e-3},
      FigureField<Figures>{"strip_columns", "", &Figures::strip_columns, 4096, 64, 1e6},
      FigureField<Figures>{"quantise", "B/s", &Figures::quantise, 2e12, 1e10, 1e15},
      FigureField<Figures>{"quantise_row", "s", &Figures::quantise_row, 1e-10, 1e-12, 1e-6},
  };
  static constexpr std::array kOptions = {
      OptionField<Figures>{"splits_k", &Figures::splits_k},
      OptionField<Figures>{"rows_by_m", &Figures::rows_by_m},
      OptionField<Figures>{"floor_of_host", &Figures::floor_of_host},
  };
  /// `format`: a name of kernel_format().
  static std::optional<Setting> setting(const Chip& chip, std::string_view format);
  static bool applies(std::string_view field, const Setting& setting);
  /// Sizes of at least 1. Cost: 30 tiles and splits, some 50 ns each.
  static KernelTime time(const Figures& figures, const Setting& setting, const Shape& shape);
  static double time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                        int variant);
};

}  // namespace braid
