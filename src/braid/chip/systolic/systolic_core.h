#pragma once

#include <cstdint>

namespace braid {

//   SystolicMachine tpu{.cores = 8, .array = {.rows = 128, .columns = 128},
//                       .buffers = {.l2_words = 131072, .global_words = 67108864}};
//   map_nest(gemm_nest(2048, 1024, 1024), tpu).cost.cycles;   // nest_mapper.h

/// Which operand stays in the array's units while the dimension that it lacks streams past.
enum class ArrayFlow : std::uint8_t {
  weight_stationary,  ///< The second operand stays, m streams; k on the rows, n on the columns.
  input_stationary,   ///< The first operand stays, n streams; k on the rows, m on the columns.
  output_stationary,  ///< The output stays, k streams; m on the rows, n on the columns.
  output_stationary_turned  ///< The same with n on the rows, m on the columns.
};
inline constexpr int kArrayFlows = 4;
/// All of them, as a set of bits (1 << flow).
inline constexpr std::uint8_t kAnyArrayFlow = 0xf;

/// An array of multiply-accumulate units, one multiplication each in a cycle.
struct SystolicArray {
  std::int64_t rows = 1;        ///< Depth.
  std::int64_t columns = 1;     ///< Width.
  std::int64_t unit_words = 1;  ///< Words of the stationary operand that a unit holds.
  double words_per_cycle = 0;   ///< Between a core's L2 and its array, both ways together.
  std::uint8_t flows = kAnyArrayFlow;
  friend bool operator==(const SystolicArray&, const SystolicArray&) = default;
};

/// Buffers below HBM. Rates of 0 are without limit, here and above. A word is a number of an
/// operand, of one size for all three.
struct BufferLevels {
  double l2_words = 0;                ///< Of one core.
  bool l2_per_operand = false;        ///< Three buffers of l2_words, one for each operand.
  double global_words = 0;            ///< Of the one buffer that all cores share.
  double global_words_per_cycle = 0;  ///< Between it and all L2 together.
  double hbm_words_per_cycle = 0;     ///< Between HBM and it.
  friend bool operator==(const BufferLevels&, const BufferLevels&) = default;
};

/// Equal systolic cores with their L2, a global buffer and HBM.
struct SystolicMachine {
  std::int64_t cores = 1;
  SystolicArray array;
  BufferLevels buffers;
  friend bool operator==(const SystolicMachine&, const SystolicMachine&) = default;
};

}  // namespace braid
