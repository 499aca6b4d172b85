#include "braid/serve/engine.h"

#include <span>

#include <fmt/format.h>

#include "braid/base/embedded_file.h"
#include "braid/base/error.h"
#include "braid/base/named_entry.h"

namespace braid {

std::span<const EmbeddedFile> embedded_engines();

namespace {

/// The value of an entry `{is: …, source: …}`, noted.
Value entry(const Value& section, std::string_view key, Engine& engine) {
  const Value at = section[key];
  at.expect_only({"is", "source"});
  const std::string source = std::string(at["source"].as_string());
  if (source.empty()) at["source"].fail("an entry without a source");
  const Value is = at["is"];
  std::string text;
  if (is.is_array()) {
    for (const Value& element : is.elements()) {
      text += (text.empty() ? "" : ", ") + std::string(element.as_string());
    }
  } else if (is.is_string()) {
    text = std::string(is.as_string());
  } else if (is.is_number()) {
    text = fmt::format("{:g}", is.as_double());
  } else {
    text = is.as_bool() ? "true" : "false";
  }
  engine.entries.push_back({std::string(key), text, source});
  return is;
}

std::vector<std::string> words(const Value& list) {
  std::vector<std::string> result;
  for (const Value& element : list.elements()) result.emplace_back(element.as_string());
  return result;
}

void read_kernels_used(const Value& section, Engine& engine) {
  section.expect_only({"gemm", "attention", "latent", "experts", "all_reduce"});
  EngineKernels& used = engine.kernels;
  used.gemm = words(entry(section, "gemm", engine));
  used.attention = words(entry(section, "attention", engine));
  used.latent = words(entry(section, "latent", engine));
  used.experts = words(entry(section, "experts", engine));
  used.all_reduce = words(entry(section, "all_reduce", engine));
}

void read_figures(const Value& section, Engine& engine) {
  std::vector<std::string_view> keys;
  for (const EngineFigureField& field : engine_figure_fields()) {
    const Value is = entry(section, field.name, engine);
    const bool time = std::string_view(field.name).ends_with("_s");
    const double value = time ? is.as_quantity(Unit::seconds) : is.as_double();
    if (value != 0 && (value < field.least * 0.99 || value > field.most * 1.01)) {
      is.fail(fmt::format("must be from {:g} to {:g}", field.least, field.most));
    }
    engine.figures.*field.field = value;
    keys.emplace_back(field.name);
  }
  section.expect_only(keys);
}

std::string text_or_any(const Value& section, std::string_view key) {
  return section[key].string_or("");
}

void read_corrections(const Value& section, Engine& engine) {
  section.expect_only({"source", "factors"});
  const std::string source = std::string(section["source"].as_string());
  if (source.empty()) section["source"].fail("corrections without a source");
  constexpr double kLeast = 0.01, kMost = 100;
  for (const Value& at : section["factors"].elements()) {
    at.expect_only({"mode", "chip", "model", "format", "tpot", "ttft"});
    EngineCorrection one;
    const std::string_view mode = at["mode"].as_string();
    if (mode != "aggregated" && mode != "disaggregated") {
      at["mode"].fail("must be aggregated or disaggregated");
    }
    one.of = {mode == "disaggregated", text_or_any(at, "chip"), text_or_any(at, "model"),
              text_or_any(at, "format")};
    one.factors = {at["tpot"].as_double_in(kLeast, kMost), at["ttft"].as_double_in(kLeast, kMost)};
    engine.corrections.push_back(std::move(one));
  }
}

}  // namespace

TimeFactors factors_of(const std::vector<EngineCorrection>& corrections,
                       const CorrectedRuns& kind) {
  const auto holds = [](const std::string& of, const std::string& is) {
    return of.empty() || of == is;
  };
  TimeFactors product;
  for (const EngineCorrection& one : corrections) {
    if (one.of.disaggregated != kind.disaggregated || !holds(one.of.chip, kind.chip) ||
        !holds(one.of.model, kind.model) || !holds(one.of.format, kind.format)) {
      continue;
    }
    product.tpot *= one.factors.tpot;
    product.ttft *= one.factors.ttft;
  }
  return product;
}

const std::vector<EngineFigureField>& engine_figure_fields() {
  using F = EngineFigures;
  static const std::vector<EngineFigureField> fields = {
      {"step_s", &F::step_s, 1e-6, 2e-2, 1e-3},
      {"layer_s", &F::layer_s, 1e-7, 1e-4, 8e-6},
      {"gemm_slow", &F::gemm_slow, 0.3, 3, 1},
      {"attention_slow", &F::attention_slow, 0.3, 3, 1},
      {"expert_slow", &F::expert_slow, 0.3, 3, 1},
      {"collective_slow", &F::collective_slow, 0.1, 3, 1},
      {"prefill_step_s", &F::prefill_step_s, 1e-5, 0.2, 5e-3},
      {"prefill_slow", &F::prefill_slow, 0.5, 4, 1.2},
      {"request_s", &F::request_s, 1e-4, 1, 2e-2},
      {"handover_s", &F::handover_s, 1e-3, 10, 0.2},
      {"lockstep", &F::lockstep, 0.01, 1, 0.2},
      {"wait_steps", &F::wait_steps, 0.1, 64, 4},
      {"stall", &F::stall, 0.1, 4, 1},
  };
  return fields;
}

Engine read_engine(const Value& root) {
  root.expect_only({"name", "title", "does", "kernels", "figures", "corrections"});
  Engine engine;
  engine.name = root["name"].as_string();
  engine.title = root["title"].as_string();
  const Value does = root["does"];
  does.expect_only({"joins_prompts", "chunk_tokens", "memory_share", "share_of_free",
                    "most_sequences", "reserves_output", "block_tokens", "graph_sequences",
                    "graph_memory", "static_scales", "splits_caches", "groups_divide_heads",
                    "fixed_slots"});
  constexpr double kMost = 1e9;
  engine.joins_prompts = entry(does, "joins_prompts", engine).as_bool();
  engine.chunk_tokens = entry(does, "chunk_tokens", engine).as_double_in(16, kMost);
  engine.memory_share = entry(does, "memory_share", engine).as_double_in(0.05, 1);
  engine.share_of_free = entry(does, "share_of_free", engine).as_bool();
  engine.most_sequences = entry(does, "most_sequences", engine).as_double_in(1, kMost);
  engine.reserves_output = entry(does, "reserves_output", engine).as_bool();
  engine.block_tokens = entry(does, "block_tokens", engine).as_double_in(1, 65536);
  engine.graph_sequences = entry(does, "graph_sequences", engine).as_double_in(0, kMost);
  engine.graph_bytes = entry(does, "graph_memory", engine).as_quantity(Unit::bytes);
  engine.static_scales = entry(does, "static_scales", engine).as_bool();
  if (does["fixed_slots"].exists()) {
    engine.fixed_slots = entry(does, "fixed_slots", engine).as_bool();
  }
  if (does["groups_divide_heads"].exists()) {
    engine.groups_divide_heads = entry(does, "groups_divide_heads", engine).as_bool();
  }
  engine.splits_caches = words(entry(does, "splits_caches", engine));
  read_kernels_used(root["kernels"], engine);
  read_figures(root["figures"], engine);
  if (root["corrections"].exists()) read_corrections(root["corrections"], engine);
  return engine;
}

Engine load_engine(const std::string& name_or_path) {
  const Document document =
      open_entry(name_or_path, {"", 0, "--engine"}, embedded_engines(), "engine");
  return read_engine(document.root());
}

std::string engine_file_text(std::string_view name) {
  for (const EmbeddedFile& file : embedded_engines()) {
    if (file.name == name) return std::string(file.text);
  }
  return {};
}

const std::vector<Engine>& engine_catalogue() {
  static const std::vector<Engine> engines = [] {
    std::vector<Engine> result;
    for (const std::string& name : names_of(embedded_engines())) {
      result.push_back(load_engine(name));
    }
    return result;
  }();
  return engines;
}

}  // namespace braid
