#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "braid/backend/kernel/tensor_form.h"
#include "braid/program/dense_tensor.h"

namespace braid {

/// How the numbers of a tensor [samples × channels × rows × columns] lie in memory. All layouts
/// hold the same numbers without gaps.
enum class ImageLayout : std::uint8_t {
  plain,          ///< As ONNX has them.
  channels_last,  ///< Samples, rows, columns, channels.
  /// Samples, groups of channels, rows, columns, channels of the group: groups of as many as a
  /// vector register has numbers (channel_block()).
  blocked,
};
inline constexpr std::array<ImageLayout, 3> all_layouts{
    ImageLayout::plain, ImageLayout::channels_last, ImageLayout::blocked};

std::string_view name_of(ImageLayout layout);

/// 16 where the processor has AVX-512, else 8.
std::int64_t channel_block();

/// Whether a tensor can lie like that: all can be plain, others are of rank 4 and f32, with whole
/// groups of channels where they are blocked.
bool can_lie(const TensorForm& form, ImageLayout layout);

/// The same numbers in another layout. `to` has the form of `from`.
/// Precondition: the tensor can lie in both.
void turn_layout(const DenseTensor& from, ImageLayout from_layout, DenseTensor& to,
                 ImageLayout to_layout);

/// Sizes of [samples × rows × columns × run].
struct ExchangedSizes {
  std::int64_t samples = 1, rows = 1, columns = 1, run = 1;
};

/// Numbers of those sizes as [samples × columns × rows × run]. `from` and `to` do not overlap.
void exchange_inner(const float* from, float* to, const ExchangedSizes& sizes);

}  // namespace braid
