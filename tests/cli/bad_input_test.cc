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

const std::string kGoodModel = BRAID_SOURCE_DIR "/examples/llama-3-70b/config.json";

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
  expect_bad_input({"plan", kGoodModel, "--cluster", "dgx-h10:8"}, "dgx-h100");
  expect_bad_input(plan_of(kGoodModel, {"--planner", "brade"}), "braid");
  expect_bad_input(plan_of(kGoodModel, {"--precision", "bf17"}), "bf17");
  expect_bad_input(plan_of(kGoodModel, {"--recompute", "some"}), "selective");
}

TEST(BadInput, NumbersAreWholeAndInRange) {
  for (const char* text : {"0", "-1", "1e3", "0x10", "010x", "8.5", "", " 8", "nan", "inf",
                           "99999999999999999999", "2147483649"}) {
    expect_bad_input({"plan", kGoodModel, "--cluster", "dgx-h100:8", "--global-batch", text},
                     "--global-batch");
    expect_bad_input(plan_of(kGoodModel, {"--tp", text}), "--tp");
  }
  for (const char* size : {"8", "8 XB", "-8 GiB", "0 GiB", "nan GiB", "1e400 GiB"}) {
    expect_bad_input(plan_of(kGoodModel, {"--max-memory", size}), "--max-memory");
  }
  for (const char* dim : {"batch", "=8", "batch=", "batch=0", "batch=x"}) {
    expect_bad_input(plan_of(kGoodModel, {"--dim", dim}), "--dim");
  }
  for (const char* cluster : {"dgx-h100:0", "dgx-h100:-8", "dgx-h100:x",
                              "dgx-h100:", "dgx-h100:1e3", "dgx-h100:99999999999999999999"}) {
    expect_bad_input({"plan", kGoodModel, "--cluster", cluster, "--global-batch", "8"}, "dgx-h100");
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
  bad("views.json",
      R"({"braid": "graph", "version": 1, "inputs": [0], "outputs": [1],
          "tensors": [{"dims": [4, 2], "dtype": "f32"}, {"dims": [8], "dtype": "f32"}],
          "operators": [{"name": "v", "kind": "data_movement", "view": true, "inputs": [0],
                         "outputs": [1]}]})",
      "the model computes nothing: all its operators are views");
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
    expect_bad_input({"plan", kGoodModel, "--cluster", folder / name, "--global-batch", "8"}, part);
  };
  expect_bad_input({"plan", kGoodModel, "--cluster", folder / "none.yaml"}, "none.yaml");
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
  bad("l.yaml", "name: x\nchip: h100\ndevices_per_node: 8\n", "l.yaml:2: chip: no chip 'h100'");
  bad("m.yaml", "name: x\ngroups:\n  - {cluster: dgx-h10}\n",
      "m.yaml:3: groups[0].cluster: no cluster 'dgx-h10': neither in the catalogue nor a file;");
}

