#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"
#include "dataflow/small_setup.h"
#include "explore/small_space_text.h"
#include "support/source_path.h"

namespace braid {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_braid;
using ::testing::HasSubstr;

class Explore : public ::testing::Test {
 protected:
  Explore() { write_file(space_, small_space_text()); }

  TemporaryFolder folder_;
  std::string space_ = folder_ / "space.yaml";
};

TEST_F(Explore, PrintsTheBestAndTheRatios) {
  const Ran ran = run_braid({"explore", space_});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part :
       {"64 points", "Pareto-optimal in", "tp x pp x dp", "wide over thin", "shapes"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
}

TEST_F(Explore, FilesDoNotDependOnThreadsOrResuming) {
  std::vector<std::string> texts;
  for (const char* threads : {"1", "2", "8", "8"}) {
    const std::string out = folder_ / (std::string("out") + threads);  // The last one resumes.
    const Ran ran = run_braid({"explore", space_, "--out", out, "--threads", threads});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(out)) {
      if (entry.path().extension() != ".sqlite") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    std::string all;
    for (const std::string& name : names) all += name + "\n" + read_file(out + "/" + name);
    texts.push_back(std::move(all));
  }
  EXPECT_THAT(texts[0], HasSubstr("points.csv"));
  for (const std::string& text : texts) EXPECT_TRUE(text == texts[0]);
  const Ran again = run_braid({"explore", space_, "--out", folder_ / "out8"});
  EXPECT_THAT(again.out, HasSubstr("64 of them from before"));
}

// A space of one point that is the machine of an input for `braid map`.
TEST_F(Explore, APointIsWhatMapFinds) {
  const std::string setup = folder_ / "setup.txt";
  const std::string network = "r { x: 4 link_bw_x: 50.0 par_x: \"TP\" }";
  for (const char* rules : {"dfmodel", "dfmodel-charged"}) {
    for (const char* parallelism : {"given", "roles", "shapes"}) {
      for (const std::string two : {"",
                                    "r_sw { x: 2 y: 2 link_bw_x: 50 link_bw_y: 50 par_x: 'TP' "
                                    "par_y: 'PP' }"}) {
        write_file(setup,
                   two.empty() ? small_setup_text() : replaced(small_setup_text(), network, two));
        write_file(space_,
                   std::string("devices: 4\nrules: ") + rules + "\nparallelism: " + parallelism +
                       R"(
workloads: {tiny: {kind: dfmodel, file: setup.txt}}
chips: {one: {tiles: 64, tile: [32, 8], clock: 1 GHz, sram: 8 MiB, price: 1000 USD, power: 100 W}}
memories: {dram: {capacity: 100 GB, bandwidth: 200 GB/s, price: 1 USD per GB/s, power: 0.16 W per GB/s}}
topologies: {net: )" +
                       (two.empty() ? "{dimensions: [ring], sizes: [4], roles: [tensor]}"
                                    : "{dimensions: [ring, switch], sizes: [2, 2], roles: [tensor, "
                                      "pipeline]}") +
                       R"(}
links: {all: {bandwidth: 50 GB/s, price: 2 USD per GB/s, power: [0.05 W per GB/s, 0 W per GB/s], port_price: 24 USD per GB/s, port_power: 0.05 W per GB/s}}
)");
        std::vector<std::string> words{"map", setup, "--json"};
        if (std::string(rules) == "dfmodel") words.insert(words.end(), {"--compat", "dfmodel"});
        if (std::string(parallelism) != "given") {
          words.insert(words.end(), {"--search", parallelism});
        }
        const Ran mapped = run_braid(words);
        ASSERT_EQ(mapped.status, 0) << mapped.err;
        const Ran explored = run_braid({"explore", space_, "--json"});
        ASSERT_EQ(explored.status, 0) << explored.err;
        const json job = json::parse(mapped.out)["job"];
        const json point = json::parse(explored.out)["points"][0];
        EXPECT_EQ(point["time_s"], job["time_s"]) << rules << " " << parallelism;
        EXPECT_EQ(point["utilisation"], job["utilisation"]);
        EXPECT_EQ(point["price_usd"], job["price_usd"]);
        EXPECT_EQ(point["power_w"], job["power_w"]);
        EXPECT_EQ(point["tp"], job["tp"]);
        EXPECT_EQ(point["pp"], job["pp"]);
      }
    }
  }
}

// Every point of the example is what `braid plan` says of that model on that cluster, and its plan
// is kept, holds and goes on to the trainer.
TEST_F(Explore, PointsOfRealModelsAreWhatPlanFinds) {
  const std::string example = test::source_path("examples/explore/llama-3-70b.yaml");
  const std::string out = folder_ / "out";
  const Ran explored = run_braid({"explore", example, "--out", out, "--plans", "--json"});
  ASSERT_EQ(explored.status, 0) << explored.err;
  const json points = json::parse(explored.out)["points"];
  ASSERT_EQ(points.size(), 8U);
  const std::vector<std::pair<std::string, std::string>> own{{"h100", "dgx-h100:64"},
                                                             {"tpu-v5p", "tpu-v5p-pod:64"}};
  for (const auto& [chip, cluster] : own) {
    const Ran planned =
        run_braid({"plan", "llama-3-70b", "--cluster", cluster, "--global-batch", "512",
                   "--seq-len", "8192", "--precision", "bf16", "--fastest", "--json"});
    ASSERT_EQ(planned.status, 0) << planned.err;
    const json plan = json::parse(planned.out);
    const std::string network = chip == "h100" ? "nodes" : "torus";
    const auto point = std::find_if(points.begin(), points.end(), [&](const json& entry) {
      return entry["chip"] == chip && entry["network"] == network;
    });
    ASSERT_NE(point, points.end());
    EXPECT_EQ((*point)["time_s"], plan["iteration_time_s"]);
    EXPECT_EQ((*point)["lower_bound_s"], plan["lower_bound_s"]);
    EXPECT_EQ((*point)["utilisation"], plan["mfu"]);
    EXPECT_EQ((*point)["tokens_per_s"], plan["tokens_per_s"]);
    EXPECT_EQ((*point)["peak_memory_bytes"], plan["peak_memory_bytes"]);
    EXPECT_EQ((*point)["status"], plan["status"]);
    EXPECT_FALSE(point->contains("price_usd"));  // None of these chips has one.
    EXPECT_EQ((*point)["power_w"], chip == "h100" ? 64 * 700 : 64 * 500);
    const std::string file = out + "/" + std::string((*point)["plan"]);
    EXPECT_EQ(run_braid({"verify", file}).status, 0);
    EXPECT_EQ(run_braid({"report", file, "-o", folder_ / "report.html"}).status, 0);
    const std::string trainer = chip == "h100" ? "megatron" : "maxtext";
    EXPECT_EQ(run_braid({"export", file, "--to", trainer}).status, 0);
  }
}

// Models may be files beside the space; what was not said is said to be assumed.
TEST_F(Explore, ModelsAreFilesBesideTheSpace) {
  std::filesystem::create_directory(folder_ / "tiny");
  write_file(folder_ / "tiny/config.json",
             read_file(test::source_path("examples/llama-3-70b/config.json")));
  write_file(space_,
             "devices: 64\nworkloads: {own: {model: tiny/config.json, global_batch: 64}}\n"
             "chips: [h100-sxm]\nnetworks: [dgx-h100]\n");
  const Ran ran = run_braid({"explore", space_, "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json printed = json::parse(ran.out);
  const Ran planned = run_braid({"plan", folder_ / "tiny/config.json", "--cluster", "dgx-h100:64",
                                 "--global-batch", "64", "--fastest", "--json"});
  const json said = json::parse(planned.out);
  EXPECT_EQ(printed["points"][0]["time_s"], said["iteration_time_s"]);
  const std::string assumed = printed["assumptions"].dump();
  EXPECT_THAT(assumed, HasSubstr("no seq_len given"));
  for (const json& line : said["assumptions"]) {
    if (std::string(line).rfind("sequence length", 0) == 0) continue;
    // Of systems the space has names of its own.
    EXPECT_THAT(assumed, HasSubstr(std::string(line).substr(std::string(line).find(':') + 2)));
  }
}

TEST_F(Explore, NoPlanAnywhereIsStatus1) {
  std::string text = small_space_text();
  text = text.substr(0, text.find("ratios:"));
  for (const char* capacity : {"64 GB", "16 GB"}) {
    text.replace(text.find(capacity), 5, "64 B ");
  }
  write_file(space_, text);
  const Ran ran = run_braid({"explore", space_});
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("64 without a plan"));
}

}  // namespace
}  // namespace braid
