#include "braid/validate/measured_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "braid/base/csv.h"
#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/validate/amp_runs.h"

namespace braid {
namespace {

struct TextColumn {
  std::string_view name;
  std::string MeasuredRun::*field;
};
constexpr std::array kTexts = {TextColumn{"dataset", &MeasuredRun::dataset},
                               TextColumn{"source", &MeasuredRun::source},
                               TextColumn{"framework", &MeasuredRun::framework},
                               TextColumn{"hardware", &MeasuredRun::hardware},
                               TextColumn{"interconnect", &MeasuredRun::interconnect},
                               TextColumn{"model", &MeasuredRun::model},
                               TextColumn{"precision", &MeasuredRun::precision},
                               TextColumn{"schedule", &MeasuredRun::schedule},
                               TextColumn{"sharding", &MeasuredRun::sharding},
                               TextColumn{"recompute", &MeasuredRun::recompute},
                               TextColumn{"notes", &MeasuredRun::notes}};

struct CountColumn {
  std::string_view name;
  std::int64_t MeasuredRun::*field;
};
constexpr std::array kCounts = {CountColumn{"n_accel", &MeasuredRun::devices},
                                CountColumn{"accel_per_node", &MeasuredRun::devices_per_node},
                                CountColumn{"layers", &MeasuredRun::layers},
                                CountColumn{"hidden", &MeasuredRun::hidden},
                                CountColumn{"ffn", &MeasuredRun::ffn},
                                CountColumn{"heads", &MeasuredRun::heads},
                                CountColumn{"kv_heads", &MeasuredRun::kv_heads},
                                CountColumn{"vocab", &MeasuredRun::vocab},
                                CountColumn{"seq_len", &MeasuredRun::seq_len},
                                CountColumn{"gbs_seqs", &MeasuredRun::global_batch},
                                CountColumn{"mbs", &MeasuredRun::micro_batch},
                                CountColumn{"tp", &MeasuredRun::tp},
                                CountColumn{"pp", &MeasuredRun::pp},
                                CountColumn{"dp", &MeasuredRun::dp},
                                CountColumn{"cp", &MeasuredRun::cp},
                                CountColumn{"ep", &MeasuredRun::ep},
                                CountColumn{"vp", &MeasuredRun::vp}};

struct AmountColumn {
  std::string_view name;
  double MeasuredRun::*field;
  double unit;
};
constexpr std::array kAmounts = {
    AmountColumn{"iter_time_s", &MeasuredRun::iteration_time_s, 1},
    AmountColumn{"tokens_per_s_per_accel", &MeasuredRun::tokens_per_s_per_device, 1},
    AmountColumn{"model_tflops_per_accel", &MeasuredRun::model_tflops_per_device, 1},
    AmountColumn{"mfu_pct", &MeasuredRun::mfu, 0.01},
    AmountColumn{"hfu_pct", &MeasuredRun::hfu, 0.01},
    AmountColumn{"peak_mem_gib", &MeasuredRun::peak_memory_bytes, kGiB}};

/// Known, and told by others: the parameters by the model's dimensions.
constexpr std::string_view kParameters = "params_b";

constexpr std::string_view kStageLayers = "stage_layers";

constexpr double kMostCount = 9007199254740992.0;  // 2^53
constexpr double kMostAmount = 1e15;

bool says_nothing(std::string_view text) {
  return text.empty() || text == "n/a" || text == "N/A" || text == "-";
}

double number_of(std::string_view text, const Where& where) {
  const auto value = finite_double(text);
  if (!value) {
    throw Error(where, in_quotes(text) + " is not a number",
                "leave the field empty if it is unknown");
  }
  if (!(*value > 0)) {
    throw Error(where, in_quotes(text) + " is not positive",
                "leave the field empty if it is unknown");
  }
  return *value;
}

bool is_list(std::string_view text) {
  return text.find('/') != std::string_view::npos &&
         text.find_first_not_of("0123456789/") == std::string_view::npos;
}

std::int64_t count_of(std::string_view text, const Where& where) {
  const double value = number_of(text, where);
  if (value != std::floor(value) || value > kMostCount) {
    throw Error(where, in_quotes(text) + " is not a count", "give a whole number");
  }
  return static_cast<std::int64_t>(value);
}

/// Counts with spaces in between.
std::vector<std::int64_t> counts_of(std::string_view text, const Where& where) {
  std::vector<std::int64_t> counts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    counts.push_back(count_of(text.substr(at, end - at), where));
    at = end + 1;
  }
  return counts;
}

/// For each column of the table its place in `columns`, if it is there.
template <typename Columns>
std::vector<std::optional<std::size_t>> places(const CsvTable& table, const Columns& columns) {
  std::vector<std::optional<std::size_t>> found;
  found.reserve(columns.size());
  for (const auto& column : columns) found.push_back(table.column(column.name));
  return found;
}

template <typename Columns>
bool has_name(const Columns& columns, std::string_view name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const auto& column) { return column.name == name; });
}