TEST(BadInput, QuantitiesSayWhichUnitIsDue) {
  const TemporaryFolder folder;
  const std::string file = folder / "x.yaml";
  const auto bad_link = [&](const std::string& bandwidth, const std::string& part) {
    write_file(file,
               "name: x\nchip: h100-sxm\ndevices_per_node: 8\n"
               "intra_node: {name: link, topology: switch, bandwidth: " +
                   bandwidth + "}\n");
    expect_bad_input({"plan", kGoodModel, "--cluster", file, "--global-batch", "8"},
                     "x.yaml:4: intra_node.bandwidth: " + part);
  };
  bad_link("0 GB/s", "a bandwidth of zero; give one above zero");
  for (const char* number : {".nan", ".inf", "1e400"}) {
    write_file(file, "name: x\nchip: h100-sxm\nnodes: " + std::string(number) + "\n");
    expect_bad_input({"plan", kGoodModel, "--cluster", file, "--global-batch", "8"},
                     "x.yaml:3: number '" + std::string(number) + "' is");
  }
  bad_link("900", "a bandwidth without a unit; write it with its unit, such as \"900 GB/s\"");
  for (const char* bandwidth : {"-900 GB/s", "nan GB/s", "1e400 GB/s", "900 GB", "GB/s"}) {
    bad_link(bandwidth, "'" + std::string(bandwidth) + "' is not a bandwidth; write it with");
  }
  const auto chip_with = [&](const std::string& memory) {
    write_file(
        file, "name: x\npeak: {bf16: 1 PFLOP/s}\nvector: 60 TFLOP/s\ncompute_units: 100\nmemory: " +
                  memory);
  };
  const auto bad_chip = [&](const std::string& memory, const std::string& part) {
    chip_with(memory);
    for (const Words& device : {Words{"--chip", file}, Words{"--cluster", folder / "node.yaml"}}) {
      expect_bad_input({"plan", kGoodModel, device[0], device[1], "--global-batch", "8"},
                       "x.yaml:5: memory." + part);
    }
  };
  chip_with("{name: HBM, size: 80 GiB, bandwidth: 3 TB/s}");
  EXPECT_EQ(run_braid({"plan", "gpt2", "--chip", file, "--global-batch", "8"}).status, 0);
  write_file(folder / "node.yaml",
             "name: node\nchip: x.yaml\ndevices_per_node: 8\n"
             "intra_node: {name: link, topology: switch, bandwidth: 900 GB/s}\n");
  bad_chip("{name: HBM, size: 80 GiB, bandwidth: 0 TB/s}", "bandwidth: a bandwidth of zero");
  bad_chip("{name: HBM, size: 80 GiB, bandwidth: -1 TB/s}", "bandwidth: '-1 TB/s' is not");
  bad_chip("{name: HBM, size: 80 GiB, bandwidth: 1e400 TB/s}", "bandwidth: '1e400 TB/s' is not");
  bad_chip("{name: HBM, size: 0 GiB, bandwidth: 3 TB/s}", "size: a size of zero");
  bad_chip("{name: HBM, size: 80, bandwidth: 3 TB/s}", "size: a size without a unit");
}

