#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/backend/reference/window.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Pooling over windows and over all positions.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

struct PoolingJob {
  SlidingWindow window;
  std::vector<std::int64_t> places;
  std::int64_t planes = 0;  ///< Samples times channels.
  Shape out;
};

PoolingJob pooling_job(const NodeCall& call) {
  call.need_inputs(1, 1);
  call.need_rank(0, 3, 8);
  const Shape& in = call.shape(0);
  const auto* kernel = call.integers("kernel_shape");
  if (kernel == nullptr || kernel->size() + 2 != in.size()) {
    call.fail("attribute 'kernel_shape' is missing or does not fit");
  }
  PoolingJob job;
  job.window = sliding_window(call, *kernel, {in.begin() + 2, in.end()});
  job.places = window_places(job.window);
  job.planes = in[0] * in[1];
  job.out = {in[0], in[1]};
  job.out.insert(job.out.end(), job.window.out.begin(), job.window.out.end());
  return job;
}

/// Calls `visit(output, input)` for every pair of elements that pooling brings together, for an
/// output after the order of the kernel's positions.
template <typename Visit>
void visit_windows(const PoolingJob& job, Visit visit) {
  const std::int64_t out = job.window.out_positions();
  const std::int64_t in = job.window.in_positions();
  for (std::int64_t plane = 0; plane < job.planes; ++plane) {
    for (std::size_t i = 0; i < job.places.size(); ++i) {
      if (job.places[i] < 0) continue;
      visit(at(plane * out + static_cast<std::int64_t>(i) % out), at(plane * in + job.places[i]));
    }
  }
}

/// The place of an element when the last dimension is the outermost of its plane's.
std::int64_t column_major(std::int64_t place, const Shape& in) {
  const std::int64_t positions = element_count(in);
  std::int64_t rest = place % positions;
  std::int64_t result = 0;
  for (std::size_t d = in.size(); d-- > 0;) {
    std::int64_t stride = 1;
    for (std::size_t outer = 0; outer < d; ++outer) stride *= in[outer];
    result += rest % in[d] * stride;
    rest /= in[d];
  }
  return place - place % positions + result;
}

Tensors max_pool(const NodeCall& call) {
  const PoolingJob job = pooling_job(call);
  const std::vector<double> numbers = call.reals(0);
  const auto count = at(element_count(job.out));
  std::vector<double> most(count, -std::numeric_limits<double>::infinity());
  std::vector<std::int64_t> chosen(count, -1);
  visit_windows(job, [&](std::size_t out, std::size_t in) {
    if (chosen[out] >= 0 && !(numbers[in] > most[out])) return;
    most[out] = numbers[in];
    chosen[out] = static_cast<std::int64_t>(in);
  });
  Tensors results{tensor_of(call.type(0), job.out, most)};
  if (!call.wants(1)) return results;
  if (call.flag("storage_order", false)) {
    for (std::int64_t& each : chosen) each = each < 0 ? each : column_major(each, job.window.in);
  }
  results.push_back(tensor_of(ElementType::i64, job.out, chosen));
  return results;
}

/// How many positions of each window lie inside the input and its padding, but not behind it.
std::vector<double> padded_counts(const PoolingJob& job) {
  SlidingWindow padded = job.window;
  for (std::size_t d = 0; d < padded.in.size(); ++d) {
    padded.in[d] += padded.before[d] + padded.after[d];
    padded.before[d] = padded.after[d] = 0;
  }
  std::vector<double> counts(at(padded.out_positions()), 0.0);
  const auto places = window_places(padded);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) counts[i % counts.size()] += 1;
  }
  return counts;
}

Tensors average_pool(const NodeCall& call) {
  const PoolingJob job = pooling_job(call);
  const std::vector<double> numbers = call.reals(0);
  std::vector<double> sums(at(element_count(job.out)), 0.0);
  std::vector<double> counts(sums.size(), 0.0);
  visit_windows(job, [&](std::size_t out, std::size_t in) {
    sums[out] += numbers[in];
    counts[out] += 1;
  });
  if (call.flag("count_include_pad", false)) {
    const std::vector<double> padded = padded_counts(job);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = padded[i % padded.size()];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= counts[i];
  return {tensor_of(call.type(0), job.out, sums)};
}

Tensors lp_pool(const NodeCall& call) {
  const PoolingJob job = pooling_job(call);
  const auto order = static_cast<double>(call.integer("p", 2));
  const std::vector<double> numbers = call.reals(0);
  std::vector<double> sums(at(element_count(job.out)), 0.0);
  visit_windows(job, [&](std::size_t out, std::size_t in) {
    sums[out] += std::pow(std::abs(numbers[in]), order);
  });
  for (double& each : sums) each = std::pow(each, 1 / order);
  return {tensor_of(call.type(0), job.out, sums)};
}

double pooled_row(const NodeCall& call, std::span<const double> row) {
  if (call.operation() == "GlobalMaxPool") return *std::max_element(row.begin(), row.end());
  const auto order = static_cast<double>(call.integer("p", 2));
  double sum = 0;
  const bool average = call.operation() == "GlobalAveragePool";
  for (const double each : row) sum += average ? each : std::pow(std::abs(each), order);
  return average ? sum / static_cast<double>(row.size()) : std::pow(sum, 1 / order);
}

Tensors global_pool(const NodeCall& call) {
  call.need_inputs(1, 1);
  call.need_rank(0, 3, 8);
  Shape out = call.shape(0);
  std::fill(out.begin() + 2, out.end(), 1);
  const std::vector<double> numbers = call.reals(0);
  std::vector<double> results(at(element_count(out)));
  if (numbers.empty()) call.fail("pools over nothing");
  const std::size_t width = numbers.size() / results.size();
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i] = pooled_row(call, std::span(numbers).subspan(i * width, width));
  }
  return {tensor_of(call.type(0), out, results)};
}

constexpr std::array<ReferenceEntry, 6> pooling_entries{{
    {"AveragePool", average_pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"LpPool", lp_pool},
    {"MaxPool", max_pool},
}};

}  // namespace

std::span<const ReferenceEntry> pooling_kernels() { return pooling_entries; }

}  // namespace braid
