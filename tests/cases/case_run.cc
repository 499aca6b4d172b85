#include "cases/case_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"

namespace braid::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Names and texts of the files in a folder and below.
std::map<std::string, std::string> texts_in(const std::string& folder) {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) {
      texts[entry.path()] = "";
    } else if (entry.is_regular_file()) {
      texts[entry.path()] = read_file(entry.path());
    }
  }
  return texts;
}

void write_below(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, text);
}

/// Puts files in place for one run, and what was there before when it goes.
class FilesOfRun {
 public:
  FilesOfRun(const TemporaryFolder& folder, const CaseRun& run) {
    for (const auto& [name, text] : run.files) exchange(folder / name, text);
    for (const Edit& edit : run.edits) {
      const std::string path = folder / edit.file;
      std::string text = read_file(path);
      const std::size_t at = text.find(edit.from);
      EXPECT_NE(at, std::string::npos) << edit.file << " does not hold " << edit.from;
      if (at != std::string::npos) exchange(path, text.replace(at, edit.from.size(), edit.to));
    }
  }
  FilesOfRun(const FilesOfRun&) = delete;
  FilesOfRun& operator=(const FilesOfRun&) = delete;
  ~FilesOfRun() {
    for (const auto& [path, text] : before_) {
      if (text) {
        write_file(path, *text);
      } else {
        std::filesystem::remove(path);
      }
    }
  }

 private:
  void exchange(const std::string& path, const std::string& text) {
    std::optional<std::string> before;
    if (std::filesystem::exists(path)) before = read_file(path);
    before_.emplace(path, std::move(before));
    write_below(path, text);
  }

  std::map<std::string, std::optional<std::string>> before_;
};

void expect_text(const std::string& text, const ExpectedText& expected) {
  for (const std::string& part : expected.has) EXPECT_THAT(text, HasSubstr(part));
  for (const std::string& part : expected.lacks) EXPECT_THAT(text, Not(HasSubstr(part)));
  if (expected.is) {
    EXPECT_EQ(text, *expected.is);
  }
}

nlohmann::json::json_pointer pointer_to(const std::string& place) {
  return nlohmann::json::json_pointer(place);
}

/// Whether both are objects with the same keys.
bool same_keys(const nlohmann::json& one, const nlohmann::json& other) {
  if (!one.is_object() || !other.is_object() || one.size() != other.size()) return false;
  return std::all_of(one.items().begin(), one.items().end(),
                     [&](const auto& item) { return other.contains(item.key()); });
}

bool holds(const Fact& fact, const nlohmann::json& found, const nlohmann::json& printed) {
  using Relation = Fact::Relation;
  switch (fact.relation) {
    case Relation::is:
      return found == fact.value;
    case Relation::near:
      return found.is_number() && std::abs(found.get<double>() - fact.value.get<double>()) <= 1e-12;
    case Relation::at_least:
      return found.is_number() && found >= fact.value;
    case Relation::at_most:
      return found.is_number() && found <= fact.value;
    case Relation::has:
      return found.is_string() &&
             found.get<std::string>().find(fact.value.get<std::string>()) != std::string::npos;
    case Relation::size:
      return found.is_structured() && found.size() == fact.value;
    case Relation::same_as:
      return found == printed.at(pointer_to(fact.value));
    case Relation::keys_of:
      return same_keys(found, printed.at(pointer_to(fact.value)));
    case Relation::absent:
      break;
  }
  return false;
}

void expect_facts(const std::string& out, const std::vector<Fact>& facts) {
  const nlohmann::json printed = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(printed.is_discarded()) << "not JSON: " << out;
  for (const Fact& fact : facts) {
    const nlohmann::json::json_pointer pointer(fact.pointer);
    if (!printed.contains(pointer)) {
      EXPECT_EQ(fact.relation, Fact::Relation::absent) << "no " << fact.pointer << " in " << out;
    } else {
      EXPECT_TRUE(holds(fact, printed.at(pointer), printed))
          << fact.pointer << " is " << printed.at(pointer) << ", against " << fact.value;
    }
  }
}

/// A failure that is told: nothing on stdout, one line on stderr that begins with the program's
/// name.
void expect_one_line(const Ran& ran) {
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_TRUE(ran.err.starts_with("braid: ")) << ran.err;
}

void run_one(const CaseRun& run, const TemporaryFolder& folder) {
  const FilesOfRun files(folder, run);
  const auto before = texts_in(folder.path());
  const Ran ran = run_braid(run.words, folder.path());
  EXPECT_EQ(ran.status, run.status) << ran.err;
  expect_text(ran.out, run.out);
  expect_text(ran.err, run.err);
  if (run.fails) {
    expect_one_line(ran);
    EXPECT_TRUE(texts_in(folder.path()) == before) << "a file was made or changed";
  }
  if (!run.facts.empty()) expect_facts(ran.out, run.facts);
  if (!run.save.empty()) write_file(folder / run.save, ran.out);
  for (const auto& [name, part] : run.written) {
    EXPECT_THAT(read_file(folder / name), HasSubstr(part)) << name;
  }
}

}  // namespace

void run_case(const Case& tested) {
  const TemporaryFolder folder;
  for (const auto& [name, text] : tested.files) write_below(folder / name, text);
  for (const CaseRun& run : tested.runs) {
    std::string line = "line " + std::to_string(run.line) + ": braid";
    for (const std::string& word : run.words) line += " '" + word + "'";
    SCOPED_TRACE(line);
    run_one(run, folder);
  }
}

}  // namespace braid::test
