#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {

/// Reads fields of messages; the sizes of inner messages are held against those around them.
class OnnxWire {
  using Format = google::protobuf::internal::WireFormatLite;
  using Stream = google::protobuf::io::CodedInputStream;

 public:
  static constexpr std::uint32_t most_name_bytes = 1 << 16;

  OnnxWire(Stream& in, const std::string& file) : in_(in), file_(file) {}

  /// Calls `read(field)` for each field of the message in hand, which must consume it with one of
  /// the functions below.
  template <typename Read>
  void fields(Read read) {
    for (;;) {
      tag_ = in_.ReadTag();
      if (tag_ == 0) {
        if (!in_.ConsumedEntireMessage()) broken();
        return;
      }
      read(Format::GetTagFieldNumber(tag_));
    }
  }

  /// Reads an inner message with `read(field)`.
  template <typename Read>
  void message(Read read) {
    message_of([&] { fields(read); });
  }
  /// Reads an inner message with `read_all()`, which calls fields().
  template <typename ReadAll>
  void message_of(ReadAll read_all) {
    const Stream::Limit outer = begin();
    read_all();
    in_.PopLimit(outer);
  }

  void skip() {
    // Skipping over an end of group has no meaning outside of one.
    if (!Format::SkipField(&in_, tag_)) broken();
  }

  std::int64_t integer() {
    need(Format::WIRETYPE_VARINT);
    return varint();
  }

  /// A name, until the next one is read.
  const std::string& text() {
    const std::uint32_t size = length();
    if (size > most_name_bytes) fail(fmt::format("a name has {} bytes", size));
    if (!in_.ReadString(&text_, static_cast<int>(size))) broken();
    if (!is_utf8(text_)) fail("a name is not UTF-8");
    return text_;
  }

  /// The size of a field of bytes, which are passed over.
  std::uint32_t pass_over() {
    const std::uint32_t size = length();
    if (!in_.Skip(static_cast<int>(size))) broken();
    return size;
  }

  /// The bytes of a field, unless there are more than `most`; says how many there are.
  std::uint32_t bytes_up_to(std::uint32_t most, std::string& value) {
    const std::uint32_t size = length();
    const bool done = size <= most ? in_.ReadString(&value, static_cast<int>(size))
                                   : in_.Skip(static_cast<int>(size));
    if (!done) broken();
    return size;
  }

  /// Repeated integers, packed or one at a time.
  template <typename Add>
  void integers(Add add) {
    packed(Format::WIRETYPE_VARINT, [&] { add(varint()); });
  }
  template <typename Add>
  void floats(Add add) {
    packed(Format::WIRETYPE_FIXED32, [&] { add(real32()); });
  }
  template <typename Add>
  void doubles(Add add) {
    packed(Format::WIRETYPE_FIXED64, [&] {
      std::uint64_t bits = 0;
      if (!in_.ReadLittleEndian64(&bits)) broken();
      add(std::bit_cast<double>(bits));
    });
  }
  double real() {
    need(Format::WIRETYPE_FIXED32);
    return real32();
  }

  [[noreturn]] void fail(const std::string& message, const std::string& remedy = {}) const {
    throw Error(Where{file_, 0, ""}, message, remedy);
  }

 private:
  [[noreturn]] void broken() const {
    fail(fmt::format("is no ONNX model, or only part of one: byte {} makes no sense",
                     in_.CurrentPosition()),
         "export or copy it again");
  }

  void need(Format::WireType type) const {
    if (Format::GetTagWireType(tag_) != type) broken();
  }

  std::int64_t varint() {
    std::uint64_t value = 0;
    if (!in_.ReadVarint64(&value)) broken();
    return static_cast<std::int64_t>(value);
  }

  double real32() {
    std::uint32_t bits = 0;
    if (!in_.ReadLittleEndian32(&bits)) broken();
    return static_cast<double>(std::bit_cast<float>(bits));
  }

  /// The length of what follows, which must lie inside the message around it.
  std::uint32_t length() {
    need(Format::WIRETYPE_LENGTH_DELIMITED);
    std::uint32_t size = 0;
    if (!in_.ReadVarint32(&size) || size > static_cast<std::uint32_t>(in_.BytesUntilLimit())) {
      broken();
    }
    return size;
  }

  Stream::Limit begin() { return in_.PushLimit(static_cast<int>(length())); }

  template <typename ReadOne>
  void packed(Format::WireType single, ReadOne read_one) {
    if (Format::GetTagWireType(tag_) == single) {
      read_one();
      return;
    }
    const Stream::Limit outer = begin();
    while (in_.BytesUntilLimit() > 0) read_one();
    in_.PopLimit(outer);
  }

  Stream& in_;
  const std::string& file_;
  std::uint32_t tag_ = 0;
  std::string text_;
};

}  // namespace braid
