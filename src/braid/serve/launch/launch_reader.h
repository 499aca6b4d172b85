#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/serve/launch/launch_lines.h"

namespace braid {

/// What an engine's command line says of a worker. Zero or empty: it does not say.
struct LaunchedWorker {
  std::string engine;  ///< Of the catalogue.
  std::string model;   ///< As the engine finds it.
  WorkerRole role = WorkerRole::all;
  bool tells_role = false;
  std::int64_t workers = 0;  ///< Alike, of which each has the line.
  /// Ranks of attention's tensor parallelism in a group, of data parallelism, stages, parts of
  /// caches. `data` of them are attention groups where the model has experts, else whole copies.
  std::int64_t tp = 1, pp = 1, dp = 1, cp = 1;
  bool data_is_copies = false;          ///< Whatever the model.
  std::int64_t ep = 1;                  ///< Ranks that experts are dealt to.
  bool all_ranks_have_experts = false;  ///< ep is all ranks of a stage.
  double sequences = 0;                 ///< Of one attention group or copy.
  double chunk_tokens = 0;              ///< The same.
  double context = 0;                   ///< Tokens of a sequence at most.
  double memory_share = 0;              ///< As Engine::memory_share of this engine.
  double block_tokens = 0;
  std::string precision;  ///< As ServingFormat::name.
  std::string cache;      ///< As ServingFormat::cache.
  std::string draft;      ///< Draft model, as the engine finds it.
  std::int64_t draft_tokens = 0;
};

/// What command lines say of a service.
struct LaunchedService {
  std::vector<LaunchedWorker> workers;  ///< One aggregated, or a prefill and a decode one.
  std::vector<std::string> unknown;     ///< Arguments nothing is known of, as they are written.
  std::vector<std::string> notes;       ///< What is said and not modelled, one sentence each.
};

/// Whether a text starts vLLM, SGLang or TensorRT-LLM.
bool is_launch_text(std::string_view text);

/// Reads `vllm serve …`, `python -m sglang.launch_server …` and `trtllm-serve …`: a command line, a
/// script, or what launch_lines() writes. A comment "# 6 prefill workers in fp8" tells of the
/// next command. A file of TensorRT-LLM's options is what the script writes to it (cat > FILE
/// <<EOF), or what `text_of_file` gives. Throws Error for numbers that cannot be, for a script that
/// starts none of these or more than one service, and where workers of two kinds do not say which
/// is which. Cost: linear.
///
///     read_launch_lines("vllm serve m -tp 8", "run.sh").workers.front().tp;  // 8
LaunchedService read_launch_lines(
    std::string_view text, const std::string& file,
    const std::function<std::string(const std::string& name)>& text_of_file);

/// The same, of files beside `file` or in the current folder.
LaunchedService read_launch_lines(std::string_view text, const std::string& file);

}  // namespace braid
