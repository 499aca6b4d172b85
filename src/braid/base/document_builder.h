#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/base/document_data.h"

namespace braid {

/// Deepest nesting of arrays and objects that a document may have.
inline constexpr std::size_t kDeepestNesting = 200;

/// Assembles a document from the events of a reader, in document order. A value inside an object is
/// preceded by set_key. Strings and keys are given as places in DocumentData::text.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(DocumentData& data) : data_(data) {}

  void set_key(std::uint32_t offset, std::uint32_t length);
  void add_null(int line) { add(Value::Kind::null, line, 0); }
  void add_bool(bool value, int line) { add(Value::Kind::boolean, line, value ? 1 : 0); }
  void add_integer(std::int64_t value, int line);
  void add_number(double value, int line);
  void add_string(std::uint32_t offset, std::uint32_t length, int line);
  /// Throws Error past the nesting limit.
  void open(Value::Kind kind, int line);
  /// Throws Error when the object that ends has a key twice.
  void close();
  /// After the one root value.
  void finish();

  bool in_object() const {
    return !open_.empty() && open_.back().node.value_kind() == Value::Kind::object;
  }
  std::size_t depth() const { return open_.size(); }

 private:
  struct Frame {
    DocumentNode node;
    std::size_t first_pending;
  };

  DocumentNode make(Value::Kind kind, int line);
  void add(Value::Kind kind, int line, std::uint64_t bits);
  std::uint32_t place(const DocumentNode& node);
  void check_distinct_keys(const Frame& frame);

  DocumentData& data_;
  std::vector<Frame> open_;
  std::vector<DocumentNode> pending_;  ///< Finished children of the open containers.
  std::uint32_t key_ = DocumentNode::kNone;
  std::vector<std::uint32_t> last_object_;  ///< By key: the latest object seen to have it.
  std::uint32_t objects_ = 0;
};

}  // namespace braid
