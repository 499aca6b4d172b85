#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace braid {

/// Rows of a chart that hand over to rows below them, each pair once.
using RowEdges = std::set<std::pair<std::size_t, std::size_t>>;

/// The lane, from 0, that each row's dot is in: that of a row before it which hands over to it and
/// to none before it, else the first one that no line runs along. A chain has one lane. Cost: the
/// square of the rows.
std::vector<std::size_t> lanes_of(std::size_t rows, const RowEdges& edges);

}  // namespace braid
