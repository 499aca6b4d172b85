#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// Which blocks have experts, '1' or '0' for each, by a --moe-layer-freq: a list that Python would
/// evaluate, of digits, commas, brackets, + and *; or a number N, for the first of every N blocks
/// (megatron/training/arguments.py: moe_freq_type). nullopt where it is neither, or a list for
/// another number of blocks.
///
///     marks_of_blocks("[0]*3+[1]*5", 8);  // "00011111"
std::optional<std::string> marks_of_blocks(std::string_view text, std::int64_t blocks);

}  // namespace braid
