#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/serve/layout.h"

namespace braid {

/// What one measured row says of the workers of one kind; 0: nothing.
struct RowWorkers {
  double batch = 0;  ///< Of one worker.
  std::int64_t workers = 0;
  ServingLayout layout;        ///< As written, but for what is left out.
  ServingLayout once_counted;  ///< Of an aggregated run, without degrees that are written twice.
};

/// One measured run of a serving engine (docs/file-formats.md, "Measured serving runs"). Text is
/// empty and numbers are 0 where the row says nothing.
struct ServedRow {
  int line = 0;
  std::string id, note, engine, version, model, system, precision;
  bool disaggregated = false;
  double input_tokens = 0, output_tokens = 0;
  double concurrency = 0;      ///< Requests under way at once.
  RowWorkers worker;           ///< Of an aggregated run.
  RowWorkers prefill, decode;  ///< Of a disaggregated one.
  double ttft_s = 0, tpot_s = 0;
};

/// Whether the head of this CSV is that of measured serving runs.
bool is_served_rows(std::string_view text);

/// Throws Error naming file, line and column.
std::vector<ServedRow> parse_served_rows(std::string_view text, const std::string& file);

}  // namespace braid
