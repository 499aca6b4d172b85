#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program_here.h"
#include "support/source_path.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid_here;
using Words = std::vector<std::string>;

constexpr const char* kExtremes[] = {"1e308",  "1e300", "1e18", "1e-30", "1e-300",
                                     "1e-320", "9e18",  "1e9",  "0",     "-1"};

struct Number {
  std::size_t from, to;
};

/// The first number behind each key of a JSON or YAML text.
std::vector<Number> numbers_of(const std::string& text) {
  std::vector<Number> numbers;
  std::set<std::string> seen;
  for (std::size_t colon = text.find(": "); colon != std::string::npos;
       colon = text.find(": ", colon + 1)) {
    const std::size_t from = text.find_first_not_of(" [", colon + 1);
    if (from == std::string::npos || std::isdigit(static_cast<unsigned char>(text[from])) == 0) {
      continue;
    }
    const std::size_t key = text.find_last_of(" {\n", colon - 1) + 1;
    if (!seen.insert(text.substr(key, colon - key)).second) continue;
    numbers.push_back(
        {from, std::min(text.find_first_not_of("0123456789.e+-", from), text.size())});
  }
  return numbers;
}

/// Puts each of kExtremes in place of each of the numbers of `text`, and runs braid with the file
/// that this makes. It may find a plan or none, also within its budget (3), or refuse the file in
/// one line.
void try_extremes(const std::string& text, const std::string& name, Words words) {
  const TemporaryFolder folder;
  const std::string file = folder / name;
  std::replace(words.begin(), words.end(), std::string("FILE"), file);
  const std::vector<Number> numbers = numbers_of(text);
  EXPECT_GT(numbers.size(), 3U);
  for (const Number& number : numbers) {
    for (const char* extreme : kExtremes) {
      write_file(file, text.substr(0, number.from) + extreme + text.substr(number.to));
      const Ran ran = run_braid_here(words);
      const std::string what = text.substr(number.from - 20, 20) + extreme + ": " + ran.err;
      EXPECT_TRUE(ran.status >= 0 && ran.status <= 3) << ran.status << what;
      if (ran.status != 2) continue;
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << what;
      EXPECT_EQ(ran.out, "") << what;
    }
  }
}

std::string seed(const std::string& path) {
  return read_file(test::source_path("fuzz/seeds/" + path));
}

TEST(ExtremeNumbers, Plans) {
  try_extremes(seed("plan/pipeline.json"), "plan.json", {"simulate", "FILE"});
}

TEST(ExtremeNumbers, Profiles) {
  try_extremes(seed("profile/braid.json"), "profile.json",
               {"plan", "--profile", "FILE", "--planner", "graphpipe", "--devices", "2",
                "--bandwidth", "1 GB/s", "--memory", "80 GB", "--max-microbatches", "8"});
  try_extremes(seed("profile/piper.json"), "piper.json", {"plan", "--profile", "FILE"});
  try_extremes(seed("phaze/small.json"), "phaze.json", {"plan", "--profile", "FILE"});
}

TEST(ExtremeNumbers, ClustersModelsAndSpaces) {
  const std::string node =
      "name: c\nchip: h100-sxm\ndevices_per_node: 2\nnode_bandwidth: 90 GB/s\nintra_node:\n"
      "  name: i\n  topology: switch\n  bandwidth: 400 GB/s\n  latency: 3 us\n  half_size: 2 MB\n"
      "  efficiency: 0.8\nlevels:\n  - name: o\n    topology: switch\n    rails: 2\n"
      "    oversubscription: 2\n    unit_bandwidth: 80 GB/s\n    bandwidth: 40 GB/s\nnodes: 2\n";
  try_extremes(node, "cluster.yaml",
               {"plan", "gpt2", "--cluster", "FILE", "--global-batch", "8", "--seq-len", "64"});
  try_extremes(
      "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 4, \"n_positions\": "
      "128, \"vocab_size\": 512}",
      "config.json",
      {"plan", "FILE", "--cluster", "dgx-h100:2", "--global-batch", "8", "--budget", "200"});
  try_extremes(
      "name: tiny space of few points\nworkloads:\n"
      "  gpt: {model: gpt2, seq_len: 64, global_batch: 8}\n"
      "chips:\n  a: {chip: h100-sxm, price: 30000 USD, power: 700 W}\n"
      "memories:\n  m: {capacity: 80 GB, bandwidth: 3 TB/s, price: 2 USD per GB/s, power: 0.05 W "
      "per GB/s}\nnetworks:\n  n: dgx-h100\nlinks:\n  l: {bandwidth: [400 GB/s, 50 GB/s], latency: "
      "[1 us, 5 us], price: 1 USD per GB/s, power: 0.1 W per GB/s}\ndevices: 8\nbudget: 600\n",
      "space.yaml", {"explore", "FILE", "--json"});
}

}  // namespace
}  // namespace braid
