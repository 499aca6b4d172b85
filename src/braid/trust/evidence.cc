#include "braid/trust/evidence.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "braid/base/csv.h"
#include "braid/base/embedded_file.h"
#include "braid/base/error.h"
#include "braid/trust/evidence_row.h"

namespace braid {

std::span<const EmbeddedFile> embedded_evidence();

namespace {

struct Word {
  const char* column;
  std::string& (*of)(RunError&);
};
constexpr std::array kWords = {
    Word{"source", [](RunError& run) -> std::string& { return run.source; }},
    Word{"model", [](RunError& run) -> std::string& { return run.model; }},
    Word{"chip", [](RunError& run) -> std::string& { return run.traits.chip; }},
    Word{"trainer", [](RunError& run) -> std::string& { return run.traits.trainer; }},
    Word{"format", [](RunError& run) -> std::string& { return run.traits.format; }}};

struct Figure {
  const char* column;
  double JobTraits::*of;
};
/// All of them above 0.
constexpr std::array kTraits = {Figure{"devices", &JobTraits::devices},
                                Figure{"parameters", &JobTraits::parameters},
                                Figure{"tokens", &JobTraits::tokens},
                                Figure{"micro_batch_tokens", &JobTraits::micro_batch_tokens},
                                Figure{"tp", &JobTraits::tp},
                                Figure{"pp", &JobTraits::pp},
                                Figure{"dp", &JobTraits::dp},
                                Figure{"cp", &JobTraits::cp},
                                Figure{"ep", &JobTraits::ep},
                                Figure{"mfu", &JobTraits::mfu}};

}  // namespace

Evidence parse_evidence(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  Evidence runs;
  runs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) {
    const EvidenceRow of{table, row};
    RunError run;
    for (const Word& word : kWords) word.of(run) = of.text(word.column);
    run.traits.experts = of.number("experts") > 0;
    for (const Figure& figure : kTraits) {
      const double value = of.number(figure.column);
      if (value <= 0) {
        throw Error(Where{file, row.line, figure.column}, "the figure must be above 0",
                    EvidenceRow::kRemedy);
      }
      run.traits.*figure.of = value;
    }
    run.error = of.number("error");
    run.left_out = of.number("left_out");
    run.memory = !of.text("memory_error").empty();
    if (run.memory) run.memory_error = of.number("memory_error");
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string evidence_text(const Evidence& runs) {
  std::string text;
  for (const Word& word : kWords) text += fmt::format("{},", word.column);
  text += "experts,";
  for (const Figure& figure : kTraits) text += fmt::format("{},", figure.column);
  text += "error,left_out,memory_error\n";
  for (RunError run : runs) {
    for (const Word& word : kWords) text += csv_field(word.of(run)) + ",";
    text += run.traits.experts ? "1," : "0,";
    for (const Figure& figure : kTraits) text += fmt::format("{:.4g},", run.traits.*figure.of);
    text += fmt::format("{:.4f},{:.4f},{}\n", run.error, run.left_out,
                        run.memory ? fmt::format("{:.4f}", run.memory_error) : "");
  }
  return text;
}

const Evidence& evidence() {
  static const Evidence runs =
      parse_evidence(embedded_evidence().front().text, "data/evidence/training.csv");
  return runs;
}

}  // namespace braid
