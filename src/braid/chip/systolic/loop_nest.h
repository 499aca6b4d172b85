#pragma once

#include <array>
#include <cstdint>

namespace braid {

/// Dimensions of a nest; operand d of the three is the one that lacks dimension d.
enum class NestDim : std::uint8_t { m, n, k };
inline constexpr int kNestDims = 3;

/// Operands by the dimension that they lack: second (k × n), first (m × k), output (m × n).
enum class NestOperand : std::uint8_t { second, first, output };

/// An operand of a convolution, in which neighbouring positions share words: a piece of p positions
/// holds min(p, slope · p + offset) words for each element of the operand's other dimension. The
/// other operands, and none without a window, hold p.
///
/// A kernel of F taps that moves by whole rows of the image: slope is what the input has more
/// positions than the output, over F; offset is the halo, (rows of the kernel − stride) rows, over
/// F, or 0.
struct NestWindow {
  bool used = false;
  NestOperand operand = NestOperand::first;  ///< `first` or `output`.
  NestDim positions = NestDim::m;            ///< One of its two dimensions.
  double slope = 1, offset = 0;
  friend bool operator==(const NestWindow&, const NestWindow&) = default;
};

/// `batch` independent GEMMs of an m × k with a k × n matrix, each giving m × n. All sizes ≥ 1.
struct LoopNest {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  NestWindow window;
  /// Operands (1 << operand) that what comes before makes, or what comes after takes, tile by tile:
  /// they lie in the buffers as others do, but never pass between HBM and the global buffer.
  std::uint8_t on_chip = 0;
  friend bool operator==(const LoopNest&, const LoopNest&) = default;
};

inline LoopNest gemm_nest(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  return {.batch = batch, .m = m, .n = n, .k = k, .window = {}, .on_chip = 0};
}

inline bool is_on_chip(const LoopNest& nest, NestOperand operand) {
  return (nest.on_chip >> static_cast<int>(operand) & 1) != 0;
}

inline LoopNest with_on_chip(LoopNest nest, NestOperand operand) {
  nest.on_chip = static_cast<std::uint8_t>(nest.on_chip | 1 << static_cast<int>(operand));
  return nest;
}

inline double nest_macs(const LoopNest& nest) {
  return static_cast<double>(nest.batch) * static_cast<double>(nest.m) *
         static_cast<double>(nest.n) * static_cast<double>(nest.k);
}

/// Words of an operand's tile of `extent` = {m, n, k} elements, of one batch.
double tile_words(const LoopNest& nest, NestOperand operand, const std::array<double, 3>& extent);

/// Words of an operand, of one batch, when its dimensions are cut into `pieces` = {m, n, k} pieces
/// each, as even as they can be, and all tiles are counted once.
double swept_words(const LoopNest& nest, NestOperand operand,
                   const std::array<std::int64_t, 3>& pieces);

/// Words of all three operands, each once, of all batches.
double compulsory_words(const LoopNest& nest);
/// Of those that pass through HBM.
double compulsory_hbm_words(const LoopNest& nest);

}  // namespace braid
