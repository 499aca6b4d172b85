#include "braid/chip/grown_sets.h"

#include <random>

namespace braid {
namespace {

constexpr std::size_t kFirstSlots = 256;

}  // namespace

GrownSets::GrownSets(std::size_t size)
    : size_(size),
      words_(size / 64 + 1),
      bits_(words_, 0),
      member_(size),
      hashes_{0},
      slots_(kFirstSlots, 0) {
  std::mt19937_64 dice(1);
  for (std::uint64_t& hash : member_) hash = dice();
  slots_[0] = 1;
}

Bitset GrownSets::set(std::uint32_t id) const {
  Bitset members(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    if (has(id, i)) members.set(i);
  }
  return members;
}

std::uint32_t GrownSets::with(std::uint32_t id, std::size_t member) {
  const std::uint64_t hash = hashes_[id] ^ member_[member];
  std::size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const std::uint32_t known = slots_[slot] - 1;
    if (hashes_[known] == hash && is(known, id, member)) return known;
  }
  const auto added = static_cast<std::uint32_t>(count());
  for (std::size_t word = 0; word < words_; ++word) bits_.push_back(bits_[id * words_ + word]);
  bits_[added * words_ + member / 64] |= std::uint64_t{1} << (member % 64);
  hashes_.push_back(hash);
  slots_[slot] = added + 1;
  if (2 * count() > slots_.size()) grow();
  return added;
}

bool GrownSets::is(std::uint32_t id, std::uint32_t of, std::size_t member) const {
  for (std::size_t word = 0; word < words_; ++word) {
    const std::uint64_t added =
        word == member / 64 ? std::uint64_t{1} << (member % 64) : std::uint64_t{0};
    if (bits_[id * words_ + word] != (bits_[of * words_ + word] | added)) return false;
  }
  return true;
}

void GrownSets::grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (std::size_t id = 0; id < count(); ++id) {
    std::size_t slot = hashes_[id] & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<std::uint32_t>(id) + 1;
  }
}

}  // namespace braid
