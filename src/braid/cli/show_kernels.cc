#include "braid/cli/show_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/cli/verbs.h"
#include "braid/kernels/chip_kernels.h"
#include "braid/report/table.h"

namespace braid {
namespace {

const Where kKernelOption{"", 0, "--kernel"};

/// The sizes that an operation is asked with; the last `optional` may be left out.
struct KernelSizes {
  std::string_view names;
  std::size_t least = 0, most = 0;
};

template <class Form>
struct KernelQuestion;

template <>
struct KernelQuestion<GemmForm> {
  static KernelSizes sizes(std::string_view /*operation*/) { return {"M,N,K", 3, 3}; }
  static GemmShape shape(std::string_view /*operation*/, const std::vector<double>& s) {
    return {s[0], s[1], s[2]};
  }
};

AttentionShape asked_attention(const std::vector<double>& s) {
  if (s[0] < s[1]) throw Error(kKernelOption, "more heads of keys and values than of queries");
  AttentionShape shape = attention_shape(s[0], s[1], s[2], s[3], s[4]);
  if (s.size() > 5) shape.window = s[5];
  return shape;
}
constexpr std::string_view kAttentionSizes = "HEADS,KV_HEADS,HEAD_DIM,BATCH,TOKENS[,WINDOW]";
constexpr std::string_view kMlaSizes = "HEADS,BATCH,TOKENS";

template <>
struct KernelQuestion<PrefillForm> {
  static KernelSizes sizes(std::string_view operation) {
    if (operation == "mla_prefill") return {kMlaSizes, 3, 3};
    return {kAttentionSizes, 5, 6};
  }
  static AttentionShape shape(std::string_view operation, const std::vector<double>& s) {
    return operation == "mla_prefill" ? mla_prefill_shape(s[0], s[1], s[2]) : asked_attention(s);
  }
};

template <>
struct KernelQuestion<DecodeForm> {
  static KernelSizes sizes(std::string_view operation) {
    if (operation == "mla_decode") return {kMlaSizes, 3, 3};
    return {kAttentionSizes, 5, 6};
  }
  static AttentionShape shape(std::string_view operation, const std::vector<double>& s) {
    return operation == "mla_decode" ? mla_decode_shape(s[0], s[1], s[2]) : asked_attention(s);
  }
};

template <>
struct KernelQuestion<ExpertForm> {
  static KernelSizes sizes(std::string_view /*operation*/) {
    return {"TOKENS,HIDDEN,INTERMEDIATE,EXPERTS_PER_TOKEN,EXPERTS[,TP[,EP]]", 5, 7};
  }
  static ExpertForm::Shape shape(std::string_view /*operation*/, const std::vector<double>& s) {
    ExpertShape shape{s[0], s[1], s[2], s[3], s[4]};
    if (s.size() > 5) shape.tp = s[5];
    if (s.size() > 6) shape.ep = s[6];
    if (shape.experts < shape.ep || shape.experts > 1e5 ||
        shape.experts_per_token > shape.experts) {
      throw Error(kKernelOption, "no such number of experts");
    }
    return ExpertForm::shape(shape);
  }
};

template <>
struct KernelQuestion<CollectiveForm> {
  static KernelSizes sizes(std::string_view /*operation*/) { return {"DEVICES,BYTES", 2, 2}; }
  static CollectiveShape shape(std::string_view /*operation*/, const std::vector<double>& s) {
    if (s[0] < 2) throw Error(kKernelOption, "a collective needs two devices");
    return {s[0], s[1]};
  }
};

std::vector<double> parse_sizes(std::string_view text, std::string_view operation,
                                const KernelSizes& sizes) {
  constexpr double kMostSize = 1e15;
  std::vector<double> result;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::optional<double> size = finite_double(text.substr(0, comma));
    if (!size || !(*size >= 1) || *size > kMostSize) break;
    result.push_back(*size);
    if (comma == std::string_view::npos) {
      if (result.size() < sizes.least || result.size() > sizes.most) break;
      return result;
    }
    text.remove_prefix(comma + 1);
  }
  throw Error(kKernelOption, "these are not the sizes of such a kernel",
              fmt::format("write {}={}, each at least 1", operation, sizes.names));
}

std::string error_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

template <class Form>
void show_figures(const KernelEntries<Form>& entries) {
  for (const KernelEntry<Form>& entry : entries) {
    fmt::print("\n{} {}: {} shapes fitted, off by {}; {} held out, off by {}\n", entry.backend,
               entry.format, entry.fitted, error_text(entry.fitted_error), entry.held_out,
               error_text(entry.held_out_error));
    for (const auto& option : Form::kOptions) {
      fmt::print("  {:<22} {}\n", option.name, entry.figures.*option.field);
    }
    for (const auto& field : Form::kFields) {
      const double figure = entry.figures.*field.field;
      if (figure == 0) continue;  // No meaning in this format.
      fmt::print("  {:<22} {}\n", field.name,
                 field.unit == "s"     ? format_seconds(figure)
                 : field.unit == "B/s" ? format_bytes_per_s(figure)
                                       : fmt::format("{:.4g}", figure));
    }
  }
}

template <class Form>
int show_times(const Chip& chip, const std::string& operation, const KernelEntries<Form>& entries,
               std::string_view sizes, bool json) {
  const typename Form::Shape shape = KernelQuestion<Form>::shape(
      operation, parse_sizes(sizes, operation, KernelQuestion<Form>::sizes(operation)));
  std::vector<std::vector<std::string>> table = {{"backend", "format", "time", "usual error"}};
  Json rows = Json::array();
  for (const KernelEntry<Form>& entry : entries) {
    const double time_s =
        Form::time(entry.figures, *Form::setting(chip, entry.format), shape).time_s;
    table.push_back(
        {entry.backend, entry.format, format_seconds(time_s), error_text(entry.held_out_error)});
    rows.push_back({{"backend", entry.backend},
                    {"format", entry.format},
                    {"time_s", time_s},
                    {"held_out_error", entry.held_out_error}});
  }
  if (json) {
    fmt::print("{}", to_text(Json{{"chip", chip.name}, {"operation", operation}, {"times", rows}}));
    return kFound;
  }
  // Of collectives alone, the host's part was measured with them.
  const char* launch = operation == "collectives" ? "" : ", without the host's launch";
  fmt::print("{} on {}{}\n\n{}", operation, chip.name, launch, text_table(table));
  return kFound;
}

}  // namespace

