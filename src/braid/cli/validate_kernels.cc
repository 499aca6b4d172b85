#include "braid/cli/validate_kernels.h"

#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/base/quantile.h"
#include "braid/cli/verbs.h"
#include "braid/kernels/measured_kernels.h"
#include "braid/report/table.h"

namespace braid {
namespace {

/// One chip, operation, backend and format.
struct KernelAccuracy {
  std::string chip, operation, backend, format;
  std::size_t rows = 0;
  double error = 0, median = 0, bias = 0, stated = 0;
};

template <class Form>
KernelAccuracy accuracy_of_kernels(const FormGroup<Form>& group, const KernelEntry<Form>& entry) {
  KernelAccuracy accuracy;
  accuracy.backend = group.backend;
  accuracy.format = group.format;
  accuracy.rows = group.shapes.size();
  accuracy.stated = entry.held_out_error;
  std::vector<double> errors;
  errors.reserve(accuracy.rows);
  for (std::size_t i = 0; i < accuracy.rows; ++i) {
    const double time_s = Form::time(entry.figures, group.setting, group.shapes[i]).time_s;
    const double error = time_s / group.measured_s[i] - 1;
    accuracy.bias += error / static_cast<double>(accuracy.rows);
    accuracy.error += std::abs(error) / static_cast<double>(accuracy.rows);
    errors.push_back(std::abs(error));
  }
  accuracy.median = median(std::move(errors));
  return accuracy;
}

std::vector<KernelAccuracy> accuracies_of(const std::vector<MeasuredKernels>& tables) {
  std::vector<KernelAccuracy> result;
  for (const MeasuredKernels& measured : tables) {
    const std::optional<ChipKernels> kernels = load_kernels(measured.chip);
    if (!kernels) continue;
    for_each_operation(
        [&]<class Form>(const char* operation, const KernelGroups<Form>& groups,
                        const KernelEntries<Form>& entries) {
          for (const auto& group : groups) {
            const auto* entry = kernel_entry<Form>(entries, group->backend, group->format);
            if (entry == nullptr) continue;
            result.push_back(accuracy_of_kernels<Form>(*group, *entry));
            result.back().chip = measured.chip.name;
            result.back().operation = operation;
          }
        },
        measured.operations, kernels->operations);
  }
  return result;
}

}  // namespace

int validate_kernels(const std::string& tables, bool json) {
  const std::vector<KernelAccuracy> accuracies = accuracies_of(read_kernel_tables(tables));
  if (accuracies.empty()) {
    throw Error(Where{tables, 0, ""}, "the catalogue has none of these kernels",
                "fit them with braid calibrate --kernels");
  }
  Json groups = Json::array();
  std::vector<std::vector<std::string>> table = {
      {"chip", "operation", "backend", "format", "rows", "mean", "median", "bias", "stated"}};
  for (const KernelAccuracy& a : accuracies) {
    groups.push_back({{"chip", a.chip},
                      {"operation", a.operation},
                      {"backend", a.backend},
                      {"format", a.format},
                      {"rows", a.rows},
                      {"mape", a.error},
                      {"median_ape", a.median},
                      {"bias", a.bias},
                      {"held_out_error", a.stated}});
    table.push_back(
        {a.chip, a.operation, a.backend, a.format, std::to_string(a.rows),
         fmt::format("{:.1f} %", 100 * a.error), fmt::format("{:.1f} %", 100 * a.median),
         fmt::format("{:+.1f} %", 100 * a.bias), fmt::format("{:.1f} %", 100 * a.stated)});
  }
  if (json) {
    fmt::print("{}", to_text(Json{{"groups", std::move(groups)}}));
    return kFound;
  }
  fmt::print(
      "{}\nErrors of all rows with the catalogue's figures. stated: what the catalogue has "
      "of shapes that were held out.\n",
      text_table(table));
  return kFound;
}

}  // namespace braid
