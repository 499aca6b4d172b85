#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid {

/// A set of small integers [0, size), as bits. Sets of up to 64 members take one word and no memory
/// of their own. Operations on two sets want equal sizes.
class Bitset {
 public:
  Bitset() = default;
  explicit Bitset(std::size_t size) : size_(size), more_(size > 64 ? (size - 1) / 64 : 0, 0) {}

  std::size_t size() const { return size_; }
  bool test(std::size_t i) const { return (word(i / 64) >> (i % 64) & 1) != 0; }
  void set(std::size_t i) { word(i / 64) |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { word(i / 64) &= ~(std::uint64_t{1} << (i % 64)); }

  std::size_t count() const {
    auto total = static_cast<std::size_t>(std::popcount(first_));
    for (const std::uint64_t bits : more_) total += static_cast<std::size_t>(std::popcount(bits));
    return total;
  }
  bool any() const {
    return first_ != 0 ||
           std::any_of(more_.begin(), more_.end(), [](auto bits) { return bits != 0; });
  }
  bool is_subset_of(const Bitset& other) const {
    assert(size_ == other.size_);
    if ((first_ & ~other.first_) != 0) return false;
    for (std::size_t i = 0; i < more_.size(); ++i) {
      if ((more_[i] & ~other.more_[i]) != 0) return false;
    }
    return true;
  }
  bool intersects(const Bitset& other) const {
    assert(size_ == other.size_);
    if ((first_ & other.first_) != 0) return true;
    for (std::size_t i = 0; i < more_.size(); ++i) {
      if ((more_[i] & other.more_[i]) != 0) return true;
    }
    return false;
  }

  Bitset& operator|=(const Bitset& other) {
    assert(size_ == other.size_);
    first_ |= other.first_;
    for (std::size_t i = 0; i < more_.size(); ++i) more_[i] |= other.more_[i];
    return *this;
  }
  Bitset& operator&=(const Bitset& other) {
    assert(size_ == other.size_);
    first_ &= other.first_;
    for (std::size_t i = 0; i < more_.size(); ++i) more_[i] &= other.more_[i];
    return *this;
  }
  /// Removes the members of `other`.
  Bitset& operator-=(const Bitset& other) {
    assert(size_ == other.size_);
    first_ &= ~other.first_;
    for (std::size_t i = 0; i < more_.size(); ++i) more_[i] &= ~other.more_[i];
    return *this;
  }
  friend Bitset operator|(Bitset a, const Bitset& b) { return a |= b; }
  friend Bitset operator&(Bitset a, const Bitset& b) { return a &= b; }
  friend Bitset operator-(Bitset a, const Bitset& b) { return a -= b; }

  /// Calls `visit(i)` for each member, in ascending order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t at = 0; at <= more_.size(); ++at) {
      for (std::uint64_t bits = word(at); bits != 0; bits &= bits - 1) {
        visit(at * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  }

  /// Of a set of at most 64 members: one bit each.
  std::uint64_t bits() const {
    assert(more_.empty());
    return first_;
  }

  std::size_t hash() const {
    std::uint64_t value = (first_ + 0x9e3779b97f4a7c15U) * 0xff51afd7ed558ccdU;
    for (const std::uint64_t bits : more_) {
      value = ((value ^ (value >> 32)) + bits) * 0xc4ceb9fe1a85ec53U;
    }
    return static_cast<std::size_t>(value ^ (value >> 32));
  }

  friend bool operator==(const Bitset&, const Bitset&) = default;
  /// An arbitrary total order of sets of one size.
  friend bool operator<(const Bitset& a, const Bitset& b) {
    return a.first_ != b.first_ ? a.first_ < b.first_ : a.more_ < b.more_;
  }

 private:
  std::uint64_t word(std::size_t at) const { return at == 0 ? first_ : more_[at - 1]; }
  std::uint64_t& word(std::size_t at) { return at == 0 ? first_ : more_[at - 1]; }

  std::size_t size_ = 0;
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> more_;
};

struct BitsetHash {
  std::size_t operator()(const Bitset& set) const { return set.hash(); }
};

}  // namespace braid
