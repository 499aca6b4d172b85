#include "braid/kernels/chip_kernels.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "braid/base/embedded_file.h"
#include "braid/base/json.h"

namespace braid {

std::span<const EmbeddedFile> embedded_kernels();

namespace {

template <class Form>
void read_figures(const Value& own, const Value& of_chip, const typename Form::Setting& setting,
                  typename Form::Figures& figures) {
  std::vector<std::string_view> keys;
  for (const auto& option : Form::kOptions) {
    figures.*option.field = static_cast<int>(own[option.name].as_int_in(0, option.ways - 1));
    keys.push_back(option.name);
  }
  for (const auto& field : Form::kFields) {
    if (!Form::applies(field.name, setting)) continue;
    const Value& from = field.of_chip ? of_chip : own;
    figures.*field.field = from[field.name].as_double_in(field.least, field.most);
    if (!field.of_chip) keys.push_back(field.name);
  }
  own.expect_only(keys);
}

template <class Form>
KernelEntries<Form> read_entries(const Value& operation, const Chip& chip) {
  KernelEntries<Form> entries;
  operation.expect_only({"chip", "groups"});
  for (const Value& value : operation["groups"].elements()) {
    value.expect_only(
        {"backend", "format", "fitted", "held_out", "fitted_error", "held_out_error", "figures"});
    KernelEntry<Form> entry;
    entry.backend = value["backend"].as_string();
    entry.format = value["format"].as_string();
    if (kernel_entry<Form>(entries, entry.backend, entry.format) != nullptr) {
      value["format"].fail("this backend has the format twice");
    }
    constexpr std::int64_t kMostRows = 1'000'000'000;
    entry.fitted = static_cast<std::size_t>(value["fitted"].as_int_in(0, kMostRows));
    entry.held_out = static_cast<std::size_t>(value["held_out"].as_int_in(0, kMostRows));
    entry.fitted_error = value["fitted_error"].as_double_in(0, 1e3);
    entry.held_out_error = value["held_out_error"].as_double_in(0, 1e3);
    const auto setting = Form::setting(chip, entry.format);
    if (!setting) value["format"].fail("the chip does not compute in this format");
    read_figures<Form>(value["figures"], operation["chip"], *setting, entry.figures);
    entries.push_back(std::move(entry));
  }
  return entries;
}

void add(std::string& list, std::string_view name, double figure) {
  list += fmt::format("{}{}: {:.4g}", list.empty() ? "" : ", ", name, figure);
}

template <class Form>
std::string entries_text(std::string_view name, const KernelEntries<Form>& entries,
                         const Chip& chip) {
  if (entries.empty()) return {};
  std::string text = fmt::format("{}:\n", name);
  std::string of_chip;
  for (const auto& field : Form::kFields) {
    if (field.of_chip) add(of_chip, field.name, entries.front().figures.*field.field);
  }
  if (!of_chip.empty()) text += fmt::format("  chip: {{{}}}\n", of_chip);
  text += "  groups:\n";
  for (const KernelEntry<Form>& entry : entries) {
    std::string figures;
    for (const auto& option : Form::kOptions) {
      add(figures, option.name, entry.figures.*option.field);
    }
    const auto setting = Form::setting(chip, entry.format);
    for (const auto& field : Form::kFields) {
      if (field.of_chip || !setting || !Form::applies(field.name, *setting)) continue;
      add(figures, field.name, entry.figures.*field.field);
    }
    text += fmt::format(
        "    - {{backend: {}, format: {}, fitted: {}, held_out: {}, fitted_error: {:.4f}, "
        "held_out_error: {:.4f},\n       figures: {{{}}}}}\n",
        entry.backend, entry.format, entry.fitted, entry.held_out, entry.fitted_error,
        entry.held_out_error, figures);
  }
  return text;
}

}  // namespace

ChipKernels read_kernels(const Value& root, const Chip& chip) {
  ChipKernels kernels;
  kernels.chip = root["chip"].as_string();
  if (kernels.chip != chip.name) root["chip"].fail("these are not the kernels of " + chip.name);
  kernels.source = root["source"].as_string();
  std::vector<std::string_view> keys = {"chip", "source"};
  for_each_operation(
      [&]<class Form>(const char* name, KernelEntries<Form>& entries) {
        keys.emplace_back(name);
        if (root[name].exists()) entries = read_entries<Form>(root[name], chip);
      },
      kernels.operations);
  root.expect_only(keys);
  return kernels;
}

std::optional<ChipKernels> load_kernels(const Chip& chip) {
  const std::span<const EmbeddedFile> files = embedded_kernels();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.name == chip.name; });
  if (found == files.end()) return std::nullopt;
  const Document document =
      Document::parse(found->text, Document::Syntax::yaml, std::string(found->file));
  return read_kernels(document.root(), chip);
}

std::string kernels_text(const ChipKernels& kernels, const Chip& chip) {
  std::string text =
      fmt::format("chip: {}\nsource: {}\n", kernels.chip, Json(kernels.source).dump());
  for_each_operation(
      [&]<class Form>(const char* name, const KernelEntries<Form>& entries) {
        text += entries_text<Form>(name, entries, chip);
      },
      kernels.operations);
  return text;
}

}  // namespace braid
