#include "braid/validate/amp_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/error.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"

namespace braid {
namespace {

struct Experiment {
  std::string_view name, hardware;
  bool transgan = false;
};
constexpr std::array kExperiments = {
    Experiment{"homogeneous", "g4dn.12xlarge:4nodes"},
    Experiment{"het_cluster", "p3.8xlarge:3nodes+g4dn.12xlarge:1nodes"},
    Experiment{"het_model", "p3.8xlarge:4nodes", true}};

/// The item of the authors' scripts at which each layer begins. GPT-2: embedding, a step without
/// work, 24 layers, two more without, the output embedding.
std::vector<std::int64_t> gpt2_items() {
  constexpr std::int64_t kLayers = 24;
  std::vector<std::int64_t> items = {0};
  for (std::int64_t l = 0; l < kLayers; ++l) items.push_back(2 + l);
  items.push_back(28);
  return items;
}

/// TransGAN: the first image, 12 layers, five doublings and steps without work, 12 layers, the
/// last image.
std::vector<std::int64_t> transgan_items() {
  constexpr std::int64_t kLayers = 12;
  std::vector<std::int64_t> items = {0};
  for (std::int64_t l = 0; l < kLayers; ++l) items.push_back(3 + l);
  for (const std::int64_t doubling : {15, 20, 25, 30, 35}) items.push_back(doubling);
  for (std::int64_t l = 0; l < kLayers; ++l) items.push_back(41 + l);
  items.push_back(53);
  return items;
}

class Reader {
 public:
  explicit Reader(const CsvTable& table) : table_(table) {}

  MeasuredRuns runs() const {
    MeasuredRuns result;
    result.runs.reserve(table_.rows.size());
    for (const CsvRow& row : table_.rows) result.runs.push_back(run_of(row));
    return result;
  }

 private:
  const std::string& text(const CsvRow& row, std::string_view name) const {
    const auto column = table_.column(name);
    if (!column) throw Error(Where{table_.file, 1, std::string(name)}, "there is no such column");
    return row.fields[*column];
  }

  std::int64_t count(const CsvRow& row, std::string_view name, std::string_view digits) const {
    constexpr double kMost = 1 << 20;
    const auto value = finite_double(digits);
    if (!value || *value < 0 || *value != std::floor(*value) || *value > kMost) {
      throw Error(Where{table_.file, row.line, std::string(name)},
                  in_quotes(digits) + " is not a count");
    }
    return static_cast<std::int64_t>(*value);
  }
  std::int64_t count(const CsvRow& row, std::string_view name) const {
    return count(row, name, text(row, name));
  }

  /// Layers of each stage between cuts such as "0 9 15 21 30".
  std::vector<std::int64_t> stages(const CsvRow& row,
                                   const std::vector<std::int64_t>& items) const {
    const std::string_view cuts = text(row, "partition");
    std::vector<std::int64_t> layers;
    std::optional<std::int64_t> begin;
    for (std::size_t at = 0; at < cuts.size();) {
      const std::size_t end = std::min(cuts.find(' ', at), cuts.size());
      const std::int64_t cut = count(row, "partition", cuts.substr(at, end - at));
      if (begin) {
        layers.push_back(std::count_if(items.begin(), items.end(), [&](std::int64_t item) {
          return item >= *begin && item < cut;
        }));
      }
      begin = cut;
      at = end + 1;
    }
    return layers;
  }

  MeasuredRun run_of(const CsvRow& row) const {
    const std::string& name = text(row, "experiment");
    const auto* const experiment =
        std::find_if(kExperiments.begin(), kExperiments.end(),
                     [&](const Experiment& known) { return known.name == name; });
    if (experiment == kExperiments.end()) {
      std::vector<std::string_view> names;
      names.reserve(kExperiments.size());
      for (const Experiment& known : kExperiments) names.push_back(known.name);
      throw Error(Where{table_.file, row.line, "experiment"},
                  in_quotes(name) + " is none of AMP's experiments", did_you_mean(name, names));
    }
    MeasuredRun run;
    run.file = table_.file;
    run.line = row.line;
    run.dataset = "AMP " + name;
    run.source = "arXiv 2210.07297";
    run.framework = "DeepSpeed pipeline engine";
    run.hardware = experiment->hardware;
    run.devices = 16;
    run.devices_per_node = 4;
    run.precision = "fp16";
    run.schedule = "1F1B";
    run.sharding = run.recompute = "none";
    if (experiment->transgan) {
      run.model = "transgan";
      run.stage_layers = stages(row, transgan_items());
    } else {
      run.model = "GPT-2";
      run.layers = 24;
      run.hidden = 1024;
      run.heads = 16;
      run.vocab = 52256;
      run.seq_len = 1024;
      run.stage_layers = stages(row, gpt2_items());
    }
    run.global_batch = count(row, "gbs");
    run.micro_batch = count(row, "mbs");
    run.tp = count(row, "tp");
    run.dp = count(row, "dp");
    run.pp = count(row, "pp");
    const std::string& status = text(row, "status");
    if (status != "ok") {
      run.failure = status;
      return run;
    }
    const std::string& time = text(row, "measured_s");
    const auto seconds = finite_double(time);
    if (!seconds || !(*seconds > 0)) {
      throw Error(Where{table_.file, row.line, "measured_s"}, in_quotes(time) + " is not a time");
    }
    run.iteration_time_s = *seconds;
    return run;
  }

  const CsvTable& table_;
};

}  // namespace

bool is_amp_table(const CsvTable& table) {
  constexpr std::array<std::string_view, 4> kColumns = {"experiment", "partition", "measured_s",
                                                        "status"};
  return std::all_of(kColumns.begin(), kColumns.end(),
                     [&](std::string_view column) { return table.column(column).has_value(); });
}

MeasuredRuns amp_runs(const CsvTable& table) { return Reader(table).runs(); }

}  // namespace braid
