#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/frontend/onnx_model.h"

namespace braid {

/// Numbers names by first occurrence.
class OnnxNames {
 public:
  explicit OnnxNames(std::size_t expected) { numbers_.reserve(expected); }

  std::int32_t number(std::string_view name) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    const auto next = static_cast<std::int32_t>(names_.size());
    names_.emplace_back(name);
    numbers_.emplace(names_.back(), next);
    return next;
  }
  std::vector<std::string> take() {
    numbers_.clear();
    return {std::make_move_iterator(names_.begin()), std::make_move_iterator(names_.end())};
  }

 private:
  std::deque<std::string> names_;  ///< Stay where they are, for the map refers to them.
  std::unordered_map<std::string_view, std::int32_t> numbers_;
};

/// A name of its own for each node: the one that it has, else that of its first output. ONNX asks
/// for none, let alone different ones: names that were there before get "#1", "#2" … behind them.
/// The operators of a Graph and the nodes of a Program that come from one node share it.
std::vector<std::string> node_names(const OnnxModel& model);

}  // namespace braid