void check_columns(const CsvTable& table) {
  if (!table.column("hardware")) {
    throw Error(Where{table.file, 1, "hardware"}, "there is no such column",
                "name the cluster of each run in it, such as dgx-h100");
  }
  const bool timed = std::any_of(kAmounts.begin(), kAmounts.end() - 1, [&](const auto& column) {
    return table.column(column.name).has_value();
  });
  if (!timed) {
    throw Error(Where{table.file, 1, "iter_time_s"}, "no column says how fast the runs were",
                "give iter_time_s or tokens_per_s_per_accel");
  }
}

}  // namespace

MeasuredRuns parse_measured_runs(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  if (is_amp_table(table)) return amp_runs(table);
  check_columns(table);
  MeasuredRuns result;
  for (const std::string& name : table.columns) {
    if (name != kParameters && name != kStageLayers && !has_name(kTexts, name) &&
        !has_name(kCounts, name) && !has_name(kAmounts, name)) {
      result.ignored_columns.push_back(name);
    }
  }
  const auto texts = places(table, kTexts);
  const auto counts = places(table, kCounts);
  const auto amounts = places(table, kAmounts);
  const auto stage_layers = table.column(kStageLayers);
  result.runs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) {
    MeasuredRun run;
    run.file = file;
    run.line = row.line;
    for (std::size_t i = 0; i < kTexts.size(); ++i) {
      if (texts[i]) run.*kTexts[i].field = row.fields[*texts[i]];
    }
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      if (!counts[i] || says_nothing(row.fields[*counts[i]])) continue;
      const std::string& field = row.fields[*counts[i]];
      const std::string name(kCounts[i].name);
      if (is_list(field)) {
        run.lists.push_back(name);
      } else {
        run.*kCounts[i].field = count_of(field, Where{file, row.line, name});
      }
    }
    for (std::size_t i = 0; i < kAmounts.size(); ++i) {
      if (!amounts[i] || says_nothing(row.fields[*amounts[i]])) continue;
      const Where where{file, row.line, std::string(kAmounts[i].name)};
      const double value = number_of(row.fields[*amounts[i]], where);
      if (value > kMostAmount)
        throw Error(where, in_quotes(row.fields[*amounts[i]]) + " is out of range");
      run.*kAmounts[i].field = value * kAmounts[i].unit;
    }
    if (stage_layers && !says_nothing(row.fields[*stage_layers])) {
      run.stage_layers =
          counts_of(row.fields[*stage_layers], Where{file, row.line, std::string(kStageLayers)});
    }
    result.runs.push_back(std::move(run));
  }
  return result;
}

std::string group_value(const MeasuredRun& run, const std::string& column) {
  for (const TextColumn& text : kTexts) {
    if (text.name == column) return run.*text.field;
  }
  for (const CountColumn& count : kCounts) {
    if (count.name != column) continue;
    return run.*count.field == 0 ? "" : std::to_string(run.*count.field);
  }
  std::vector<std::string_view> names;
  names.reserve(kTexts.size() + kCounts.size());
  for (const TextColumn& text : kTexts) names.push_back(text.name);
  for (const CountColumn& count : kCounts) names.push_back(count.name);
  throw Error(Where{"", 0, "--by"}, "runs cannot be grouped by " + in_quotes(column),
              did_you_mean(column, names));
}

}  // namespace braid
