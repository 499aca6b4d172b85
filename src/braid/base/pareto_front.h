#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace braid {

// Labels of which none is as good as another. `no_worse(a, b)`: is `a` at least as good as `b` in
// all that counts? Linear in the labels, which keep the order in which they came.

/// Is one of the labels at least as good?
template <typename Labels, typename Label, typename NoWorse>
bool is_dominated(const Labels& front, const Label& label, const NoWorse& no_worse) {
  return std::any_of(front.begin(), front.end(),
                     [&](const auto& other) { return no_worse(other, label); });
}

/// Adds a label that is not dominated in place of those from `begin` on that are no better.
template <typename Label, typename NoWorse>
void put_in_front(std::vector<Label>& front, const Label& label, const NoWorse& no_worse,
                  std::size_t begin = 0) {
  front.erase(std::remove_if(front.begin() + static_cast<std::ptrdiff_t>(begin), front.end(),
                             [&](const Label& other) { return no_worse(label, other); }),
              front.end());
  front.push_back(label);
}

}  // namespace braid
