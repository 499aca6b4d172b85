#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"
#include "support/source_path.h"

namespace braid {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_braid;
using ::testing::HasSubstr;

/// Long options that a help text names.
std::set<std::string> options_of(const std::string& help) {
  std::set<std::string> options;
  for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
    std::size_t end = at + 2;
    while (end < help.size() &&
           (std::isalnum(static_cast<unsigned char>(help[end])) != 0 || help[end] == '-')) {
      ++end;
    }
    if (end > at + 2) options.insert(help.substr(at, end - at));
  }
  return options;
}

TEST(Documents, TheManPageNamesEveryVerbAndOption) {
  std::string page;
  for (const char c : read_file(test::source_path("docs/braid.1"))) {
    if (c != '\\') page += c;
  }
  for (const char* verb :
       {"plan",    "evaluate", "compare",    "profile", "simulate", "verify", "export",
        "report",  "validate", "calibrate",  "map",     "explore",  "tune",   "place",
        "measure", "run",      "serve-plan", "decode",  "list",     "show"}) {
    EXPECT_THAT(page, HasSubstr(std::string("braid ") + verb));
    for (const std::string& option : options_of(run_braid({verb, "--help-all"}).out)) {
      EXPECT_TRUE(page.find(option) != std::string::npos) << verb << " " << option;
    }
  }
}

/// What stands between backticks.
std::vector<std::string> quoted_words(const std::string& page) {
  std::vector<std::string> words;
  for (std::size_t at = page.find('`'); at != std::string::npos; at = page.find('`', at + 1)) {
    const std::size_t end = page.find('`', at + 1);
    if (end == std::string::npos) break;
    words.push_back(page.substr(at + 1, end - at - 1));
    at = end;
  }
  return words;
}

TEST(Documents, ModelsAreAddedInFilesThatAreThere) {
  int files = 0;
  for (const std::string& word :
       quoted_words(read_file(test::source_path("docs/adding-a-model.md")))) {
    if (!word.ends_with(".cc") && !word.ends_with(".h")) continue;
    if (word.find('*') != std::string::npos) continue;
    ++files;
    bool is_there = false;
    for (const char* folder : {"", "src/braid/frontend/", "tests/frontend/"}) {
      is_there = is_there || std::filesystem::exists(test::source_path(folder + word));
    }
    EXPECT_TRUE(is_there) << word;
  }
  EXPECT_GT(files, 10);
}

TEST(Documents, UnknownModelsAreRefusedByAListOfThoseThatAreKnown) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", R"({"model_type": "unheard_of"})");
  const std::string refusal = run_braid({"show", folder / "config.json"}).err;
  std::istringstream known(refusal.substr(refusal.find("known: ") + 7));
  std::vector<std::string> names;
  for (std::string name; known >> name;) {
    if (name.back() == ',') name.pop_back();
    names.push_back(name);
  }
  EXPECT_GT(names.size(), 25U);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

std::string planned(const TemporaryFolder& folder) {
  std::string file = folder / "plan.json";
  const Ran ran = run_braid({"plan", "llama-3-8b", "--cluster", "dgx-h100:16", "--global-batch",
                             "32", "--seq-len", "4096", "--pp", "4", "--tp", "2", "-o", file});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return file;
}

/// The rules of the Trace Event Format for the kinds of events that are written.
TEST(Documents, TracesKeepToTheTraceEventFormat) {
  const TemporaryFolder folder;
  const std::string plan = planned(folder);
  ASSERT_EQ(run_braid({"simulate", plan, "--trace", folder / "t.json"}).status, 0);
  const json trace = json::parse(read_file(folder / "t.json"));
  std::map<std::pair<int, int>, double> free_at;
  std::set<int> named_processes;
  std::set<std::pair<int, int>> named_threads;
  std::map<int, double> counted_at;
  for (const json& event : trace["traceEvents"]) {
    const std::string kind = event["ph"];
    const std::pair track{event["pid"].get<int>(), event["tid"].get<int>()};
    if (kind == "M") {
      if (event["name"] == "process_name") named_processes.insert(track.first);
      if (event["name"] == "thread_name") named_threads.insert(track);
      continue;
    }
    const double start = event["ts"];
    EXPECT_GE(start, 0);
    EXPECT_TRUE(event["name"].is_string());
    if (kind == "C") {
      // Counters go forwards in time and hold numbers.
      EXPECT_GE(start, counted_at[track.first]);
      counted_at[track.first] = start;
      EXPECT_TRUE(event["args"]["GiB"].is_number());
      continue;
    }
    ASSERT_EQ(kind, "X");
    const double duration = event["dur"];
    EXPECT_GE(duration, 0);
    // Complete events of a track are in order and do not overlap.
    EXPECT_GE(start, free_at[track] - 2e-3);
    free_at[track] = start + duration;
    EXPECT_TRUE(named_threads.contains(track)) << track.first << " " << track.second;
  }
  EXPECT_EQ(named_processes.size(), 4U);
  EXPECT_EQ(counted_at.size(), 4U);
}

