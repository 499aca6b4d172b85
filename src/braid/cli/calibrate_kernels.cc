#include "braid/cli/calibrate_kernels.h"

#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/named_entry.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/kernels/measured_kernels.h"
#include "braid/report/table.h"

namespace braid {
namespace {

std::string in_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_errors(const std::vector<ChipKernels>& fits) {
  std::vector<std::vector<std::string>> table = {
      {"chip", "operation", "backend", "format", "fitted", "held out", "error", "held-out error"}};
  for (const ChipKernels& chip : fits) {
    for_each_operation(
        [&]<class Form>(const char* operation, const KernelEntries<Form>& entries) {
          for (const KernelEntry<Form>& entry : entries) {
            table.push_back({chip.chip, operation, entry.backend, entry.format,
                             std::to_string(entry.fitted), std::to_string(entry.held_out),
                             in_percent(entry.fitted_error), in_percent(entry.held_out_error)});
          }
        },
        chip.operations);
  }
  fmt::print("{}", text_table(table));
  fmt::print(
      "\nMean errors of the kernels' times, without sign. Held out: a fifth of the shapes, which "
      "no fit has seen.\n");
}

void print_json(const std::vector<ChipKernels>& fits) {
  Json groups = Json::array();
  for (const ChipKernels& chip : fits) {
    for_each_operation(
        [&]<class Form>(const char* operation, const KernelEntries<Form>& entries) {
          for (const KernelEntry<Form>& entry : entries) {
            groups.push_back({{"chip", chip.chip},
                              {"operation", operation},
                              {"backend", entry.backend},
                              {"format", entry.format},
                              {"fitted", entry.fitted},
                              {"held_out", entry.held_out},
                              {"fitted_error", entry.fitted_error},
                              {"held_out_error", entry.held_out_error}});
          }
        },
        chip.operations);
  }
  Json json = Json::object();
  json["groups"] = std::move(groups);
  fmt::print("{}", to_text(json));
}

}  // namespace

int calibrate_kernels(const KernelCalibration& options) {
  if (!options.out.empty() && !file_exists(options.out)) {
    throw Error(Where{options.out, 0, ""}, "there is no such folder", "make it first");
  }
  const std::vector<MeasuredKernels> measured = read_kernel_tables(options.tables);
  const std::vector<ChipKernels> fits = fit_measured_kernels(measured, options.source);
  for (std::size_t i = 0; !options.out.empty() && i < fits.size(); ++i) {
    write_file(options.out + "/" + fits[i].chip + ".yaml", kernels_text(fits[i], measured[i].chip));
  }
  if (options.json) {
    print_json(fits);
    return kFound;
  }
  print_errors(fits);
  say_written_below({{"Kernels", options.out, "a file for each chip"}});
  return kFound;
}

}  // namespace braid
