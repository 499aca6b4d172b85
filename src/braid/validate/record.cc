#include "braid/validate/record.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "braid/base/csv.h"
#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr double kMostGrowth = 1.1;
constexpr double kLeastError = 1e-3;
constexpr const char* kRemedy = "write it again with braid validate RUNS --record FILE";

std::vector<int> lines_not_predicted(const std::vector<MeasuredRun>& runs,
                                     const std::vector<Prediction>& predictions,
                                     const std::vector<std::size_t>& indices) {
  std::vector<int> lines;
  for (const std::size_t i : indices) {
    if (!predictions[i].predicted()) lines.push_back(runs[i].line);
  }
  return lines;
}

struct Recorded {
  double runs = 0, mean_error = 0, memory_error = -1;
  std::set<int> not_predicted;
};

double number_in(const CsvTable& table, const CsvRow& row, const char* column) {
  const std::string& text = row.fields[*table.column(column)];
  const auto value = finite_double(text);
  if (!value || *value < 0) {
    throw Error(Where{table.file, row.line, column}, in_quotes(text) + " is no figure", kRemedy);
  }
  return *value;
}

std::map<std::string, Recorded> read_record(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  for (const char* column : {"dataset", "runs", "mean_error", "memory_error", "not_predicted"}) {
    if (!table.column(column)) throw Error(Where{file, 1, column}, "no such column", kRemedy);
  }
  std::map<std::string, Recorded> groups;
  for (const CsvRow& row : table.rows) {
    Recorded& group = groups[row.fields[*table.column("dataset")]];
    group.runs = number_in(table, row, "runs");
    group.mean_error = number_in(table, row, "mean_error");
    if (!row.fields[*table.column("memory_error")].empty()) {
      group.memory_error = number_in(table, row, "memory_error");
    }
    std::istringstream lines(row.fields[*table.column("not_predicted")]);
    for (int line = 0; lines >> line;) group.not_predicted.insert(line);
  }
  return groups;
}

bool is_worse(double now, double before) {
  return now > kMostGrowth * std::max(before, kLeastError);
}

}  // namespace

std::string accuracy_record(const std::vector<MeasuredRun>& runs,
                            const std::vector<Prediction>& predictions) {
  std::string text = "dataset,runs,mean_error,memory_error,not_predicted\n";
  for (const AccuracyGroup& group : accuracy_by(runs, predictions, {"dataset"})) {
    const Accuracy& a = group.accuracy;
    text += fmt::format("{},{},{:.4f},{},", csv_field(group.values.front()), a.runs, a.mape,
                        a.memory_runs > 0 ? fmt::format("{:.4f}", a.memory_mape) : "");
    const char* separator = "";
    for (const int line : lines_not_predicted(runs, predictions, group.runs)) {
      text += fmt::format("{}{}", separator, line);
      separator = " ";
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> worse_than_record(std::string_view record, const std::string& file,
                                           const std::vector<MeasuredRun>& runs,
                                           const std::vector<Prediction>& predictions) {
  const std::map<std::string, Recorded> recorded = read_record(record, file);
  std::vector<std::string> complaints;
  std::set<std::string> seen;
  for (const AccuracyGroup& group : accuracy_by(runs, predictions, {"dataset"})) {
    const std::string& name = group.values.front();
    seen.insert(name);
    const auto found = recorded.find(name);
    if (found == recorded.end()) {
      complaints.push_back(name + " is not recorded");
      continue;
    }
    const Recorded& before = found->second;
    const Accuracy& a = group.accuracy;
    if (static_cast<double>(a.runs) < before.runs) {
      complaints.push_back(fmt::format("{} has {} runs, not {}", name, a.runs, before.runs));
    }
    if (is_worse(a.mape, before.mean_error)) {
      complaints.push_back(fmt::format("{}: the mean error is {:.2f} %, recorded are {:.2f} %",
                                       name, 100 * a.mape, 100 * before.mean_error));
    }
    if (a.memory_runs > 0 && before.memory_error >= 0 &&
        is_worse(a.memory_mape, before.memory_error)) {
      complaints.push_back(
          fmt::format("{}: the mean error of memory is {:.2f} %, recorded are "
                      "{:.2f} %",
                      name, 100 * a.memory_mape, 100 * before.memory_error));
    }
    for (const std::size_t i : group.runs) {
      if (predictions[i].predicted() || before.not_predicted.count(runs[i].line) > 0) continue;
      complaints.push_back(fmt::format("{}: line {} is no longer predicted: {}", name, runs[i].line,
                                       predictions[i].reason));
    }
  }
  for (const auto& [name, group] : recorded) {
    if (seen.count(name) == 0) complaints.push_back(name + " has no runs");
  }
  return complaints;
}

}  // namespace braid