/// Two products after each other, with one piece of the text exchanged.
std::string graph_with(const std::string& from, const std::string& to) {
  std::string text =
      R"({"braid": "graph", "version": 1, "samples": 8, "inputs": [0], "outputs": [4],
 "tensors": [
  {"name": "x", "dims": [8, 16], "dtype": "bf16"},
  {"name": "a", "dims": [16, 32], "dtype": "bf16", "parameter": true},
  {"name": "h", "dims": [8, 32], "dtype": "bf16"},
  {"name": "b", "dims": [32, 4], "dtype": "bf16", "parameter": true},
  {"name": "y", "dims": [8, 4], "dtype": "bf16"}],
 "operators": [
  {"name": "up", "kind": "matmul", "m": 8, "n": 32, "k": 16, "inputs": [0, 1], "outputs": [2]},
  {"name": "down", "kind": "matmul", "m": 8, "n": 4, "k": 32, "inputs": [2, 3], "outputs": [4]}]})";
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(BadInput, Graphs) {
  const TemporaryFolder folder;
  const std::string file = folder / "g.json";
  const Words plan = {"plan", file, "--cluster", "dgx-h100:1", "--global-batch", "8"};
  write_file(file, graph_with("\"x\"", "\"x\""));
  const Ran planned = run_braid(plan);
  ASSERT_EQ(planned.status, 0);
  EXPECT_EQ(planned.out.substr(0, 3), "g (");                        // It has no name of its own,
  EXPECT_NE(planned.out.find("--to deepspeed"), std::string::npos);  // and no sequence.
  Words longer = plan;
  longer.insert(longer.end(), {"--seq-len", "16"});
  expect_bad_input(longer, "g.json: --seq-len: the sizes of a graph are its own; leave it out");
  const auto bad = [&](const std::string& from, const std::string& to, const std::string& part) {
    write_file(file, graph_with(from, to));
    expect_bad_input(plan, "g.json:" + part);
  };
  bad("[0, 1]", "[4, 1]", "10: operators[1]: the operators lie on a cycle: down → up → down;");
  bad("[0, 1]", "[2, 1]", "9: operators[0]: the operators lie on a cycle: up → up;");
  bad("[0, 1]", "[0, 5]", "9: operators[0].inputs[1]: there is no tensor 5; there are 5");
  bad("[0, 1]", "[0, -1]", "9: operators[0].inputs[1]: -1 is out of range");
  bad("[2, 3]", "[2, 9999999999]", "10: operators[1].inputs[1]: 9999999999 is out of range");
  bad("\"outputs\": [4]", "\"outputs\": [5]", "1: outputs[0]: there is no tensor 5");
  bad("\"outputs\": [4]", "\"outputs\": [4, 4]", " outputs: lists tensor 4 twice; list it once");
  bad("\"down\"", "\"up\"", "10: operators[1].name: the operator in line 9 has the name \"up\"");
  bad("[2]}", "[4]}", "10: operators[1].outputs[0]: tensor 4 is computed in line 9 already;");
  bad("[2]}", "[1]}", "9: operators[0].outputs[0]: this tensor is a parameter;");
  const std::string dims = "[8, 16]";
  bad(dims, "[4294967296, 4294967296]", "3: tensors[0].dims: the size does not fit in 64 bits;");
  bad(dims, "[18446744073709551616, 1]", "3: tensors[0].dims[0]: integer 18446744073709551616");
  bad(dims, "[8, 1e400]", "3: number '1e400' is out of range; give one");
  bad(dims, "[8, 1e300]", "3: tensors[0].dims[1]: ");
  bad(dims, "[8, NaN]", "3: NaN is not a number in JSON; give a finite number");
  bad(dims, "[8, 0]", "3: tensors[0].dims[1]: 0 is out of range");
  bad(dims, "[8, 16.5]", "3: tensors[0].dims[1]: expected an integer, found 16.5");
  bad("\"m\": 8, \"n\": 32, \"k\": 16", "\"m\": 4294967296, \"n\": 4294967296, \"k\": 4294967296",
      " up: its sizes do not fit in 64 bits; use smaller sizes");
  bad("\"m\": 8", "\"m\": -8", "9: operators[0].m: -8 is out of range");
  bad("\"samples\": 8", "\"samples\": 0", "1: samples: 0 is out of range");
}

TEST(BadInput, EmptyFileNamesAndLists) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const Words job = {"plan", "gpt2", "--cluster", "dgx-h100:1", "--global-batch", "8"};
  Words written = job;
  written.insert(written.end(), {"-o", plan});
  ASSERT_EQ(run_braid(written).status, 0);
  written.back() = "";
  expect_bad_input(written, "--output: the file name is empty; name a file");
  expect_bad_input({"profile", "gpt2", "--chip", "h100-sxm", "-o", ""}, "--output: the file name");
  expect_bad_input({"export", plan, "--to", "megatron", "-o", ""}, "--output: the file name");
  expect_bad_input({"report", plan, "-o", ""}, "--output: the file name is empty");
  expect_bad_input({"simulate", plan, "--trace", ""}, "--trace: the file name is empty");
  for (const char* verb : {"simulate", "verify", "report"}) {
    expect_bad_input({verb, ""}, "the name of the file to read is empty; name a file");
  }
  expect_bad_input(plan_of(""), "MODEL is required; name one");
  expect_bad_input({"profile", "", "--chip", "h100-sxm"}, "the name of the model is empty; give");
  for (const char* option : {"--cluster", "--chip", "--max-memory"}) {
    expect_bad_input({"plan", "gpt2", option, ""}, std::string(option) + ": its value is empty");
  }
  expect_bad_input({"plan", "gpt2", "--chip", "h100-sxm", "--cluster", ""},
                   "--cluster: its value is empty; give one or leave the option out");
  expect_bad_input(plan_of("gpt2", {"--cluster", "dgx-h100:16"}),
                   "--cluster: given more than once; give it once");
  expect_bad_input({"profile", "gpt2", "--chip", "h100-sxm", "--cluster", ""},
                   "--cluster: its value is empty; give one");
  for (const char* option : {"--memory", "--bandwidth"}) {
    expect_bad_input({"plan", "--profile", "p.json", option, ""},
                     std::string(option) + ": its value is empty");
  }
  expect_bad_input({"plan", "gpt2"}, "--cluster or --chip is required; say what");
  expect_bad_input({"compare", "gpt2", "--cluster", "dgx-h100:1", "--planners", ","},
                   "--planners: needs a value; see braid --help");
  expect_bad_input({"profile", "gpt2", "--chip", "h100-sxm", "--tp", ","}, "--tp: needs a value;");
  expect_bad_input({"plan", "gpt2", "--cluster"}, "--cluster: needs a value;");
  EXPECT_EQ(folder.size(), 1U);
}

