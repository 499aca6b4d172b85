#include "braid/base/document_builder.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>

#include "braid/base/text.h"

namespace braid {
namespace {

std::uint32_t hash_of(std::string_view key) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(key));
}

}  // namespace

std::size_t KeyTable::slot_of(std::string_view text, std::string_view key,
                              std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != DocumentNode::kNone) {
    const Span& span = spans_[slots_[slot]];
    if (span.hash == hash && text.substr(span.offset, span.length) == key) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void KeyTable::grow() {
  slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), DocumentNode::kNone);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t number = 0; number < spans_.size(); ++number) {
    std::size_t slot = spans_[number].hash & mask;
    while (slots_[slot] != DocumentNode::kNone) slot = (slot + 1) & mask;
    slots_[slot] = number;
  }
}

std::uint32_t KeyTable::intern(std::string_view text, std::uint32_t offset, std::uint32_t length) {
  if (spans_.size() * 2 >= slots_.size()) grow();
  const std::string_view key = text.substr(offset, length);
  const std::uint32_t hash = hash_of(key);
  const std::size_t slot = slot_of(text, key, hash);
  if (slots_[slot] == DocumentNode::kNone) {
    slots_[slot] = static_cast<std::uint32_t>(spans_.size());
    spans_.push_back({offset, length, hash});
  }
  return slots_[slot];
}

std::uint32_t KeyTable::find(std::string_view text, std::string_view key) const {
  return slots_.empty() ? DocumentNode::kNone : slots_[slot_of(text, key, hash_of(key))];
}

void DocumentBuilder::set_key(std::uint32_t offset, std::uint32_t length) {
  assert(in_object() && key_ == DocumentNode::kNone);
  key_ = data_.keys.intern(data_.text, offset, length);
}

DocumentNode DocumentBuilder::make(Value::Kind kind, int line) {
  assert(in_object() == (key_ != DocumentNode::kNone));
  DocumentNode node;
  node.key = key_;
  node.line = std::min(static_cast<std::uint32_t>(line), DocumentNode::kMostLines);
  node.kind = static_cast<std::uint32_t>(kind) & 0xf;
  key_ = DocumentNode::kNone;
  return node;
}

void DocumentBuilder::add(Value::Kind kind, int line, std::uint64_t bits) {
  DocumentNode node = make(kind, line);
  node.set_bits(bits);
  pending_.push_back(node);
}

void DocumentBuilder::add_integer(std::int64_t value, int line) {
  add(Value::Kind::integer, line, std::bit_cast<std::uint64_t>(value));
}

void DocumentBuilder::add_number(double value, int line) {
  add(Value::Kind::number, line, std::bit_cast<std::uint64_t>(value));
}

void DocumentBuilder::add_string(std::uint32_t offset, std::uint32_t length, int line) {
  add(Value::Kind::string, line, static_cast<std::uint64_t>(length) << 32 | offset);
}

void DocumentBuilder::open(Value::Kind kind, int line) {
  if (open_.size() >= kDeepestNesting) {
    throw Error(Where{data_.file, line, {}},
                "nested deeper than " + std::to_string(kDeepestNesting) + " levels");
  }
  open_.push_back({make(kind, line), pending_.size()});
}

std::uint32_t DocumentBuilder::place(const DocumentNode& node) {
  if (data_.nodes.size() == DocumentNode::kNone - 1)
    throw Error(Where{data_.file, 0, {}}, "too many values");
  const std::uint32_t index = data_.nodes.push(node);
  if (node.is_container()) {
    for (std::uint32_t i = 0; i < node.high; ++i) data_.nodes[node.low + i].parent = index;
  }
  return index;
}

void DocumentBuilder::check_distinct_keys(const Frame& frame) {
  ++objects_;
  last_object_.resize(data_.keys.size(), 0);
  for (std::size_t i = frame.first_pending; i < pending_.size(); ++i) {
    std::uint32_t& last = last_object_[pending_[i].key];
    if (last == objects_) {
      throw Error(Where{data_.file, static_cast<int>(pending_[i].line), {}},
                  "duplicate key " + in_quotes(data_.key(pending_[i].key)), "keep one of the two");
    }
    last = objects_;
  }
}

void DocumentBuilder::close() {
  assert(!open_.empty() && key_ == DocumentNode::kNone);
  const Frame frame = open_.back();
  open_.pop_back();
  if (frame.node.value_kind() == Value::Kind::object) check_distinct_keys(frame);
  DocumentNode node = frame.node;
  node.low = data_.nodes.size();
  node.high = static_cast<std::uint32_t>(pending_.size() - frame.first_pending);
  for (std::size_t i = frame.first_pending; i < pending_.size(); ++i) place(pending_[i]);
  pending_.resize(frame.first_pending);
  pending_.push_back(node);
}

void DocumentBuilder::finish() {
  assert(open_.empty() && pending_.size() == 1);
  data_.root = place(pending_.front());
  pending_.clear();
}

}  // namespace braid
