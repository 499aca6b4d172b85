#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case_file.h"
#include "cases/case_run.h"
#include "support/source_path.h"

namespace braid::test {

/// What GoogleTest and CTest call a case: FOLDER/FILE.NAME.
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.file << '.' << tested.name; }

namespace {

/// Those of every file below tests/cases.
std::vector<Case> all_cases() {
  const std::filesystem::path folder = test::source_path("tests/cases");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const std::filesystem::path& file : files) {
    for (Case& tested : read_cases(file)) {
      tested.file = std::filesystem::relative(file, folder).replace_extension();
      cases.push_back(std::move(tested));
    }
  }
  return cases;
}

class Cases : public ::testing::TestWithParam<Case> {};

TEST_P(Cases, Hold) { run_case(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Files, Cases, ::testing::ValuesIn(all_cases()), [](const auto& one) {
  std::string name = one.param.file + "_" + one.param.name;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

}  // namespace
}  // namespace braid::test

int main(int argc, char** argv) {
  try {
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
