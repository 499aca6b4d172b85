#include "braid/chip/frontier_tables.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

#include "braid/chip/frontier_order.h"

namespace braid {
namespace {

float rounded_down(double number) {
  const auto rounded = static_cast<float>(number);
  return double{rounded} > number ? std::nextafter(rounded, kCannotTake) : rounded;
}

void sort_out(std::vector<std::uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

FrontierTables::FrontierTables(const MapperTables& tables, const FrontierBudget& budget)
    : tables_(tables) {
  assert(budget.widest <= 30);
  const std::vector<std::vector<std::uint32_t>> near = list_tensors();
  if (!tables.rules.sram_limit || tables.chip.sram_bytes <= 0) return;
  const FrontierOrder order = frontier_order(near, budget.steps);
  if (order.subsets > budget.subsets || order.widest > budget.widest) return;
  list_steps(order.nodes, near);
}

std::vector<std::vector<std::uint32_t>> FrontierTables::list_tensors() {
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
void FrontierTables::add_rows(const Step& step, const std::vector<std::uint32_t>& frontier) {
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
  for (std::size_t row = 0; row < (std::size_t{1} << step.places); ++row) {
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
    gain_bytes.push_back((row & apart) != 0 ? kCannotTake : -rounded_down(-gain));
    added_sram_bytes.push_back(rounded_down(sram));
    if ((row & apart) != 0) continue;
    largest_gain_bytes = std::max(largest_gain_bytes, std::abs(gain_bytes.back()));
    largest_sram_bytes = std::max(largest_sram_bytes, std::abs(added_sram_bytes.back()));
  }
}

void FrontierTables::list_steps(const std::vector<std::uint32_t>& order,
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
    step.first_row = gain_bytes.size();
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
    steps.push_back(std::move(step));
  }
}

bool FrontierTables::is_between_downsets(const std::vector<std::uint32_t>& set) const {
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

double FrontierTables::traffic_bytes(const std::vector<std::uint32_t>& set) const {
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
