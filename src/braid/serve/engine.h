#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "braid/base/document.h"

namespace braid {

/// Times that no measured kernel has, fitted to measured runs (docs/serving.md).
struct EngineFigures {
  double step_s = 0;   ///< Host and sampling of a step that only decodes, not hidden.
  double layer_s = 0;  ///< Small kernels and gaps of a layer in a captured step.
  // How much longer kernels take in steps that only decode than measured one by one.
  double gemm_slow = 1;  ///< And pointwise kernels.
  double attention_slow = 1;
  double expert_slow = 1;
  double collective_slow = 1;
  double prefill_step_s = 0;  ///< Host of a step with new prompts.
  double prefill_slow = 1;    ///< As gemm_slow, of all kernels of steps with new prompts.
  double request_s = 0;       ///< From the request to the queue, and from the first token back.
  double handover_s = 0;      ///< From one worker to another, beside the bytes of the cache.
  double lockstep = 0.1;  ///< Of a benchmark's requests, the share whose prompts come all at once.
  /// Steps of decoding between a request's coming and its prompt's step, half of the one under way
  /// at least: engines plan steps ahead, and some look for requests every n-th step only.
  double wait_steps = 0.5;
  double stall = 1;  ///< Of the time of prompts' steps, by how much others' tokens wait.
};

/// A figure of EngineFigures by name.
struct EngineFigureField {
  const char* name;
  double EngineFigures::*field;
  double least, most, start;  ///< Bounds and where fits begin.
};
const std::vector<EngineFigureField>& engine_figure_fields();

/// One entry of an engine's file, and where it is known from.
struct EngineEntry {
  std::string key, text, source;
};

/// Of which runs a correction is; empty: of any.
struct CorrectedRuns {
  bool disaggregated = false;
  std::string chip, model, format;  ///< Of the catalogue; as ServingFormat has it.
  friend bool operator==(const CorrectedRuns&, const CorrectedRuns&) = default;
  friend bool operator<(const CorrectedRuns& a, const CorrectedRuns& b) {
    return std::tie(a.disaggregated, a.chip, a.model, a.format) <
           std::tie(b.disaggregated, b.chip, b.model, b.format);
  }
};

/// Factors of predicted times.
struct TimeFactors {
  double tpot = 1, ttft = 1;
};

/// By what measured runs differ from predicted ones that have something in common.
struct EngineCorrection {
  CorrectedRuns of;
  TimeFactors factors;
};

/// The product of all corrections that hold for runs of this kind.
TimeFactors factors_of(const std::vector<EngineCorrection>& corrections, const CorrectedRuns& kind);

/// Which libraries' kernels an engine runs (kernels/chip_kernels.h): of GEMMs and attention those
/// of the first library that a chip has figures of, of experts and all-reduce the fastest of all.
struct EngineKernels {
  std::vector<std::string> gemm, attention, latent, experts, all_reduce;
};

/// A serving engine as its YAML file has it (docs/file-formats.md, "Engines").
struct Engine {
  std::string name, title;
  bool joins_prompts = true;        ///< Chunks of prompts and decoding sequences share steps.
  double chunk_tokens = 8192;       ///< New tokens of a step at most, by default.
  double memory_share = 0.9;        ///< Of the device's memory that the engine takes.
  bool share_of_free = false;       ///< That share is of what weights leave, for the cache alone.
  double most_sequences = 256;      ///< That run at once, by default.
  bool reserves_output = false;     ///< A request starts when all of its tokens have room.
  double block_tokens = 16;         ///< Of a page of the cache.
  double graph_sequences = 512;     ///< Steps of as many sequences at most are captured.
  double graph_bytes = 0;           ///< Memory of captured graphs.
  bool fixed_slots = false;         ///< Workers that only decode are launched for 2^n sequences.
  bool static_scales = false;       ///< fp8 with one scale a tensor quantises in the kernel before.
  bool groups_divide_heads = true;  ///< Attention groups may have tensor parallelism of their own.
  /// Of which attention the caches can be sharded by tokens: "attention", "latent".
  std::vector<std::string> splits_caches;
  EngineKernels kernels;
  EngineFigures figures;
  std::vector<EngineCorrection> corrections;
  std::vector<EngineEntry> entries;  ///< In the file's order.
};

/// Throws Error with file, line and key: an entry without a source, of the wrong kind, missing.
Engine read_engine(const Value& root);

/// Of the catalogue (vllm, sglang, trtllm) or of a YAML file. Throws Error naming near ones.
Engine load_engine(const std::string& name_or_path);

/// By name.
const std::vector<Engine>& engine_catalogue();

/// The text of the catalogue's file of that name, which must be there.
std::string engine_file_text(std::string_view name);

}  // namespace braid
