#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "braid/base/file.h"

#include "base/temporary_folder.h"
#include "cli/program.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::run_braid;
using Words = std::vector<std::string>;

/// One line on stderr that begins with the program's name and holds `part`; nothing on stdout; 2.
void expect_bad_input(const Words& arguments, const std::string& part) {
  const Ran ran = run_braid(arguments);
  std::string line;
  for (const std::string& word : arguments) line += word + " ";
  EXPECT_EQ(ran.status, 2) << line << "\n" << ran.err;
  EXPECT_EQ(ran.out, "") << line;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << line << "\n" << ran.err;
  EXPECT_EQ(ran.err.rfind("braid: ", 0), 0U) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(part)) << line;
}

const std::string kModel = BRAID_SOURCE_DIR "/examples/llama-3-70b/config.json";

Words plan_of(const std::string& model, const Words& more = {}) {
  Words words = {"plan", model, "--cluster", "dgx-h100:8", "--global-batch", "8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(BadInput, UnknownWordsNameTheNearest) {
  expect_bad_input({}, "braid --help");
  expect_bad_input({"plam"}, "did you mean plan?");
  expect_bad_input({"plan", "--clutser", "x"}, "did you mean --cluster?");
  expect_bad_input({"plan"}, "MODEL");
  expect_bad_input({"list", "modles"}, "modles");
  expect_bad_input({"show", "h100-sxn"}, "h100-sxm");
  expect_bad_input({"plan", kModel, "--cluster", "dgx-h10:8"}, "dgx-h100");
  expect_bad_input(plan_of(kModel, {"--planner", "brade"}), "braid");
  expect_bad_input(plan_of(kModel, {"--precision", "bf17"}), "bf17");
  expect_bad_input(plan_of(kModel, {"--recompute", "some"}), "selective");
}

TEST(BadInput, NumbersAreWholeAndInRange) {
  for (const char* text : {"0", "-1", "1e3", "0x10", "010x", "8.5", "", " 8", "nan", "inf",
                           "99999999999999999999", "2147483649"}) {
    expect_bad_input({"plan", kModel, "--cluster", "dgx-h100:8", "--global-batch", text},
                     "--global-batch");
    expect_bad_input(plan_of(kModel, {"--tp", text}), "--tp");
  }
  for (const char* size : {"8", "8 XB", "-8 GiB", "0 GiB", "nan GiB", "1e400 GiB"}) {
    expect_bad_input(plan_of(kModel, {"--max-memory", size}), "--max-memory");
  }
  for (const char* dim : {"batch", "=8", "batch=", "batch=0", "batch=x"}) {
    expect_bad_input(plan_of(kModel, {"--dim", dim}), "--dim");
  }
  for (const char* cluster : {"dgx-h100:0", "dgx-h100:-8", "dgx-h100:x",
                              "dgx-h100:", "dgx-h100:1e3", "dgx-h100:99999999999999999999"}) {
    expect_bad_input({"plan", kModel, "--cluster", cluster, "--global-batch", "8"}, "dgx-h100");
  }
}

TEST(BadInput, ModelFiles) {
  const TemporaryFolder folder;
  expect_bad_input(plan_of(folder / "none.json"), "none.json");
  expect_bad_input(plan_of(folder.path()), "config.json");
  const auto bad = [&](const std::string& name, const std::string& text, const std::string& part) {
    write_file(folder / name, text);
    expect_bad_input(plan_of(folder / name), part);
  };
  bad("a.json", "{", "a.json");
  bad("b.json", "[]", "b.json");
  bad("c.json", "{\"model_type\": \"llama\", \"model_type\": \"llama\"}", "model_type");
  bad("d.json", "{\"model_type\": \"perceptron\"}", "perceptron");
  bad("e.json", "{\"braid\": \"plan\", \"version\": 1}", "e.json");
  bad("f.json", "{\"model_type\": \"llama\", \"hidden_size\": 1e400}", "f.json");
  bad("g.json", "{\"model_type\": \"llama\", \"hidden_size\": NaN}", "g.json");
  bad("h.json", "", "h.json");
  bad("i.json", std::string(100000, '['), "i.json");
  bad("j.onnx", "\x08", "j.onnx");
  bad("k.onnx", std::string(64, '\xff'), "k.onnx");
}

TEST(BadInput, ClusterFiles) {
  const TemporaryFolder folder;
  const auto bad = [&](const std::string& name, const std::string& text, const std::string& part) {
    write_file(folder / name, text);
    expect_bad_input({"plan", kModel, "--cluster", folder / name, "--global-batch", "8"}, part);
  };
  expect_bad_input({"plan", kModel, "--cluster", folder / "none.yaml"}, "none.yaml");
  bad("a.yaml", "[", "a.yaml");
  bad("b.yaml", "name: x\nname: y\n", "name");
  bad("c.yaml", "12\n", "c.yaml");
  bad("d.yaml", "", "d.yaml");
  const std::string node = "name: x\nchip: h100-sxm\ndevices_per_node: 8\nintra_node: ";
  const auto level = [&](const std::string& bandwidth) {
    return node + "{name: link, topology: switch, bandwidth: " + bandwidth + "}\n";
  };
  for (const char* bandwidth : {"0 GB/s", "-1 GB/s", "100", ".nan", ".inf", "1e400 GB/s", "fast"}) {
    bad("e.yaml", level(bandwidth), "e.yaml:4");
  }
  bad("f.yaml", level("1 GB/s") + "nodes: 2\n", "no network between nodes");
  bad("g.yaml", level("1 GB/s") + "node: 2\n", "did you mean");
  bad("h.yaml", level("1 GB/s") + "nodes: 99999999999999999999\n", "nodes");
  bad("i.yaml", level("1 GB/s") + "bandwidth_matrix: [[1 GB/s]]\n", "each of the 8 devices");
  bad("j.yaml", "name: x\ngroups: []\n", "at least one group");
  bad("k.yaml", "name: x\ngroups: [{cluster: k.yaml}]\n", "name itself");
  bad("l.yaml", "name: x\nchip: h100\ndevices_per_node: 8\n", "h100-sxm");
}

TEST(BadInput, MixedClustersAreRefusedByWhatNeedsOneKindOfDevice) {
  const std::string mix = "p3.8xlarge:3nodes+g4dn.12xlarge:1nodes";
  for (const char* planner : {"braid", "megatron"}) {
    expect_bad_input(
        {"plan", kModel, "--cluster", mix, "--global-batch", "8", "--planner", planner},
        "one kind of device");
  }
  expect_bad_input({"profile", kModel, "--cluster", mix}, "one kind of device");
  expect_bad_input({"plan", kModel, "--cluster", "p3.8xlarge:3nodes+", "--global-batch", "8"},
                   "no cluster ''");
}

TEST(BadInput, RestrictionsThatTheModelOrClusterCannotMeet) {
  expect_bad_input(plan_of(kModel, {"--tp", "3"}), "3");        // 64 heads, 8 devices
  expect_bad_input(plan_of(kModel, {"--tp", "16"}), "16");      // more than the devices
  expect_bad_input(plan_of(kModel, {"--ep", "2"}), "experts");  // a dense model
}

TEST(BadInput, PlanFiles) {
  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  for (const char* text : {"", "{", "[]", "{}", "{\"braid\": \"profile\", \"version\": 1}",
                           "{\"braid\": \"plan\", \"version\": 2}", "{\"braid\": \"plan\"}"}) {
    write_file(file, text);
    for (const char* verb : {"simulate", "verify", "report"}) {
      expect_bad_input({verb, file}, "plan.json");
    }
    expect_bad_input({"export", file, "--to", "megatron"}, "plan.json");
  }
  expect_bad_input({"verify", folder / "none.json"}, "none.json");
  expect_bad_input({"verify", folder.path()}, folder.path());
}

}  // namespace
}  // namespace braid
