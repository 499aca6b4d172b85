// The published program's own inputs and answers (github.com/msr-fiddle/piper).

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "braid/planners/piper_from_profile.h"
#include "braid/planners/piper_variants.h"
#include "braid/profile/piper_profile.h"

#include "planners/reference_files.h"

namespace braid {
namespace {

struct Row {
  std::string model, variant;
  PiperProblem problem;
  double time = 0;  ///< 0: infeasible.

  std::string name() const {
    return model + " " + variant + " on " + std::to_string(problem.devices);
  }
  PiperSolution solve() const { return find_piper_variant(variant).solve(problem, {}); }
};

/// The planner that the table calls so.
std::string planner_named(const std::string& variant) {
  const std::map<std::string, std::string> names = {
      {"noDP", "no-dp"}, {"noTP", "no-tp"}, {"noAR", "no-ar"}, {"equi-noTP", "equi-no-tp"}};
  const auto found = names.find(variant);
  return found == names.end() ? variant : found->second;
}

/// Rows of the table of answers that are for the file of a model as it is, within the size that
/// tests have time for.
std::vector<Row> read_rows(std::int64_t most_devices) {
  const std::string table = reference_file("reference/piper/expected.csv");
  std::vector<Row> rows;
  if (table.empty()) return rows;
  std::map<std::string, PiperProblem> models;
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::stringstream rest(line);
    for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
    Row row{fields.at(0), planner_named(fields.at(1)), {}, 0};
    const std::map<std::string, std::string> own_downsets = {
        {"bert32a100", "43"}, {"gnmt", "17914"}, {"resnet", "242"}};
    const bool equal_stages = row.variant.starts_with("equi");
    if (fields.at(11) != own_downsets.at(row.model) ||
        (!equal_stages && std::stoll(fields.at(2)) > most_devices)) {
      continue;
    }
    if (models.count(row.model) == 0) {
      const Document document =
          Document::parse_file(reference_file("reference/piper/" + row.model + ".json"));
      models[row.model] = piper_from_profile(piper_profile_from_json(document.root()).profile, 1);
    }
    row.problem = models[row.model];
    row.problem.devices = std::stoll(fields.at(2));
    row.problem.memory_bytes = std::stod(fields.at(3));
    row.problem.bandwidth_bytes = std::stod(fields.at(4));
    row.problem.micro_batches = std::stoll(fields.at(5));
    if (fields.at(6) != "infeasible") row.time = std::stod(fields.at(6));
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(PiperReference, TheProgramsAnswersWithItsKnapsack) {
  const std::vector<Row> rows = read_rows(128);
  if (rows.empty()) GTEST_SKIP() << "reference data not present";
  for (Row row : rows) {
    row.problem.rules.knapsack = PiperKnapsack::heuristic;
    const PiperSolution solution = row.solve();
    const double time = solution.status == Status::infeasible ? 0 : solution.time;
    EXPECT_NEAR(time, row.time, 1e-6 * row.time) << row.name();
  }
}

TEST(PiperReference, NeverWorseWithTheExactKnapsack) {
  const std::vector<Row> rows = read_rows(512);
  if (rows.empty()) GTEST_SKIP() << "reference data not present";
  for (const Row& row : rows) {
    const PiperSolution solution = row.solve();
    ASSERT_EQ(solution.status, row.time > 0 ? Status::optimal : Status::infeasible);
    EXPECT_LE(solution.time, row.time * (1 + 1e-6)) << row.name();
    // The exact choice of options has been seen to gain up to 1.2 %.
    EXPECT_GE(solution.time, row.time * 0.985) << row.name();
  }
}

}  // namespace
}  // namespace braid
