#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/graph/bitset.h"

namespace braid {

/// Sets of small integers [0, size), each the empty one or another with one more member, numbered
/// in the order in which they are first met: equal sets have one number. 16 to 24 bytes a set
/// besides its bits.
class GrownSets {
 public:
  /// Has the empty set alone: number 0.
  explicit GrownSets(std::size_t size);

  std::size_t count() const { return hashes_.size(); }
  bool has(std::uint32_t id, std::size_t member) const {
    return (bits_[id * words_ + member / 64] >> (member % 64) & 1) != 0;
  }
  Bitset set(std::uint32_t id) const;

  /// The number of the set `id` with a member that it does not have; a new set's is the former
  /// count(). O(size / 64) expected.
  std::uint32_t with(std::uint32_t id, std::size_t member);

 private:
  /// Whether the set `id` is `of` with the member.
  bool is(std::uint32_t id, std::uint32_t of, std::size_t member) const;
  void grow();

  std::size_t size_, words_;
  std::vector<std::uint64_t> bits_;    ///< Of all sets, words_ each.
  std::vector<std::uint64_t> member_;  ///< A set's hash is the exclusive or of its members'.
  std::vector<std::uint64_t> hashes_;  ///< Of each set.
  std::vector<std::uint32_t> slots_;   ///< By hash, a power of two: numbers of sets plus 1, or 0.
};

}  // namespace braid
