#include "braid/profile/piper_profile.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

PiperProfile read(const std::string& text) {
  const Document document = Document::parse(text, Document::Syntax::json, "p.json");
  return piper_profile_from_json(document.root());
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string option(const std::string& in, const std::string& out,
                   const std::string& name = "vanilla") {
  return R"({"id": ")" + name + R"(", "timePerSample": 2.5, "parameterSize": 30,
    "memoryUsageA": 7, "memoryUsageB": 11, "syncTimeFw": {)" +
         in + R"(}, "syncTimeBw": {)" + out + "}}";
}

std::string layer(const std::string& id, const std::string& configurations) {
  return R"({"id": )" + id + R"(, "TMPCs": {)" + configurations + "}}";
}

std::string file(const std::string& nodes, const std::string& edges) {
  return R"({"maxMemoryPerDevice": 80e9, "maxDevices": 10, "bandwidth": 25e9, "mbsInBatch": 96,
  "nodes": [)" +
         nodes + R"(],
  "edges": [)" +
         edges + "]}";
}

const char* const kEdge = R"({"sourceId": 7, "destId": 3, "communicationCost": 64})";

TEST(PiperProfile, NumbersLayersTopologically) {
  const PiperProfile piper = read(file(
      layer("3", R"("1": [)" + option(R"("7": 0)", "") + R"(], "2": [)" + option(R"("7": 5)", "") +
                     "," + option(R"("7": 5)", "", "activation recomp") + "]") +
          "," + layer("7", R"("1": [)" + option("", R"("3": 9)") + "]"),
      kEdge));
  EXPECT_EQ(piper.devices, 10);
  EXPECT_EQ(piper.micro_batches, 96);
  EXPECT_EQ(piper.memory_bytes, 80e9);
  EXPECT_EQ(piper.bandwidth_bytes, 25e9);
  const Profile& profile = piper.profile;
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.layers[0].name, "layer 7");
  EXPECT_EQ(profile.layers[1].name, "layer 3");
  EXPECT_EQ(profile.edges, (std::vector<ProfileEdge>{{0, 1, 64}}));
  const auto& first = options_of(profile, 0);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].cost.forward.compute_s, 2.5);
  EXPECT_EQ(first[0].cost.gradient_bytes, 30);
  EXPECT_EQ(first[0].cost.stash_bytes, 7);
  EXPECT_EQ(first[0].cost.fixed_bytes, 11);
  EXPECT_EQ(first[0].edge_syncs, (std::vector<EdgeSync>{{0, 0, 9}}));
  const auto& second = options_of(profile, 1);
  ASSERT_EQ(second.size(), 3U);
  EXPECT_TRUE(second[0].edge_syncs.empty());
  EXPECT_EQ(second[1].how.tp, 2);
  EXPECT_EQ(second[1].edge_syncs, (std::vector<EdgeSync>{{0, 5, 0}}));
  EXPECT_EQ(second[2].how.recompute, Recompute::full);
  check_profile(profile, "p.json");
}

TEST(PiperProfile, EqualLayersShareTheirOptions) {
  const std::string one = R"("1": [)" + option("", "") + "]";
  const PiperProfile piper = read(file(layer("0", one) + "," + layer("1", one), ""));
  EXPECT_EQ(piper.profile.kinds.size(), 1U);
}

TEST(PiperProfile, TellsItsFormat) {
  const auto is = [](const std::string& text) {
    const Document document = Document::parse(text, Document::Syntax::json, "p.json");
    return is_piper_profile(document.root());
  };
  EXPECT_TRUE(is(file("", "")));
  EXPECT_FALSE(is(R"({"braid": "profile", "nodes": []})"));
  EXPECT_FALSE(is("[]"));
}

TEST(PiperProfile, RefusesBadFiles) {
  const std::string one = R"("1": [)" + option("", "") + "]";
  const std::string source = layer("7", R"("1": [)" + option("", R"("3": 0)") + "]");
  const std::string target = layer("3", R"("1": [)" + option(R"("7": 0)", "") + "]");
  EXPECT_EQ(complaint(file(source + "," + target, kEdge)), "");
  const std::pair<std::string, const char*> cases[] = {
      {file("", ""), "no layers"},
      {file(layer("1", one) + "," + layer("1", one), ""), "second layer has id 1"},
      {file(layer("1", one), kEdge), "no layer has id 7"},
      {file(source + "," + target, std::string(kEdge) + "," + kEdge), "listed twice"},
      {file(layer("1", one), R"({"sourceId": 1, "destId": 1, "communicationCost": 1})"), "cycle"},
      {file(source + "," + target,
            std::string(kEdge) + R"(,{"sourceId": 3, "destId": 7, "communicationCost": 1})"),
       "cycle"},
      {file(layer("1", ""), ""), "no option for any degree"},
      {file(layer("1", R"("1": [])"), ""), "no option for any degree"},
      {file(layer("1", R"("0": [)" + option("", "") + "]"), ""), "no tensor-parallel degree"},
      {file(layer("1", R"("two": [)" + option("", "") + "]"), ""), "no tensor-parallel degree"},
      {file(layer("1", R"("1": [)" + option(R"("2": 4)", "") + "]"), ""), "no edge from '2'"},
      {file(source + "," + layer("3", one), kEdge), "there are 1"},
      {R"({"nodes": [{"id": 1}], "edges": []})", "TMPCs"},
      {R"({"maxDevices": 0, "nodes": [], "edges": []})", "maxDevices"},
      {R"({"bandwidth": -1, "nodes": [], "edges": []})", "bandwidth"},
      {R"({"maxMemoryPerDevice": 0, "nodes": [], "edges": []})", "maxMemoryPerDevice"},
      {R"({"mbsInBatch": 0.5, "nodes": [], "edges": []})", "mbsInBatch"},
  };
  for (const auto& [text, part] : cases) {
    EXPECT_NE(complaint(text).find(part), std::string::npos) << part << ": " << complaint(text);
    EXPECT_NE(complaint(text).find("p.json"), std::string::npos) << complaint(text);
  }
  std::string negative = file(layer("1", one), "");
  negative.replace(negative.find("2.5"), 3, "-2.");
  negative.replace(negative.find("-2."), 3, "-25");
  EXPECT_NE(complaint(negative).find("timePerSample"), std::string::npos) << complaint(negative);
}

}  // namespace
}  // namespace braid
