#include "braid/chip/accelerator/stated_latency.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/base/csv.h"
#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {
namespace {

using Shape = std::array<std::int64_t, 4>;

constexpr std::int64_t kLongest = std::int64_t{1} << 40;
constexpr double kMostCycles = 1e18;
constexpr const char* kSizes[] = {"batch", "m", "n", "k"};

template <typename Number>
std::optional<Number> number_of(const std::string& field) {
  Number number{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  return number;
}

bool is_before(const StatedLatency& a, const StatedLatency& b) { return a.shape < b.shape; }

/// A row of a table.
class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  StatedLatency read() const {
    StatedLatency latency;
    for (std::size_t i = 0; i < latency.shape.size(); ++i) {
      if (i == 0 && !table_.column(kSizes[i])) continue;
      const auto size = number_of<std::int64_t>(field(kSizes[i]));
      if (!size || *size < 1 || *size > kLongest) {
        fail(kSizes[i], "is no whole number from 1 to 2^40");
      }
      latency.shape[i] = *size;
    }
    latency.one_core = cycles("one_core");
    latency.all_cores = cycles("all_cores");
    if (!latency.one_core && !latency.all_cores) {
      throw Error({table_.file, row_.line, ""}, "the row has no cycles",
                  "give one_core or all_cores, or leave the row out");
    }
    return latency;
  }

 private:
  const std::string& field(const char* column) const { return row_.fields[*table_.column(column)]; }
  [[noreturn]] void fail(const char* column, const char* what) const {
    throw Error({table_.file, row_.line, column},
                fmt::format("{} {}", in_quotes(field(column)), what));
  }
  std::optional<double> cycles(const char* column) const {
    if (field(column).empty()) return std::nullopt;
    const auto number = number_of<double>(field(column));
    if (!number || !(*number > 0) || !(*number <= kMostCycles)) {
      fail(column, "is no number of cycles above 0");
    }
    return number;
  }

  const CsvTable& table_;
  const CsvRow& row_;
};

}  // namespace

const StatedLatency* find_latency(std::span<const StatedLatency> latencies, const Shape& shape) {
  const auto found = std::lower_bound(
      latencies.begin(), latencies.end(), shape,
      [](const StatedLatency& one, const Shape& wanted) { return one.shape < wanted; });
  return found != latencies.end() && found->shape == shape ? &*found : nullptr;
}

StatedLatencies parse_latencies(const std::string& text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  for (const std::string& column : table.columns) {
    static constexpr std::string_view kKnown[] = {"batch", "m", "n", "k", "one_core", "all_cores"};
    if (std::find(std::begin(kKnown), std::end(kKnown), column) == std::end(kKnown)) {
      throw Error({file, 1, ""}, "unknown column " + in_quotes(column),
                  "columns are batch, m, n, k, one_core and all_cores");
    }
  }
  for (const char* column : {"m", "n", "k", "one_core", "all_cores"}) {
    if (table.column(column)) continue;
    throw Error({file, 1, ""}, "the column " + in_quotes(column) + " is missing");
  }
  std::vector<std::pair<StatedLatency, int>> rows;  // With their lines.
  for (const CsvRow& row : table.rows) rows.emplace_back(RowReader(table, row).read(), row.line);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return is_before(a.first, b.first); });
  StatedLatencies latencies;
  for (const auto& [latency, line] : rows) {
    if (!latencies.empty() && latencies.back().shape == latency.shape) {
      throw Error({file, line, ""}, "this shape has a row already", "leave one of them out");
    }
    latencies.push_back(latency);
  }
  return latencies;
}

StatedLatencies latencies_from_json(const Value& value) {
  StatedLatencies latencies;
  for (const Value& row : value.elements()) {
    if (row.size() != 6) row.fail("a latency has four sizes and two numbers of cycles");
    StatedLatency latency;
    for (std::size_t i = 0; i < latency.shape.size(); ++i) {
      latency.shape[i] = row[i].as_int_in(1, kLongest);
    }
    const auto cycles = [&](const Value& field, std::optional<double>& into) {
      if (field.is_null()) return;
      into = field.as_double_in(0, kMostCycles);
      if (!(*into > 0)) field.fail("cycles are above 0");
    };
    cycles(row[4], latency.one_core);
    cycles(row[5], latency.all_cores);
    if (!latency.one_core && !latency.all_cores) row.fail("this latency has no cycles");
    if (!latencies.empty() && !is_before(latencies.back(), latency)) {
      row.fail("latencies come by rising shape, each once");
    }
    latencies.push_back(latency);
  }
  return latencies;
}

}  // namespace braid
