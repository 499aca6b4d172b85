#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "braid/program/program.h"
#include "braid/trainers/pytorch/python_text.h"

namespace braid {

/// Variables of a function: x, y and z where that will do. A result takes the name of what is read
/// for the last time where it is made, as people write `x = self.norm(x)`.
class LocalNames {
 public:
  explicit LocalNames(std::set<std::string> taken) : names_(std::move(taken)) {}

  /// Once for each statement that will read the value.
  void will_be_read(ValueId id) { ++reads_[id]; }
  /// A value of its own name.
  const std::string& bind(ValueId id, const std::string& wanted);
  const std::string& name(ValueId id) const { return bound_.at(id); }
  bool has(ValueId id) const { return bound_.contains(id); }

  /// A statement reads these values: the names that are free after it, in their order.
  std::vector<std::string> read(std::span<const ValueId> ids);
  /// A result of that statement: takes the first free name of x, y and z, else one of these that is
  /// not in use, else `wanted`.
  const std::string& bind_result(ValueId id, std::vector<std::string>& free,
                                 const std::string& wanted);

 private:
  PythonNames names_;
  std::map<ValueId, std::string> bound_;
  std::map<ValueId, int> reads_;
};

}  // namespace braid
