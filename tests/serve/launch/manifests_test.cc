#include "braid/serve/launch/manifests.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/yaml_text.h"
#include "braid/serve/launch/stated_service.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;
using testing::HasSubstr;
using testing::IsEmpty;

/// Every key of a document by its path, elements of lists as [].
void add_paths(const Value& value, const std::string& path, std::set<std::string>& paths) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.members()) {
      paths.insert(path + "/" + std::string(key));
      add_paths(member, path + "/" + std::string(key), paths);
    }
  } else if (value.is_array()) {
    for (const Value& element : value.elements()) add_paths(element, path + "/[]", paths);
  }
}

/// Those of examples/backends/{vllm,sglang,trtllm}/deploy/v1beta1/disagg*.yaml of ai-dynamo/dynamo.
std::set<std::string> paths_of_dynamo() {
  std::set<std::string> paths = {"/apiVersion",    "/kind", "/metadata",
                                 "/metadata/name", "/spec", "/spec/components"};
  const std::string component = "/spec/components/[]",
                    container = component + "/podTemplate/spec/containers/[]";
  for (const char* key : {"/name", "/type", "/replicas", "/multinode", "/multinode/nodeCount",
                          "/podTemplate", "/podTemplate/spec", "/podTemplate/spec/containers"}) {
    paths.insert(component + key);
  }
  for (const char* key : {"/name", "/image", "/command", "/args", "/envFrom",
                          "/envFrom/[]/secretRef", "/envFrom/[]/secretRef/name", "/resources",
                          "/resources/limits", "/resources/limits/nvidia.com/gpu", "/workingDir"}) {
    paths.insert(container + key);
  }
  return paths;
}

/// Those of guides/wide-ep-lws/modelserver/gpu/vllm-deepseek-v4/base/decode.yaml of llm-d/llm-d.
std::set<std::string> paths_of_llm_d() {
  const std::string pod = "/spec/leaderWorkerTemplate/workerTemplate";
  std::set<std::string> paths = {"/apiVersion",
                                 "/kind",
                                 "/metadata",
                                 "/metadata/name",
                                 "/metadata/labels",
                                 "/spec",
                                 "/spec/replicas",
                                 "/spec/leaderWorkerTemplate",
                                 "/spec/leaderWorkerTemplate/size",
                                 pod,
                                 pod + "/metadata",
                                 pod + "/metadata/labels",
                                 pod + "/spec"};
  for (const char* label : {"llm-d.ai/inference-serving", "llm-d.ai/model", "llm-d.ai/role"}) {
    paths.insert("/metadata/labels/" + std::string(label));
    paths.insert(pod + "/metadata/labels/" + label);
  }
  for (const char* key : {"/initContainers",
                          "/initContainers/[]/name",
                          "/initContainers/[]/args",
                          "/initContainers/[]/image",
                          "/initContainers/[]/ports",
                          "/initContainers/[]/ports/[]/containerPort",
                          "/initContainers/[]/ports/[]/name",
                          "/initContainers/[]/restartPolicy",
                          "/initContainers/[]/securityContext",
                          "/initContainers/[]/securityContext/allowPrivilegeEscalation",
                          "/initContainers/[]/securityContext/runAsNonRoot",
                          "/volumes",
                          "/volumes/[]/name",
                          "/volumes/[]/emptyDir",
                          "/volumes/[]/emptyDir/medium",
                          "/containers",
                          "/containers/[]/name",
                          "/containers/[]/image",
                          "/containers/[]/command",
                          "/containers/[]/args",
                          "/containers/[]/env",
                          "/containers/[]/env/[]/name",
                          "/containers/[]/env/[]/valueFrom",
                          "/containers/[]/env/[]/valueFrom/secretKeyRef",
                          "/containers/[]/env/[]/valueFrom/secretKeyRef/name",
                          "/containers/[]/env/[]/valueFrom/secretKeyRef/key",
                          "/containers/[]/env/[]/valueFrom/fieldRef",
                          "/containers/[]/env/[]/valueFrom/fieldRef/fieldPath",
                          "/containers/[]/ports",
                          "/containers/[]/ports/[]/containerPort",
                          "/containers/[]/ports/[]/name",
                          "/containers/[]/resources",
                          "/containers/[]/resources/limits",
                          "/containers/[]/resources/limits/nvidia.com/gpu",
                          "/containers/[]/resources/requests",
                          "/containers/[]/resources/requests/nvidia.com/gpu",
                          "/containers/[]/volumeMounts",
                          "/containers/[]/volumeMounts/[]/name",
                          "/containers/[]/volumeMounts/[]/mountPath"}) {
    paths.insert(pod + "/spec" + key);
  }
  return paths;
}

/// Paths of `text` that `known` does not have.
std::vector<std::string> unknown_paths(const Value& root, const std::set<std::string>& known) {
  std::set<std::string> paths;
  add_paths(root, "", paths);
  std::vector<std::string> unknown;
  std::set_difference(paths.begin(), paths.end(), known.begin(), known.end(),
                      std::back_inserter(unknown));
  return unknown;
}

