#include "braid/serve/served_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "braid/base/csv.h"
#include "braid/base/error.h"

namespace braid {
namespace {

/// One row's fields by column.
class RowFields {
 public:
  RowFields(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  std::string text(std::string_view column) const {
    const auto index = table_.column(column);
    return index ? row_.fields[*index] : std::string();
  }
  double number(std::string_view column) const {
    const std::string field = text(column);
    if (field.empty()) return 0;
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc{} || end != field.data() + field.size() || !(value >= 0) ||
        value > 1e12) {
      throw Error(Where{table_.file, row_.line, std::string(column)},
                  "'" + field + "' is no number from 0 on");
    }
    return value;
  }
  double positive(std::string_view column) const {
    const double value = number(column);
    if (value == 0) {
      throw Error(Where{table_.file, row_.line, std::string(column)}, "must be above zero");
    }
    return value;
  }
  std::int64_t count(std::string_view column) const {
    const double value = number(column);
    constexpr double kMost = 65536;  // Products of four fit 64 bits.
    if (value != std::floor(value) || value > kMost) {
      throw Error(Where{table_.file, row_.line, std::string(column)},
                  "must be a whole number up to 65536");
    }
    return static_cast<std::int64_t>(value);
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

/// Of tables that count a degree twice: n devices that deal experts out n ways are n ways of tensor
/// parallelism, of experts too, on n * n devices; with attention groups, n groups of n ranks.
ServingLayout once_counted(const ServingLayout& written) {
  const std::int64_t devices = written.stage_devices();
  const bool both_ways = written.moe_tp == written.moe_ep && written.moe_tp > 1;
  const bool groups_of_ranks = written.dp == written.tp && written.moe_tp == 1 && written.dp > 1;
  if (written.moe_tp * written.moe_ep != devices || (!both_ways && !groups_of_ranks)) {
    return written;
  }
  ServingLayout once = written;
  once.moe_ep = both_ways ? written.moe_ep : written.dp;
  once.moe_tp = 1;
  once.tp = written.dp > 1 ? 1 : once.moe_ep;
  once.dp = written.dp > 1 ? once.moe_ep : 1;
  return once;
}

/// Tables write down the prompts' workers' degree of expert parallelism for those of decoding too,
/// and what is left of these as tensor parallelism: experts are dealt out among all of them.
void deal_out_experts(const ServingLayout& prefill, ServingLayout& decode) {
  const bool as_prompts = decode.moe_ep == prefill.moe_ep && decode.moe_ep > 1;
  if (!as_prompts || decode.moe_tp == 1) return;
  decode.moe_ep *= decode.moe_tp;
  decode.moe_tp = 1;
}

RowWorkers workers_of(const RowFields& fields, const std::string& prefix) {
  RowWorkers of;
  of.batch = fields.number(prefix + "batch_size");
  if (!prefix.empty()) of.workers = fields.count(prefix + "num_workers");
  ServingLayout& layout = of.layout;
  layout.tp = std::max<std::int64_t>(1, fields.count(prefix + "tp_size"));
  layout.pp = std::max<std::int64_t>(1, fields.count(prefix + "pp_size"));
  layout.dp = std::max<std::int64_t>(1, fields.count(prefix + "attention_dp_size"));
  layout.moe_tp = std::max<std::int64_t>(1, fields.count(prefix + "moe_tp_size"));
  layout.moe_ep = std::max<std::int64_t>(1, fields.count(prefix + "moe_ep_size"));
  const std::int64_t of_experts = layout.moe_tp * layout.moe_ep;
  if (of_experts == 1) {
    layout.moe_tp = layout.stage_devices();
  } else if (layout.dp == 1 && of_experts % layout.tp == 0) {
    layout.dp = of_experts / layout.tp;
  }
  return of;
}

/// The number after `key` and "=" in a text of "a=1; b=2".
double noted(const std::string& text, std::string_view key) {
  const std::size_t at = text.find(std::string(key) + "=");
  if (at == std::string::npos) return 0;
  const char* begin = text.data() + at + key.size() + 1;
  double value = 0;
  std::from_chars(begin, text.data() + text.size(), value);
  return value > 0 && value < 1e9 ? value : 0;
}

}  // namespace

bool is_served_rows(std::string_view text) {
  const std::string_view head = text.substr(0, text.find('\n'));
  return head.find("silicon_tpot_ms") != std::string_view::npos &&
         head.find("silicon_ttft_ms") != std::string_view::npos;
}

std::vector<ServedRow> parse_served_rows(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  for (const char* needed :
       {"backend", "model_path", "system", "isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms"}) {
    if (!table.column(needed)) {
      throw Error(Where{file, 1, ""}, "there is no column '" + std::string(needed) + "'");
    }
  }
  std::vector<ServedRow> rows;
  for (const CsvRow& row : table.rows) {
    const RowFields fields(table, row);
    ServedRow run;
    run.line = row.line;
    run.id = fields.text("id");
    run.note = fields.text("silicon_data_source");
    run.engine = fields.text("backend");
    run.version = fields.text("backend_version");
    run.model = fields.text("model_path");
    run.system = fields.text("system");
    run.precision = fields.text("precision");
    run.disaggregated = fields.text("mode") == "disagg";
    run.input_tokens = fields.positive("isl");
    run.output_tokens = fields.positive("osl");
    run.worker = workers_of(fields, "");
    run.prefill = workers_of(fields, "prefill_");
    run.decode = workers_of(fields, "decode_");
    run.worker.once_counted = once_counted(run.worker.layout);
    deal_out_experts(run.prefill.layout, run.decode.layout);
    run.concurrency = noted(run.note, "silicon_concurrency");
    constexpr double kMs = 1e-3;
    run.ttft_s = kMs * fields.positive("silicon_ttft_ms");
    run.tpot_s = kMs * fields.positive("silicon_tpot_ms");
    rows.push_back(std::move(run));
  }
  return rows;
}

}  // namespace braid
