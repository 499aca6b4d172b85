#include "braid/chip/frontier_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

constexpr double kFrontierRounding = 5e-7;  // Of a few sums of floats, relative.
constexpr double kPriceFactor = 1.6;        // From one price of SRAM to the next.
constexpr std::uint32_t kNoTrace = 0xffffffff;
constexpr std::size_t kFewestLabels = 8;  // Of a row.

constexpr std::size_t bit_at(std::size_t place) { return std::size_t{1} << place; }

/// The row with one more place, at `place`, that is empty.
constexpr std::size_t widened(std::size_t row, std::size_t place) {
  const std::size_t low = bit_at(place) - 1;
  return (row & ~low) << 1U | (row & low);
}

/// The row without the place.
constexpr std::size_t narrowed(std::size_t row, std::size_t place) {
  const std::size_t low = bit_at(place) - 1;
  return (row >> 1U & ~low) | (row & low);
}

/// Label-setting dynamic program over the steps of the tables.
class FrontierSearch {
 public:
  FrontierSearch(const FrontierTables& tables, const FrontierLimits& limits,
                 std::span<const double> prices, const FrontierQuery& query)
      : tables_(tables),
        limits_(limits),
        prices_(prices),
        query_(query),
        found_(tables.steps.size()) {
    double least = kInfinity;
    for (std::size_t i = 0; i < kSramPrices; ++i) {
      const double factor = std::pow(kPriceFactor, static_cast<double>(i) - 1);
      gain_most(static_cast<float>(query.traffic_per_sram * factor), i);
      const double all = sram_price_[i] * limits.sram_bytes + double{most_gain_[i][0]};
      if (all >= least) continue;
      least = all;
      best_price_ = sram_price_[i];
    }
    for (std::size_t at = 0; at < tables.steps.size(); ++at) {
      decide(at);
      for (const std::uint32_t place : tables.steps[at].leaving) leave(place);
    }
  }

  FrontierAnswer answer() {
    FrontierAnswer answer;
    answer.traffic_per_sram = best_price_;
    answer.work = work_;
    answer.sets.resize(tables_.steps.size());
    for (std::size_t at = 0; at < tables_.steps.size(); ++at) {
      keep_best(found_[at]);
      std::vector<FittingSet>& sets = answer.sets[tables_.steps[at].kernel];
      for (const auto& [excess, trace] : found_[at]) {
        std::vector<std::uint32_t> kernels = kernels_of(trace);
        std::sort(kernels.begin(), kernels.end(), [&](std::uint32_t a, std::uint32_t b) {
          return limits_.place[a] < limits_.place[b];
        });
        const double traffic = tables_.traffic_bytes(kernels);
        sets.push_back({std::move(kernels), traffic, excess});
      }
    }
    return answer;
  }

 private:
  static constexpr std::size_t kSramPrices = 3;

  struct Label {
    double excess = 0, sram_bytes = 0;
    std::uint32_t trace = kNoTrace;
    std::uint32_t behind = 0, before = 0;  ///< Places behind a taken kernel and before one, or it.
  };
  /// A kernel that was taken, and what had been before.
  struct Trace {
    std::uint32_t earlier = kNoTrace, step = 0;
  };
  struct Range {
    std::size_t begin = 0, end = 0;
  };

  /// By row of every step, what the kernels from there on gain at most, less the price of their
  /// SRAM.
  void gain_most(float cost, std::size_t at_price) {
    sram_price_[at_price] = double{cost};
    std::vector<float>& most = most_gain_[at_price];
    const std::size_t rows_in_all = tables_.gain_bytes.size();
    most.assign(rows_in_all + 1, 0);
    float largest = 0, largest_price = 0;
    for (std::size_t at = tables_.steps.size(); at-- > 0;) {
      const FrontierTables::Step& step = tables_.steps[at];
      const std::size_t rows = bit_at(step.places);
      const float* next = &most[first_row(at + 1)];
      const float none = next[0];
      spread_.assign(next, next + 2 * rows / bit_at(step.leaving.size()));
      spread_[0] = 0;  // What has left the frontier is done.
      for (std::size_t i = step.leaving.size(); i-- > 0;) spread(bit_at(step.leaving[i]));
      next = spread_.data();
      const float* const gain = &tables_.gain_bytes[step.first_row];
      const float* const sram = &tables_.added_sram_bytes[step.first_row];
      float* const to = &most[step.first_row];
      const auto price = static_cast<float>(prices_[step.kernel]);
      largest_price = std::max(largest_price, std::abs(price));
      for (std::size_t row = 0; row < rows; ++row) {
        const float taken = price + gain[row] - cost * sram[row] + next[rows + row];
        to[row] = std::max(next[row], taken);
      }
      to[0] = std::max(none, price + gain[0] - cost * sram[0] + next[rows]);
      largest = std::max(largest, *std::max_element(to, to + rows));
    }
    const float term =
        largest_price + tables_.largest_gain_bytes + cost * tables_.largest_sram_bytes;
    rounding_[at_price] =
        kFrontierRounding * static_cast<double>(tables_.steps.size()) * double{largest + term};
    work_ += static_cast<std::int64_t>(4 * rows_in_all);
  }