std::string quoted(const Value& words) {
  std::string line;
  for (const Value& word : words.elements()) line += " '" + std::string(word.as_string()) + "'";
  return line;
}

std::int64_t gpus_of(const Value& container) {
  return std::stoll(std::string(container["resources"]["limits"]["nvidia.com/gpu"].as_string()));
}

/// What a manifest's command and arguments say of the worker, by the reader of command lines.
void expect_worker(const Value& container, const WorkerPlan& of, const char* role) {
  std::string line = quoted(container["command"]) + quoted(container["args"]);
  if (container["command"].elements().front().as_string() == "/bin/bash") {
    line = container["args"].elements().front().as_string();
  }
  for (const auto& [from, to] : {std::pair("dynamo.vllm", "vllm.entrypoints.openai.api_server"),
                                 std::pair("dynamo.sglang", "sglang.launch_server")}) {
    if (const std::size_t at = line.find(from); at != std::string::npos) {
      line.replace(at, std::string(from).size(), to);
    }
  }
  // The other half of the service, so that the text is one.
  const std::string own = std::string("# 1 workers of ") + role + "\n" + line + "\n";
  const std::string other = std::string("# 1 workers of ") +
                            (role == std::string("prompts") ? "decoding" : "prompts") + "\n" +
                            (of.engine->name == "vllm" ? "vllm serve m\n" : "sglang serve\n");
  const LaunchedWorker read = read_launch_lines(own + other, "f").workers.front();
  EXPECT_EQ(read.model, "org/Some_Model") << line;
  EXPECT_EQ(read.tp, of.layout.tp);
  EXPECT_EQ(read.dp, of.layout.dp);
  EXPECT_EQ(read.pp, of.layout.pp);
  EXPECT_EQ(read.chunk_tokens, of.limits.chunk_tokens);
  EXPECT_EQ(read.cache == "fp8", of.format.cache == "fp8");
  EXPECT_EQ(read.sequences, of.engine->name == "vllm"
                                ? group_sequences(of)
                                : of.limits.sequences / static_cast<double>(of.layout.dp));
}

/// A plan with pods on one node for prompts, and on `nodes` for decoding.
ServingPlan plan_of(const ServingFixture& with, std::int64_t nodes) {
  ServingPlan plan;
  plan.disaggregated = true;
  const ServingFormat format = serving_format(with.model, "fp8");
  plan.prefill = {&with.engine, format, {4, 2, 1, 1, 4, 1}, 3, {4096, 512}, 0};
  plan.decode = {&with.engine,
                 format,
                 {1, 1, 8 * nodes, 1, 8 * nodes, 1},
                 2,
                 {8192, 64.0 * static_cast<double>(nodes)},
                 0};
  return plan;
}

TEST(Manifests, DynamosHaveTheFieldsOfItsExamples) {
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    for (const std::int64_t nodes : {1, 2}) {
      SCOPED_TRACE(std::string(engine) + " on nodes: " + std::to_string(nodes));
      const ServingFixture with("deepseek-v3", "dgx-h200:64", engine);
      const ServingPlan plan = plan_of(with, nodes);
      const std::string text = dynamo_manifest(plan, {"org/Some_Model", "", 8192}, 8);
      const Document document = Document::parse(text, Document::Syntax::yaml, "manifest");
      const Value root = document.root();
      EXPECT_THAT(unknown_paths(root, paths_of_dynamo()), IsEmpty());
      EXPECT_EQ(root["apiVersion"].as_string(), "nvidia.com/v1beta1");
      EXPECT_EQ(root["kind"].as_string(), "DynamoGraphDeployment");
      EXPECT_EQ(root["metadata"]["name"].as_string(), "some-model-disagg");
      const std::vector<Value> components = root["spec"]["components"].elements();
      ASSERT_EQ(components.size(), 3);
      EXPECT_EQ(components[0]["type"].as_string(), "frontend");
      EXPECT_EQ(components[1]["type"].as_string(), "prefill");
      EXPECT_EQ(components[1]["replicas"].as_int(), 3);
      EXPECT_EQ(components[2]["type"].as_string(), "decode");
      EXPECT_EQ(components[2]["replicas"].as_int(), 2);
      const Value decode = components[2];
      EXPECT_EQ(decode["multinode"].exists(), nodes > 1);
      if (nodes > 1) {
        EXPECT_EQ(decode["multinode"]["nodeCount"].as_int(), nodes);
      }
      const Value container = decode["podTemplate"]["spec"]["containers"].elements().front();
      EXPECT_EQ(gpus_of(container) * nodes, plan.decode.layout.devices());
      EXPECT_EQ(container["command"].elements().back().as_string(),
                std::string("dynamo.") + engine);
      if (engine == std::string("trtllm")) {
        EXPECT_THAT(text, HasSubstr("\"enable_attention_dp\":true"));
        EXPECT_THAT(text, HasSubstr("\"tensor_parallel_size\":" + std::to_string(8 * nodes)));
      } else {
        expect_worker(container, plan.decode, "decoding");
        expect_worker(components[1]["podTemplate"]["spec"]["containers"].elements().front(),
                      plan.prefill, "prompts");
      }
    }
  }
}