TEST(BadInput, MixedClustersAreRefusedByWhatNeedsOneKindOfDevice) {
  const std::string mix = "p3.8xlarge:3nodes+g4dn.12xlarge:1nodes";
  expect_bad_input(
      {"plan", kGoodModel, "--cluster", mix, "--global-batch", "8", "--planner", "exhaustive"},
      "one kind of device");
  expect_bad_input({"plan", "gpt2", "--cluster", mix, "--global-batch", "8", "--precision", "bf16"},
                   "no chip of p3.8xlarge+g4dn.12xlarge lists a bf16 peak");
  expect_bad_input({"plan", "gpt2", "--cluster", mix, "--global-batch", "8", "--precision", "fp16",
                    "--schedule", "gpipe"},
                   "--schedule: a mixed cluster runs 1f1b; leave it out");
  expect_bad_input({"profile", kGoodModel, "--cluster", mix}, "one kind of device");
  expect_bad_input({"plan", kGoodModel, "--cluster", "p3.8xlarge:3nodes+", "--global-batch", "8"},
                   "no cluster ''");
}

TEST(BadInput, ExportSaysWhatItLacks) {
  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  ASSERT_EQ(run_braid({"plan", "gpt2", "--cluster", "p3.8xlarge:1nodes+g4dn.12xlarge:1nodes",
                       "--global-batch", "8", "--precision", "fp16", "--pp", "2", "-o", file})
                .status,
            0);
  expect_bad_input({"export", file, "--to", "megatrom"}, "no exporter is called 'megatrom'; use");
  expect_bad_input({"export", file, "--to", "megatron"}, "plan for devices of one kind");
}

/// `text` with `number` in place of the first number behind `key`.
std::string with_number(std::string text, const std::string& key, const std::string& number) {
  const std::size_t at = text.find("\"" + key + "\": ");
  EXPECT_NE(at, std::string::npos) << key;
  const std::size_t from = at + key.size() + 4;
  return text.replace(from, text.find_first_of(",}\n", from) - from, number);
}

TEST(BadInput, PlansThatDoNotFitAndCannotBeExportedSaySoInOneLine) {
  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  ASSERT_EQ(run_braid({"plan", "gpt2", "--cluster", "p3.8xlarge:1nodes+g4dn.12xlarge:1nodes",
                       "--global-batch", "8", "--precision", "fp16", "--pp", "2", "-o", file})
                .status,
            0);
  const std::string text = read_file(file);
  const std::size_t memory = text.find("\"memory\": {");
  write_file(file, text.substr(0, memory) + with_number(text.substr(memory), "bytes", "2e9"));
  EXPECT_THAT(run_braid({"simulate", file}).err, HasSubstr("warning: the plan does not fit"));
  expect_bad_input({"export", file, "--to", "megatron"}, "plan for devices of one kind");
  expect_bad_input({"export", file, "--to", "megatrom"}, "no exporter is called 'megatrom'; use");
}

