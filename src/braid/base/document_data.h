#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/document.h"

namespace braid {

/// A node of a document, 20 bytes. Children of a container lie side by side.
struct DocumentNode {
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kMostLines = (1U << 28) - 1;

  std::uint32_t parent = kNone;
  std::uint32_t key = kNone;  ///< Index into the document's keys; kNone outside objects.
  std::uint32_t line : 28 = 0;
  std::uint32_t kind : 4 = 0;
  /// boolean: low is 0 or 1. integer, number: the 64 bits. string: offset and length in the text.
  /// array, object: first child and number of children.
  std::uint32_t low = 0;
  std::uint32_t high = 0;

  Value::Kind value_kind() const { return static_cast<Value::Kind>(kind); }
  bool is_container() const {
    return value_kind() == Value::Kind::array || value_kind() == Value::Kind::object;
  }
  std::uint64_t bits() const { return static_cast<std::uint64_t>(high) << 32 | low; }
  std::int64_t integer() const { return std::bit_cast<std::int64_t>(bits()); }
  double number() const { return std::bit_cast<double>(bits()); }
  void set_bits(std::uint64_t bits) {
    low = static_cast<std::uint32_t>(bits);
    high = static_cast<std::uint32_t>(bits >> 32);
  }
};
static_assert(sizeof(DocumentNode) == 20);

/// Nodes by index, in blocks: growth never copies, so that peak memory is the final size.
class NodeStore {
 public:
  DocumentNode& operator[](std::uint32_t index) { return blocks_[index >> kShift][index & kMask]; }
  const DocumentNode& operator[](std::uint32_t index) const {
    return blocks_[index >> kShift][index & kMask];
  }
  std::uint32_t size() const { return size_; }
  std::uint32_t push(const DocumentNode& node) {
    if ((size_ & kMask) == 0) blocks_.push_back(std::make_unique<DocumentNode[]>(kMask + 1));
    (*this)[size_] = node;
    return size_++;
  }

 private:
  static constexpr std::uint32_t kShift = 12;
  static constexpr std::uint32_t kMask = (1U << kShift) - 1;
  std::vector<std::unique_ptr<DocumentNode[]>> blocks_;
  std::uint32_t size_ = 0;
};

/// The distinct keys of a document, numbered from 0 by first appearance.
class KeyTable {
 public:
  /// Number of the key at `offset` of `text`, added when new.
  std::uint32_t intern(std::string_view text, std::uint32_t offset, std::uint32_t length);
  /// Number of the key, or DocumentNode::kNone.
  std::uint32_t find(std::string_view text, std::string_view key) const;
  std::string_view key(std::string_view text, std::uint32_t number) const {
    return text.substr(spans_[number].offset, spans_[number].length);
  }
  std::size_t size() const { return spans_.size(); }

 private:
  struct Span {
    std::uint32_t offset;
    std::uint32_t length;
    std::uint32_t hash;
  };
  std::size_t slot_of(std::string_view text, std::string_view key, std::uint32_t hash) const;
  void grow();

  std::vector<Span> spans_;
  std::vector<std::uint32_t> slots_;  ///< Open addressing; a power of two; kNone is free.
};

/// What a Document owns. `text` holds every string and key (for JSON the file's own text, with
/// escapes replaced in place).
struct DocumentData {
  std::string file;
  std::string text;
  NodeStore nodes;
  KeyTable keys;
  std::uint32_t root = DocumentNode::kNone;

  std::string_view key(std::uint32_t number) const { return keys.key(text, number); }
};

}  // namespace braid