TEST(Documents, TruncatedPlansAreRefusedAtEveryLength) {
  const TemporaryFolder folder;
  const std::string whole = read_file(planned(folder));
  const std::string file = folder / "short.json";
  const std::vector<std::vector<std::string>> verbs = {{"verify", file},
                                                       {"simulate", file},
                                                       {"report", file, "-o", folder / "r.html"},
                                                       {"export", file, "--to", "megatron"}};
  // The last two bytes close the object and the line.
  for (std::size_t length = 0; length + 2 < whole.size(); length += whole.size() / 100) {
    write_file(file, whole.substr(0, length));
    const Ran ran = run_braid(verbs[length % verbs.size()]);
    EXPECT_EQ(ran.status, 2) << length;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("short.json"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Documents, EnormousAndPrimeBatchesAreAnswered) {
  for (const char* batch : {"2147483647", "16777216", "1048573"}) {
    const Ran ran = run_braid({"plan", "gpt2", "--cluster", "dgx-h100:1", "--global-batch", batch,
                               "--seq-len", "128", "--json"});
    EXPECT_TRUE(ran.status == 0 || ran.status == 1) << ran.err;
    EXPECT_TRUE(json::accept(ran.out));
  }
}

TEST(Documents, PrimeNumbersOfDevicesAndOneAreAnswered) {
  for (const int devices : {1, 13, 127}) {
    for (const int batch : {127, 128}) {
      const Ran ran =
          run_braid({"plan", "gpt2", "--cluster", "dgx-h100:" + std::to_string(devices),
                     "--global-batch", std::to_string(batch), "--seq-len", "128", "--json"});
      const json outcome = json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(outcome.is_object()) << ran.err;
      EXPECT_EQ(ran.status, 0) << devices << " " << batch << ran.err;
      EXPECT_EQ(outcome["status"], "optimal");
      EXPECT_EQ(outcome["devices"], devices);
      EXPECT_LE(outcome["devices_used"], devices);
    }
  }
}

/// What a run prints, less the one line that says how long the search took.
std::string untimed(const std::vector<std::string>& words) {
  const Ran ran = run_braid(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::size_t timed = ran.out.find("\"wall_s\"");
  EXPECT_NE(timed, std::string::npos) << ran.out;
  if (timed == std::string::npos) return ran.out;
  const std::size_t begin = ran.out.rfind('\n', timed);
  return ran.out.substr(0, begin) + ran.out.substr(ran.out.find('\n', timed));
}

TEST(Documents, PrintedPlansDoNotDependOnThreads) {
  for (const char* planner : {"braid", "exhaustive", "piper"}) {
    std::vector<std::string> words = {"plan",           "gpt2",      "--cluster", "dgx-h100:16",
                                      "--global-batch", "32",        "--seq-len", "512",
                                      "--top",          "5",         "--json",    "--planner",
                                      planner,          "--threads", "1"};
    const std::string one = untimed(words);
    for (const char* threads : {"2", "8"}) {
      words.back() = threads;
      EXPECT_EQ(untimed(words), one) << planner << " " << threads;
    }
  }
}

TEST(Documents, PrintedPlansOfMixedClustersDoNotDependOnThreads) {
  for (const char* planner : {"braid", "amp", "amp-sa", "random"}) {
    std::vector<std::string> words = {"plan",
                                      "gpt2",
                                      "--cluster",
                                      "p3.8xlarge:1nodes+g4dn.12xlarge:1nodes",
                                      "--precision",
                                      "fp16",
                                      "--global-batch",
                                      "8",
                                      "--seq-len",
                                      "512",
                                      "--json",
                                      "--planner",
                                      planner,
                                      "--threads",
                                      "1"};
    const std::string one = untimed(words);
    for (const char* threads : {"2", "8"}) {
      words.back() = threads;
      EXPECT_EQ(untimed(words), one) << planner << " " << threads;
    }
  }
}

}  // namespace
}  // namespace braid