TEST(BadInput, FiguresThatNoMachineHas) {
  const TemporaryFolder folder;
  const std::string cluster = folder / "c.yaml";
  const auto text = [](const std::string& peak, const std::string& bandwidth) {
    return "name: c\nchip:\n  name: x\n  peak: {bf16: " + peak +
           "}\n  vector: 1 TFLOP/s\n  compute_units: 1\n  memory: {name: m, size: 80 GB, "
           "bandwidth: " +
           "1 TB/s}\ndevices_per_node: 2\nintra_node: {name: i, topology: switch, bandwidth: " +
           bandwidth + "}\n";
  };
  const Words plan = {"plan", "gpt2", "--cluster", cluster, "--global-batch", "8"};
  write_file(cluster, text("1 TFLOP/s", "1 GB/s"));
  EXPECT_EQ(run_braid(plan).status, 0);
  write_file(cluster, text("1e-300 FLOP/s", "1 GB/s"));
  expect_bad_input(plan, "c.yaml:4: chip.peak.bf16: no machine has such a compute rate; give one");
  write_file(cluster, text("1 TFLOP/s", "1e-320 GB/s"));
  expect_bad_input(plan, "c.yaml:9: intra_node.bandwidth: no machine has such a bandwidth; give");
  expect_bad_input(plan_of(kGoodModel, {"--max-memory", "1e-300 B"}), "--max-memory: no machine");
}

TEST(BadInput, RestrictionsThatTheModelOrClusterCannotMeet) {
  // 80 layers, an embedding and a head; 64 heads.
  const auto bad = [](const std::string& cluster, const Words& degree, const std::string& part) {
    Words words = {"plan", kGoodModel, "--cluster", cluster, "--global-batch", "8"};
    words.insert(words.end(), degree.begin(), degree.end());
    expect_bad_input(words, part);
  };
  bad("dgx-h100:5", {"--tp", "5"}, "tp 5 does not divide the model's attention heads");
  bad("dgx-h100:96", {"--pp", "96"}, "--pp: 96 stages need as many layers; the model has 82;");
  bad("dgx-h100:64", {"--pp", "8", "--vp", "20"},
      "--vp: 160 chunks need as many layers; the model has 82; choose at most 82 chunks in all");
  bad("dgx-h100:96", {"--pp", "12", "--vp", "8"}, "the model has 82; choose at most 82 chunks");
  bad("dgx-h100:6", {"--dp", "3"}, "--dp: 3 does not divide the global batch of 8; choose");
  bad("dgx-h100:16", {"--dp", "16"}, "--dp: 16 does not divide the global batch of 8; choose");
  bad("dgx-h100:8", {"--micro-batch", "3"}, "--micro-batch: 3 does not divide the global batch");
  bad("dgx-h100:8", {"--dp", "4", "--micro-batch", "4"}, "dp times micro-batch is 16");
  bad("dgx-h100:1", {"--tp", "2"}, "--tp: 2 is more than the 1 device;");
  bad("dgx-h100:1", {"--tp", "2", "--all-devices"}, "--tp: 2 does not divide 1 device;");
  expect_bad_input(plan_of(kGoodModel, {"--tp", "3"}), "3");        // 64 heads, 8 devices
  expect_bad_input(plan_of(kGoodModel, {"--tp", "16"}), "16");      // more than the devices
  expect_bad_input(plan_of(kGoodModel, {"--ep", "2"}), "experts");  // a dense model
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
  ASSERT_EQ(
      run_braid({"plan", "gpt2", "--chip", "h100-sxm", "--global-batch", "1", "-o", file}).status,
      0);
  std::string plan = read_file(file);
  const std::string unit = "\"time_unit_s\": 1.0";
  ASSERT_NE(plan.find(unit), std::string::npos);
  write_file(file, plan.replace(plan.find(unit), unit.size(), "\"time_unit_s\": 1e-3"));
  expect_bad_input({"verify", file}, "time_unit_s: the times of a plan are in seconds; write 1");
  expect_bad_input({"verify", folder.path()}, folder.path());
}

}  // namespace
}  // namespace braid
