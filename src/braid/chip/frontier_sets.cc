#include "braid/chip/frontier_sets.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/chip/frontier_order.h"
#include "braid/graph/bitset.h"

namespace braid {
namespace {

constexpr double kSramCare = 1 + 1e-6;      // Sums of rounded numbers.
constexpr double kFrontierRounding = 5e-7;  // Of a few sums of floats, relative.
constexpr double kPriceFactor = 1.6;        // From one price of SRAM to the next.
constexpr float kNever = -std::numeric_limits<float>::infinity();
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

float rounded_down(double number) {
  const auto rounded = static_cast<float>(number);
  return double{rounded} > number ? std::nextafter(rounded, kNever) : rounded;
}

void sort_out(std::vector<std::uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

class FrontierSets::Search {
 public:
  Search(const FrontierSets& sets, std::span<const double> prices, const FrontierQuery& query)
      : sets_(sets), prices_(prices), query_(query), found_(sets.steps_.size()) {
    double least = kInfinity;
    for (std::size_t i = 0; i < kSramPrices; ++i) {
      const double factor = std::pow(kPriceFactor, static_cast<double>(i) - 1);
      gain_most(static_cast<float>(query.traffic_per_sram * factor), i);
      const double all = sram_price_[i] * sets.sram_bytes_ + double{most_gain_[i][0]};
      if (all >= least) continue;
      least = all;
      best_price_ = sram_price_[i];
    }
    for (std::size_t at = 0; at < sets.steps_.size(); ++at) {
      decide(at);
      for (const std::uint32_t place : sets.steps_[at].leaving) leave(place);
    }
  }

  FrontierAnswer answer() {
    FrontierAnswer answer;
    answer.traffic_per_sram = best_price_;
    answer.work = work_;
    answer.sets.resize(sets_.steps_.size());
    for (std::size_t at = 0; at < sets_.steps_.size(); ++at) {
      keep_best(found_[at]);
      std::vector<FittingSet>& sets = answer.sets[sets_.steps_[at].kernel];
      for (const auto& [excess, trace] : found_[at]) {
        std::vector<std::uint32_t> kernels = kernels_of(trace);
        std::sort(kernels.begin(), kernels.end(), [&](std::uint32_t a, std::uint32_t b) {
          return sets_.place_[a] < sets_.place_[b];
        });
        const double traffic = sets_.traffic_bytes(kernels);
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

  /// By row of every step, what the rest gains at most, less what its SRAM costs.
  void gain_most(float cost, std::size_t at_price) {
    sram_price_[at_price] = double{cost};
    std::vector<float>& most = most_gain_[at_price];
    const std::size_t rows_in_all = sets_.gain_bytes_.size();
    most.assign(rows_in_all + 1, 0);
    float largest = 0, largest_price = 0;
    for (std::size_t at = sets_.steps_.size(); at-- > 0;) {
      const Step& step = sets_.steps_[at];
      const std::size_t rows = bit_at(step.places);
      const float* next = &most[first_row(at + 1)];
      const float none = next[0];
      spread_.assign(next, next + 2 * rows / bit_at(step.leaving.size()));
      spread_[0] = 0;  // What has left the frontier is done.
      for (std::size_t i = step.leaving.size(); i-- > 0;) spread(bit_at(step.leaving[i]));
      next = spread_.data();
      const float* const gain = &sets_.gain_bytes_[step.first_row];
      const float* const sram = &sets_.added_sram_bytes_[step.first_row];
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
    const float term = largest_price + sets_.largest_gain_bytes_ + cost * sets_.largest_sram_bytes_;
    rounding_[at_price] =
        kFrontierRounding * static_cast<double>(sets_.steps_.size()) * double{largest + term};
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
    return at < sets_.steps_.size() ? sets_.steps_[at].first_row : sets_.gain_bytes_.size();
  }

  /// Whether a label of the row, among those of all steps, may come to exceed the prices.
  bool is_worth(const Label& label, std::size_t row) const {
    double most = kInfinity;
    for (std::size_t i = 0; i < kSramPrices; ++i) {
      const double paid = sram_price_[i] * (sets_.sram_bytes_ - label.sram_bytes);
      most = std::min(most, paid + double{most_gain_[i][row]} + rounding_[i]);
    }
    return label.excess + most > query_.least_excess_bytes;
  }

  /// False when the kernels that are taken cannot lie between two downsets.
  static bool place(Label& label, const Step& step, std::size_t row, bool taken) {
    const auto bit = static_cast<std::uint32_t>(bit_at(step.places));
    const std::uint32_t inside = static_cast<std::uint32_t>(row) | (taken ? bit : 0);
    if (taken || (label.behind & step.above) != 0) label.behind |= step.below | bit;
    if (taken || (label.before & step.below) != 0) label.before |= step.above | bit;
    return (label.behind & label.before & ~inside) == 0;
  }

  /// Leaves and takes the kernel.
  void decide(std::size_t at) {
    const Step& step = sets_.steps_[at];
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
          if (left != 0 && is_worth(label, next + left)) others_.push_back(label);
        }
      }
      other_rows_[row].end = others_.size();
      const float gain = sets_.gain_bytes_[step.first_row + row];
      if (gain == kNever) continue;
      const auto sram = double{sets_.added_sram_bytes_[step.first_row + row]};
      other_rows_[rows + row].begin = others_.size();
      for (std::size_t i = range.begin; i < range.end; ++i) {
        Label label = labels_[i];
        label.sram_bytes += sram;
        if (label.sram_bytes > sets_.sram_bytes_) break;
        label.excess += prices_[step.kernel] + double{gain};
        if (!place(label, step, row, true)) continue;
        const bool worth = taken != 0 && is_worth(label, next + taken);
        if (!worth && label.excess <= query_.least_excess_bytes) continue;
        const auto trace = static_cast<std::uint32_t>(traces_.size());
        traces_.push_back({label.trace, static_cast<std::uint32_t>(at)});
        label.trace = trace;
        if (label.excess > query_.least_excess_bytes) finish(label, at);
        if (worth) others_.push_back(label);
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
    const std::size_t most =
        std::clamp(sets_.labels_ / live, kFewestLabels, std::max(kFewestLabels, query_.row_labels));
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

  /// Of labels in the order of SRAM those that not too many are as good as.
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
        const bool as_good = other.excess >= label.excess && (other.behind & ~label.behind) == 0 &&
                             (other.before & ~label.before) == 0;
        better += as_good ? 1 : 0;
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
      kernels.push_back(sets_.steps_[traces_[trace].step].kernel);
    }
    return kernels;
  }

  /// A set without any more kernels.
  void finish(const Label& label, std::size_t last) {
    std::vector<std::pair<double, std::uint32_t>>& found = found_[last];
    // A set of joined labels bounds others, whether or not it lies between two downsets itself.
    if (!joined_ && !sets_.is_between_downsets(kernels_of(label.trace))) return;
    found.emplace_back(label.excess, label.trace);
    if (found.size() >= 4 * query_.sets) keep_best(found);
  }

  void keep_best(std::vector<std::pair<double, std::uint32_t>>& found) const {
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    found.resize(std::min(found.size(), query_.sets));
  }

  const FrontierSets& sets_;
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

FrontierSets::FrontierSets(const MapperTables& tables, const FrontierBudget& budget)
    : tables_(tables),
      labels_(budget.labels),
      sram_bytes_(tables.chip.sram_bytes * kSramCare),
      place_(tables.kernels.size()) {
  assert(budget.widest <= 30);
  for (std::uint32_t at = 0; at < place_.size(); ++at) place_[tables.order[at]] = at;
  const std::vector<std::vector<std::uint32_t>> near = list_tensors();
  if (!tables.rules.sram_limit || tables.chip.sram_bytes <= 0) return;
  const FrontierOrder order = frontier_order(near, budget.steps);
  if (order.subsets > budget.subsets || order.widest > budget.widest) return;
  plan(order.nodes, near);
}

FrontierAnswer FrontierSets::exceeding(std::span<const double> prices,
                                       const FrontierQuery& query) const {
  return Search(*this, prices, query).answer();
}

std::vector<std::vector<std::uint32_t>> FrontierSets::list_tensors() {
  const std::size_t count = tables_.kernels.size();
  for (std::uint32_t writer = 0; writer < count; ++writer) {
    const MapperTables::Kernel& kernel = tables_.kernels[writer];
    if (tables_.rules.share_tensors) {
      if (kernel.outputs.empty()) continue;
      Tensor tensor{writer, {}, kernel.output_bytes};
      for (const MapperTables::Tensor& output : kernel.outputs) {
        tensor.readers.push_back(output.other);
      }
      sort_out(tensor.readers);
      tensors_.push_back(std::move(tensor));
      continue;
    }
    for (const MapperTables::Tensor& output : kernel.outputs) {
      tensors_.push_back({writer, {output.other}, output.bytes});
    }
  }
  std::vector<std::vector<std::uint32_t>> near(count);
  tensors_of_.resize(count);
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    std::vector<std::uint32_t> members = tensors_[t].readers;
    members.push_back(tensors_[t].writer);
    for (const std::uint32_t a : members) {
      tensors_of_[a].push_back(t);
      for (const std::uint32_t b : members) {
        if (a != b) near[a].push_back(b);
      }
    }
  }
  for (std::vector<std::uint32_t>& others : near) sort_out(others);
  return near;
}

/// What the step's kernel adds to each subset of the frontier.
void FrontierSets::add_rows(const Step& step, const std::vector<std::uint32_t>& frontier) {
  /// A tensor of the kernel; bits are places in the frontier.
  struct Link {
    bool writes = false;        // The kernel does.
    std::uint32_t writer = 0;   // A bit, or 0 when it is the kernel or not decided.
    std::uint32_t readers = 0;  // Bits.
    int others = 0;             // Readers but the kernel, decided or not.
    double bytes = 0;
  };
  const MapperTables::Kernel& kernel = tables_.kernels[step.kernel];
  const auto bit_of = [&](std::uint32_t other) -> std::uint32_t {
    const auto found = std::find(frontier.begin(), frontier.end(), other);
    return found == frontier.end() ? 0 : 1U << static_cast<unsigned>(found - frontier.begin());
  };
  std::uint32_t apart = 0;  // It cannot be with these.
  for (const std::uint32_t other : frontier) {
    if (tables_.kernels[other].waits != kernel.waits) apart |= bit_of(other);
  }
  std::vector<Link> links;
  for (const std::uint32_t t : tensors_of_[step.kernel]) {
    const Tensor& tensor = tensors_[t];
    Link link;
    link.bytes = tensor.bytes;
    link.writes = tensor.writer == step.kernel;
    link.writer = bit_of(tensor.writer);
    for (const std::uint32_t reader : tensor.readers) {
      if (reader == step.kernel) continue;
      ++link.others;
      link.readers |= bit_of(reader);
    }
    links.push_back(link);
  }
  double alone_bytes = kernel.weight_bytes;
  std::vector<std::pair<std::uint32_t, double>> saved;  // SRAM, with a place taken.
  const auto add = [&](const MapperTables::Tensor& tensor) {
    const double crossing = std::min(tensor.crossing_bytes, tensor.inner_bytes);
    alone_bytes += crossing;
    // The other, when taken, has counted the crossing already.
    saved.emplace_back(bit_of(tensor.other), 2 * crossing - tensor.inner_bytes);
  };
  for (const MapperTables::Tensor& tensor : kernel.inputs) add(tensor);
  for (const MapperTables::Tensor& tensor : kernel.outputs) add(tensor);
  for (std::size_t row = 0; row < bit_at(step.places); ++row) {
    double gain = 0, sram = alone_bytes;
    for (const Link& link : links) {
      const int inside = std::popcount(link.readers & row);
      if (link.writes) {
        if (inside > 0) gain += link.bytes;            // No longer read.
        if (inside < link.others) gain -= link.bytes;  // Written.
      } else if ((link.writer & row) == 0) {
        if (inside == 0) gain -= link.bytes;  // Read.
      } else if (inside == link.others) {
        gain += link.bytes;  // No longer written.
      }
    }
    for (const auto& [bit, bytes] : saved) {
      if ((row & bit) != 0) sram -= bytes;
    }
    gain_bytes_.push_back((row & apart) != 0 ? kNever : -rounded_down(-gain));
    added_sram_bytes_.push_back(rounded_down(sram));
    if ((row & apart) != 0) continue;
    largest_gain_bytes_ = std::max(largest_gain_bytes_, std::abs(gain_bytes_.back()));
    largest_sram_bytes_ = std::max(largest_sram_bytes_, std::abs(added_sram_bytes_.back()));
  }
}

void FrontierSets::plan(const std::vector<std::uint32_t>& order,
                        const std::vector<std::vector<std::uint32_t>>& near) {
  const std::size_t count = order.size();
  above_.assign(count, Bitset(count));
  below_.assign(count, Bitset(count));
  for (const std::uint32_t kernel : tables_.order) {
    for (const MapperTables::Tensor& input : tables_.kernels[kernel].inputs) {
      above_[kernel] |= above_[input.other];
      above_[kernel].set(input.other);
    }
    above_[kernel].for_each([&](std::size_t other) { below_[other].set(kernel); });
  }
  std::vector<std::size_t> open(count);
  for (std::size_t i = 0; i < count; ++i) open[i] = near[i].size();
  std::vector<std::uint32_t> frontier;
  Bitset decided(count);
  std::vector<Bitset> reached(count, Bitset(count));  // From each through decided kernels.
  for (const std::uint32_t kernel : order) {
    Step step;
    step.kernel = kernel;
    step.places = static_cast<std::uint32_t>(frontier.size());
    step.first_row = gain_bytes_.size();
    for (const MapperTables::Tensor& output : tables_.kernels[kernel].outputs) {
      if (!decided.test(output.other)) continue;
      reached[kernel].set(output.other);
      reached[kernel] |= reached[output.other];
    }
    Bitset writers(count), from(count);
    for (const MapperTables::Tensor& input : tables_.kernels[kernel].inputs) {
      if (decided.test(input.other)) writers.set(input.other);
    }
    decided.for_each([&](std::size_t other) {
      if (!writers.test(other) && !reached[other].intersects(writers)) return;
      from.set(other);
      reached[other].set(kernel);
      reached[other] |= reached[kernel];
    });
    decided.set(kernel);
    for (std::size_t p = 0; p < frontier.size(); ++p) {
      if (from.test(frontier[p])) step.above |= 1U << p;
      if (reached[kernel].test(frontier[p])) step.below |= 1U << p;
    }
    add_rows(step, frontier);
    frontier.push_back(kernel);
    for (const std::uint32_t other : near[kernel]) --open[other];
    for (std::size_t place = frontier.size(); place-- > 0;) {
      if (open[frontier[place]] > 0) continue;
      step.leaving.push_back(static_cast<std::uint32_t>(place));
      frontier.erase(frontier.begin() + static_cast<std::ptrdiff_t>(place));
    }
    steps_.push_back(std::move(step));
  }
}

bool FrontierSets::is_between_downsets(const std::vector<std::uint32_t>& set) const {
  Bitset between(above_.size()), below(above_.size()), inside(above_.size());
  for (const std::uint32_t kernel : set) {
    between |= above_[kernel];
    below |= below_[kernel];
    inside.set(kernel);
  }
  between &= below;
  between -= inside;
  return !between.any();
}

double FrontierSets::traffic_bytes(const std::vector<std::uint32_t>& set) const {
  const auto is_inside = [&](std::uint32_t kernel) {
    return std::find(set.begin(), set.end(), kernel) != set.end();
  };
  double bytes = 0;
  for (const std::uint32_t kernel : set) {
    for (const std::uint32_t t : tensors_of_[kernel]) {
      const Tensor& tensor = tensors_[t];
      if (tensor.writer == kernel) {
        if (!std::all_of(tensor.readers.begin(), tensor.readers.end(), is_inside)) {
          bytes += tensor.bytes;
        }
      } else if (!is_inside(tensor.writer)) {
        // Once, at its first reader inside.
        const auto first = std::find_if(tensor.readers.begin(), tensor.readers.end(), is_inside);
        if (*first == kernel) bytes += tensor.bytes;
      }
    }
  }
  return bytes;
}

}  // namespace braid
