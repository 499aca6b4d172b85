#pragma once

#include <span>

namespace braid {

/// Spearman's rank correlation of two lists of equal length; equal values share their mean rank. 0
/// when either list is constant.
double rank_correlation(std::span<const double> a, std::span<const double> b);

/// How much worse than the best of `actual` the best of the `top` lowest `predicted` is, as a share
/// of the best: 0 when one of them is best. Equal predictions count in list order. Infinite entries
/// of `actual` are failures.
double top_regret(std::span<const double> predicted, std::span<const double> actual,
                  std::size_t top);

}  // namespace braid
