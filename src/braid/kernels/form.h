#pragma once

#include <string_view>

namespace braid {

// A *form* says what the time of one operation depends on, for any chip: a closed expression with
// named figures. A type that is one has
//
//     Figures             plain struct of doubles, and of ints for what libraries do differently
//     kFields, kOptions   these, as FigureField and OptionField
//     Shape, Setting      one call; what is known of the chip and the format beforehand
//     setting(chip, format)          nullopt where the chip lacks a figure or the format is unknown
//     applies(field, setting)        whether a figure has a meaning there
//     time(figures, setting, shape)  the least over variants that a library may choose from (tiles,
//                                    splits), as a KernelTime
//     time_of(figures, setting, shape, variant)   of one of them

/// A figure of a form, as it is fitted and stored.
template <class Figures>
struct FigureField {
  std::string_view name;
  std::string_view unit;  ///< "s", "B/s"; empty: a ratio or a count.
  double Figures::*field = nullptr;
  double start = 0;            ///< Where fits begin and what they are drawn to.
  double least = 0, most = 0;  ///< Bounds.
  bool of_chip = false;        ///< One figure for all backends and formats of a chip.
};

/// What libraries do differently: 0 to `ways - 1`.
template <class Figures>
struct OptionField {
  std::string_view name;
  int Figures::*field = nullptr;
  int ways = 2;
};

/// The least time of a kernel over the variants that a library may choose from.
struct KernelTime {
  double time_s = 0;
  int variant = 0;  ///< Which one that is; a number of the form's own.
};

/// Of variants 0 to `count - 1`.
template <class TimeOf>
KernelTime least_time(int count, const TimeOf& time_of) {
  KernelTime least{time_of(0), 0};
  for (int variant = 1; variant < count; ++variant) {
    const double time_s = time_of(variant);
    if (time_s < least.time_s) least = {time_s, variant};
  }
  return least;
}

}  // namespace braid