  /// A place more; its bit does not matter.
  void spread(std::size_t bit) {
    wide_.resize(2 * spread_.size());
    for (std::size_t block = 0; block < spread_.size(); block += bit) {
      for (std::size_t i = block; i < block + bit; ++i) {
        wide_[block + i] = wide_[block + i + bit] = spread_[i];
      }
    }
    std::swap(spread_, wide_);
  }

  std::size_t first_row(std::size_t at) const {
    return at < tables_.steps.size() ? tables_.steps[at].first_row : tables_.gain_bytes.size();
  }

  /// Whether a label of the row, among those of all steps, may come to exceed the prices.
  bool can_exceed(const Label& label, std::size_t row) const {
    double most = kInfinity;
    for (std::size_t i = 0; i < kSramPrices; ++i) {
      const double paid = sram_price_[i] * (limits_.sram_bytes - label.sram_bytes);
      most = std::min(most, paid + double{most_gain_[i][row]} + rounding_[i]);
    }
    return label.excess + most > query_.least_excess_bytes;
  }

  /// False when the kernels that are taken cannot lie between two downsets.
  static bool place(Label& label, const FrontierTables::Step& step, std::size_t row, bool taken) {
    const auto bit = static_cast<std::uint32_t>(bit_at(step.places));
    const std::uint32_t inside = static_cast<std::uint32_t>(row) | (taken ? bit : 0);
    if (taken || (label.behind & step.above) != 0) label.behind |= step.below | bit;
    if (taken || (label.before & step.below) != 0) label.before |= step.above | bit;
    return (label.behind & label.before & ~inside) == 0;
  }

  /// Leaves and takes the kernel.
  void decide(std::size_t at) {
    const FrontierTables::Step& step = tables_.steps[at];
    const std::size_t rows = bit_at(step.places), next = first_row(at + 1);
    const auto narrow = [&](std::size_t row) {
      for (const std::uint32_t leaving : step.leaving) row = narrowed(row, leaving);
      return row;
    };
    others_.clear();
    other_rows_.assign(2 * rows, {});
    for (std::size_t row = 0; row < rows; ++row) {
      const Range range = rows_[row];
      if (range.begin == range.end) continue;
      work_ += static_cast<std::int64_t>(16 * (range.end - range.begin));
      const std::size_t left = narrow(row), taken = narrow(row | rows);
      other_rows_[row].begin = others_.size();
      for (std::size_t i = range.begin; i < range.end; ++i) {
        Label label = labels_[i];
        if (row == 0) {
          others_.push_back(label);
        } else if (place(label, step, row, false)) {
          if (left != 0 && can_exceed(label, next + left)) others_.push_back(label);
        }
      }
      other_rows_[row].end = others_.size();
      const float gain = tables_.gain_bytes[step.first_row + row];
      if (gain == kCannotTake) continue;
      const auto sram = double{tables_.added_sram_bytes[step.first_row + row]};
      other_rows_[rows + row].begin = others_.size();
      for (std::size_t i = range.begin; i < range.end; ++i) {
        Label label = labels_[i];
        label.sram_bytes += sram;
        if (label.sram_bytes > limits_.sram_bytes) break;
        label.excess += prices_[step.kernel] + double{gain};
        if (!place(label, step, row, true)) continue;
        const bool can_grow = taken != 0 && can_exceed(label, next + taken);
        if (!can_grow && label.excess <= query_.least_excess_bytes) continue;
        const auto trace = static_cast<std::uint32_t>(traces_.size());
        traces_.push_back({label.trace, static_cast<std::uint32_t>(at)});
        label.trace = trace;
        if (label.excess > query_.least_excess_bytes) finish(label, at);
        if (can_grow) others_.push_back(label);
      }
      other_rows_[rows + row].end = others_.size();
    }
    std::swap(labels_, others_);
    std::swap(rows_, other_rows_);
  }

