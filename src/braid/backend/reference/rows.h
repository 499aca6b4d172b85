#pragma once

#include <cstdint>
#include <vector>

#include "braid/base/index.h"
#include "braid/program/shape.h"

namespace braid {

/// Calls `change(row)` with each row of a tensor along `axes` as a vector of its numbers, and puts
/// what it has become back.
template <typename Number, typename Change>
void change_rows(std::vector<Number>& numbers, const RowPlaces& places, Change change) {
  std::vector<Number> row(places.offsets.size());
  for (const std::int64_t start : places.starts) {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = numbers[at(start + places.offsets[c])];
    change(row);
    for (std::size_t c = 0; c < row.size(); ++c) numbers[at(start + places.offsets[c])] = row[c];
  }
}

/// The result of `reduce(row)` for each row.
template <typename Number, typename Reduce>
auto reduced_rows(const std::vector<Number>& numbers, const RowPlaces& places, Reduce reduce) {
  std::vector<decltype(reduce(numbers))> results;
  results.reserve(places.starts.size());
  std::vector<Number> row(places.offsets.size());
  for (const std::int64_t start : places.starts) {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = numbers[at(start + places.offsets[c])];
    results.push_back(reduce(row));
  }
  return results;
}

}  // namespace braid