TEST(Manifests, LlmDsHaveTheFieldsOfItsGuides) {
  for (const char* engine : {"vllm", "sglang"}) {
    for (const std::int64_t nodes : {1, 2}) {
      SCOPED_TRACE(std::string(engine) + " on nodes: " + std::to_string(nodes));
      const ServingFixture with("deepseek-v3", "dgx-h200:64", engine);
      const ServingPlan plan = plan_of(with, nodes);
      const std::string both = llm_d_manifest(plan, {"org/Some_Model", "", 8192}, 8);
      const std::size_t cut = both.find("---\n");
      ASSERT_NE(cut, std::string::npos);
      for (const bool decoding : {false, true}) {
        const std::string text = decoding ? both.substr(cut + 4) : both.substr(0, cut);
        const Document document = Document::parse(text, Document::Syntax::yaml, "manifest");
        const Value root = document.root();
        const WorkerPlan& of = decoding ? plan.decode : plan.prefill;
        EXPECT_THAT(unknown_paths(root, paths_of_llm_d()), IsEmpty());
        EXPECT_EQ(root["apiVersion"].as_string(), "leaderworkerset.x-k8s.io/v1");
        EXPECT_EQ(root["kind"].as_string(), "LeaderWorkerSet");
        EXPECT_EQ(root["spec"]["replicas"].as_int(), of.workers);
        const Value group = root["spec"]["leaderWorkerTemplate"];
        EXPECT_EQ(group["size"].as_int(), decoding ? nodes : 1);
        const Value spec = group["workerTemplate"]["spec"];
        EXPECT_EQ(spec["initContainers"].exists(), decoding);
        const Value container = spec["containers"].elements().front();
        EXPECT_EQ(gpus_of(container) * group["size"].as_int(), of.layout.devices());
        expect_worker(container, of, decoding ? "decoding" : "prompts");
      }
    }
  }
  const ServingFixture with("deepseek-v3", "dgx-h200:64", "trtllm");
  EXPECT_EQ(llm_d_manifest(plan_of(with, 1), {"m", "", 8192}, 8), "");
}

TEST(Manifests, StartEnginesOfOnesOwnAsTheFirst) {
  ServingFixture with("deepseek-v3", "dgx-h200:64", "vllm");
  for (const std::int64_t nodes : {1, 2}) {
    const ServingPlan plan = plan_of(with, nodes);
    const LaunchNames names = {"org/Some_Model", "", 8192};
    with.engine.name = "vllm";
    const std::string dynamo = dynamo_manifest(plan, names, 8);
    const std::string llm_d = llm_d_manifest(plan, names, 8);
    with.engine.name = "ours";
    EXPECT_EQ(dynamo_manifest(plan, names, 8), dynamo);
    EXPECT_EQ(llm_d_manifest(plan, names, 8), llm_d);
  }
}

Json random_json(std::mt19937& random, int depth) {
  const char* const texts[] = {"",       "plain", "--option", "-1",    "1e3",        "true",
                               "a: b",   "# no",  "it's",     "\"q\"", "two\nlines", "tab\t",
                               "{x: 1}", "é",     "a/b.c",    "|",     " space "};
  const auto kind = random() % (depth > 0 ? 5 : 3);
  if (kind == 0) return static_cast<int>(random() % 100);
  if (kind == 1) return random() % 2 == 0;
  if (kind == 2) return texts[random() % std::size(texts)];
  Json json = kind == 3 ? Json::array() : Json::object();
  for (auto count = random() % 4; count > 0; --count) {
    if (kind == 3) {
      json.push_back(random_json(random, depth - 1));
    } else {
      json[texts[1 + random() % 10] + std::to_string(count)] = random_json(random, depth - 1);
    }
  }
  return json;
}

void expect_same(const Value& read, const Json& written) {
  if (written.is_object()) {
    ASSERT_TRUE(read.is_object());
    ASSERT_EQ(read.size(), written.size());
    for (const auto& [key, value] : written.items()) expect_same(read[key], value);
  } else if (written.is_array()) {
    ASSERT_TRUE(read.is_array());
    ASSERT_EQ(read.size(), written.size());
    for (std::size_t i = 0; i < written.size(); ++i) expect_same(read[i], written[i]);
  } else if (written.is_string()) {
    EXPECT_EQ(read.as_string(), written.get<std::string>());
  } else if (written.is_boolean()) {
    EXPECT_EQ(read.as_bool(), written.get<bool>());
  } else {
    EXPECT_EQ(read.as_int(), written.get<int>());
  }
}

TEST(YamlText, ReadsBack) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const Json json = {{"root", random_json(random, 4)}};
    const std::string text = yaml_text(json);
    SCOPED_TRACE(text);
    const Document document = Document::parse(text, Document::Syntax::yaml, "text");
    expect_same(document.root(), json);
  }
}

}  // namespace
}  // namespace braid