  /// Joins the rows that differ in the place alone.
  void leave(std::size_t place) {
    const std::size_t rows = rows_.size() / 2;
    std::size_t live = 1;
    for (const Range& range : rows_) live += range.begin < range.end ? 1 : 0;
    const std::size_t most = std::clamp(limits_.labels / live, kFewestLabels,
                                        std::max(kFewestLabels, query_.row_labels));
    others_.clear();
    other_rows_.assign(rows, {});
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t begin = others_.size();
      if (row == 0) {
        others_.emplace_back();
      } else {
        merge(rows_[widened(row, place)], rows_[widened(row, place) | bit_at(place)], place);
        if (others_.size() - begin > most) thin(begin, most);
      }
      other_rows_[row] = {begin, others_.size()};
    }
    std::swap(labels_, others_);
    std::swap(rows_, other_rows_);
  }

  /// Merges labels in the order of SRAM, without those that too many dominate. By that order only
  /// earlier ones can dominate, and they are counted: base/pareto_front.h asks for one of any.
  void merge(Range a, Range b, std::size_t place) {
    const std::size_t begin = others_.size();
    const auto is_before = [&](const Label& x, const Label& y) {
      return x.sram_bytes != y.sram_bytes ? x.sram_bytes < y.sram_bytes : x.excess >= y.excess;
    };
    while (a.begin < a.end || b.begin < b.end) {
      const bool first =
          b.begin == b.end || (a.begin < a.end && is_before(labels_[a.begin], labels_[b.begin]));
      Label label = labels_[first ? a.begin++ : b.begin++];
      label.behind = static_cast<std::uint32_t>(narrowed(label.behind, place));
      label.before = static_cast<std::uint32_t>(narrowed(label.before, place));
      std::size_t better = 0, i = others_.size();
      while (i > begin && better < query_.better) {
        const Label& other = others_[--i];
        const bool dominates = other.excess >= label.excess &&
                               (other.behind & ~label.behind) == 0 &&
                               (other.before & ~label.before) == 0;
        better += dominates ? 1 : 0;
      }
      work_ += static_cast<std::int64_t>(16 + others_.size() - i);
      if (better < query_.better) others_.push_back(label);
    }
  }

  /// Leaves about `most` labels of those from `begin` on.
  void thin(std::size_t begin, std::size_t most) {
    const std::size_t count = others_.size() - begin;
    std::size_t kept = begin;
    if (query_.better > 1) {
      const auto merit = [&](const Label& label) {
        return label.excess - sram_price_[1] * label.sram_bytes;
      };
      merits_.clear();
      for (std::size_t i = begin; i < others_.size(); ++i) merits_.push_back(merit(others_[i]));
      const auto last = merits_.begin() + static_cast<std::ptrdiff_t>(most);
      std::nth_element(merits_.begin(), last, merits_.end(), std::greater<>());
      const double least = *last;
      for (std::size_t i = begin; i < others_.size(); ++i) {
        if (merit(others_[i]) > least) others_[kept++] = others_[i];
      }
    } else {
      const std::size_t joined = (count + most - 1) / most;
      for (std::size_t i = begin; i < others_.size(); i += joined) {
        Label label = others_[i];
        for (std::size_t j = i + 1; j < std::min(i + joined, others_.size()); ++j) {
          if (others_[j].excess > label.excess) {
            label.excess = others_[j].excess;
            label.trace = others_[j].trace;
          }
          label.behind &= others_[j].behind;
          label.before &= others_[j].before;
        }
        others_[kept++] = label;
      }
      joined_ = true;
    }
    others_.resize(kept);
  }

  std::vector<std::uint32_t> kernels_of(std::uint32_t trace) const {
    std::vector<std::uint32_t> kernels;
    for (; trace != kNoTrace; trace = traces_[trace].earlier) {
      kernels.push_back(tables_.steps[traces_[trace].step].kernel);
    }
    return kernels;
  }

  /// A set without any more kernels.
  void finish(const Label& label, std::size_t last) {
    std::vector<std::pair<double, std::uint32_t>>& found = found_[last];
    // A set of joined labels bounds others, whether or not it lies between two downsets itself.
    if (!joined_ && !tables_.is_between_downsets(kernels_of(label.trace))) return;
    found.emplace_back(label.excess, label.trace);
    if (found.size() >= 4 * query_.sets) keep_best(found);
  }

  void keep_best(std::vector<std::pair<double, std::uint32_t>>& found) const {
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    found.resize(std::min(found.size(), query_.sets));
  }

  const FrontierTables& tables_;
  const FrontierLimits& limits_;
  std::span<const double> prices_;
  const FrontierQuery& query_;
  std::array<double, kSramPrices> sram_price_ = {};
  std::array<std::vector<float>, kSramPrices> most_gain_;
  double best_price_ = 0;
  std::array<double, kSramPrices> rounding_ = {};  ///< What most_gain_ may be too little.
  std::vector<Label> labels_ = std::vector<Label>(1), others_;  ///< Of each row by SRAM.
  std::vector<Range> rows_ = {Range{0, 1}}, other_rows_;
  std::vector<Trace> traces_;
  std::vector<std::vector<std::pair<double, std::uint32_t>>> found_;  ///< Excess and trace.
  std::vector<float> spread_, wide_;
  std::vector<double> merits_;
  bool joined_ = false;  ///< Labels, so that what is found may be no set that fits.
  std::int64_t work_ = 0;
};

}  // namespace

FrontierSets::FrontierSets(const MapperTables& tables, const FrontierBudget& budget)
    : tables_(tables, budget),
      limits_{budget.labels, tables.chip.sram_bytes * kAboveFloatRounding,
              std::vector<std::uint32_t>(tables.kernels.size())} {
  for (std::uint32_t at = 0; at < limits_.place.size(); ++at) limits_.place[tables.order[at]] = at;
}

FrontierAnswer FrontierSets::exceeding(std::span<const double> prices,
                                       const FrontierQuery& query) const {
  return FrontierSearch(tables_, limits_, prices, query).answer();
}

}  // namespace braid
