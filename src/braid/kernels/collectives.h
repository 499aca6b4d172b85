#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "braid/kernels/form.h"
#include "braid/system/chip.h"

namespace braid {

/// A collective among devices of one node.
struct CollectiveShape {
  double devices = 0;  ///< At least 2.
  /// Of the whole buffer: what is gathered, what is reduced and scattered, what a device has to
  /// exchange or to all-reduce.
  double bytes = 0;
};

/// What the time of a collective depends on. Libraries have three protocols, from the one that
/// starts soonest to the one that moves most; the time is the least of
///
///     floor + hop · steps + delay + volume · (n / 2)^(fan - 1) / (share · bandwidth)
///     volume = passes (n - 1) / n · bytes
///
/// with no delay and share first_share, second_delay and second_share, third_delay and 1. `passes`
/// is 2 of an all-reduce, else 1.
struct CollectiveFigures {
  double floor = 0;                          ///< Seconds, the host's part included.
  double hop = 0;                            ///< Seconds for each step.
  double bandwidth = 0;                      ///< Bytes/s of a device and direction, of two devices.
  double second_delay = 0;                   ///< Seconds.
  double third_delay = 0;                    ///< Seconds.
  double first_share = 0, second_share = 0;  ///< Of the bandwidth.
  double fan = 0;  ///< 1: more devices have no less each; 2: half for twice as many.
  /// Steps: 0 n - 1, 1 log₂ n, 2 n - 1, each with a delay.
  int steps = 0;
  int whole_first = 0;  ///< 1: in the first protocol every device sends all it has to all others.
};

struct CollectiveForm {
  using Figures = CollectiveFigures;
  using Shape = CollectiveShape;
  struct Setting {
    double passes = 1;
  };
  static constexpr std::array kFields = {
      FigureField<Figures>{"floor", "s", &Figures::floor, 8e-6, 1e-7, 1e-3},
      FigureField<Figures>{"hop", "s", &Figures::hop, 1e-6, 1e-8, 1e-3},
      FigureField<Figures>{"bandwidth", "B/s", &Figures::bandwidth, 3e11, 1e8, 1e13},
      FigureField<Figures>{"second_delay", "s", &Figures::second_delay, 3e-6, 1e-8, 1e-3},
      FigureField<Figures>{"third_delay", "s", &Figures::third_delay, 1e-5, 1e-8, 1e-2},
      FigureField<Figures>{"first_share", "", &Figures::first_share, 0.1, 1e-3, 1},
      FigureField<Figures>{"second_share", "", &Figures::second_share, 0.4, 1e-3, 1},
      FigureField<Figures>{"fan", "", &Figures::fan, 1, 0.02, 4},
  };
  static constexpr std::array kOptions = {
      OptionField<Figures>{"steps", &Figures::steps, 3},
      OptionField<Figures>{"whole_first", &Figures::whole_first},
  };
  /// `format` begins with the collective: "all_reduce/fp16"; others are all_gather, reduce_scatter
  /// and alltoall.
  static std::optional<Setting> setting(const Chip& chip, std::string_view format);
  static bool applies(std::string_view /*field*/, const Setting& /*setting*/) { return true; }
  static KernelTime time(const Figures& figures, const Setting& setting, const Shape& shape);
  static double time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                        int variant);
};

}  // namespace braid