void print_measured_kernels(const Chip& chip) {
  const std::optional<ChipKernels> kernels = load_kernels(chip);
  if (!kernels) return;
  fmt::print("\nMeasured kernels\n");
  for_each_operation(
      [&]<class Form>(const char* operation, const KernelEntries<Form>& entries) {
        if (entries.empty()) return;
        const auto [least, most] = std::minmax_element(
            entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.held_out_error < b.held_out_error; });
        fmt::print(
            "  {:<22} {} combinations of backend and format, times off by {} to {} on average\n",
            operation, entries.size(), error_text(least->held_out_error),
            error_text(most->held_out_error));
      },
      kernels->operations);
  fmt::print("  {:<22} {}\n", "source", kernels->source);
}

int show_kernel(const Chip& chip, const std::string& kernel, bool json) {
  const std::optional<ChipKernels> kernels = load_kernels(chip);
  if (!kernels) {
    throw Error(kKernelOption, "kernels of " + chip.name + " were not measured",
                "braid show CHIP lists those that were");
  }
  const std::size_t equals = kernel.find('=');
  const std::string operation = kernel.substr(0, equals);
  std::vector<std::string> known;
  std::optional<int> status;
  for_each_operation(
      [&]<class Form>(const char* name, const KernelEntries<Form>& entries) {
        if (!entries.empty()) known.emplace_back(name);
        if (operation != name || entries.empty()) return;
        if (equals != std::string::npos) {
          status = show_times<Form>(chip, operation, entries, kernel.substr(equals + 1), json);
        } else if (json) {
          throw Error(kKernelOption, "figures have no JSON form", "give sizes for times in JSON");
        } else {
          fmt::print("{} on {}\n", operation, chip.name);
          show_figures<Form>(entries);
          status = kFound;
        }
      },
      kernels->operations);
  if (!status) {
    throw Error(kKernelOption, "no such operation was measured: " + in_quotes(operation),
                did_you_mean(operation, known));
  }
  return *status;
}

}  // namespace braid
