#pragma once

#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// The candidates that someone who typed `word` most likely meant, nearest first and at most `most`
/// of them; empty when none is near. Near means few typing mistakes (insertion, deletion,
/// replacement, swap of neighbours; upper and lower case are the same) for the word's length, or
/// that one begins with the other or contains it; names that begin with the word come first. Ties
/// keep the order of the candidates.
/// Cost: length of the word x total length of the candidates; words over 100 bytes have no match.
std::vector<std::string> nearest_few(std::string_view word,
                                     std::span<const std::string_view> candidates,
                                     std::size_t most);

/// The nearest candidate, or the empty string.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

/// A remedy for an unknown name: "did you mean 'h100-sxm'?", or when nothing is near the known
/// names themselves: "known: a, b, c" (shortened when long). Empty without candidates.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// The same for any range of strings.
template <std::ranges::input_range Names>
requires std::convertible_to<std::ranges::range_reference_t<Names>, std::string_view> &&
    (!std::convertible_to<Names, std::span<const std::string_view>>)std::string
    nearest(std::string_view word, const Names& candidates) {
  return nearest(word, std::vector<std::string_view>(candidates.begin(), candidates.end()));
}
template <std::ranges::input_range Names>
requires std::convertible_to<std::ranges::range_reference_t<Names>, std::string_view> &&
    (!std::convertible_to<Names, std::span<const std::string_view>>)std::string
    did_you_mean(std::string_view word, const Names& candidates) {
  return did_you_mean(word, std::vector<std::string_view>(candidates.begin(), candidates.end()));
}

}  // namespace braid
