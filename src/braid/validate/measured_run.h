#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

/// One measured training run as a row of a CSV file tells it (docs/file-formats.md, "Measured
/// runs"). Text is empty and numbers are 0 where the row says nothing.
struct MeasuredRun {
  std::string file;
  int line = 0;
  std::string dataset, source, framework, hardware, interconnect, model, precision;
  std::string schedule, sharding, recompute, notes;

  std::int64_t devices = 0, devices_per_node = 0;
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, vocab = 0;
  std::int64_t seq_len = 0, global_batch = 0, micro_batch = 0;
  std::int64_t tp = 0, pp = 0, dp = 0, cp = 0, ep = 0, vp = 0;
  /// Layers of each stage in turn, of each of its chunks where there are several; embedding and
  /// head count. Empty: dealt out as trainers do.
  std::vector<std::int64_t> stage_layers;
  std::string failure;  ///< Of a run that did not finish, what is known of it.
  /// Fields that hold a list ("1/1/2", a figure for each stage) in place of one number.
  std::vector<std::string> lists;

  double iteration_time_s = 0;
  double tokens_per_s_per_device = 0;
  double model_tflops_per_device = 0;
  double mfu = 0;                ///< Share, not percent.
  double hfu = 0;                ///< Share; recomputation counts.
  double peak_memory_bytes = 0;  ///< Of the fullest device.
};

/// Measured runs and what was not understood of their file.
struct MeasuredRuns {
  std::vector<MeasuredRun> runs;
  std::vector<std::string> ignored_columns;  ///< Unknown names, in the file's order.
};

/// Reads the text of a CSV file of measured runs. Columns may come in any order; `hardware` and one
/// that says how fast the run was are needed. A table of AMP's strategies (amp_runs.h) is read as
/// well. Empty fields and "n/a" say nothing. Throws Error naming the file, line and column: a
/// number that is none, is negative or has no place in 2^53, and all that parse_csv throws.
MeasuredRuns parse_measured_runs(std::string_view text, const std::string& file);

/// Text of a column that runs can be grouped by ("dataset", "hardware", "tp" …); "" when the run
/// says nothing. Throws Error for a column that is none.
std::string group_value(const MeasuredRun& run, const std::string& column);

}  // namespace braid
