#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "braid/base/csv.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/named_entry.h"
#include "braid/base/text.h"
#include "braid/kernels/held_out.h"
#include "braid/kernels/measured_kernels.h"
#include "braid/system/catalogue.h"

namespace braid {
namespace {

/// What AIConfigurator's tables call chips of the catalogue.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTableNames = {
    {{"a100_sxm", "a100-sxm-80gb"},
     {"b200_sxm", "b200"},
     {"b300_sxm", "b300"},
     {"h100_sxm", "h100-sxm"},
     {"h200_sxm", "h200-sxm"},
     {"rtx_pro_6000_server", "rtx-pro-6000-server"}}};

std::string catalogue_name(const std::string& in_table) {
  for (const auto& [table, catalogue] : kTableNames) {
    if (in_table == table) return std::string(catalogue);
  }
  return in_table;
}

/// The shape columns of one row, in the order in which its table was asked for them.
class ShapeFields {
 public:
  ShapeFields(const std::vector<std::string_view>& fields, const Where& where)
      : fields_(fields), where_(where) {}

  std::string_view text(std::size_t i) const { return fields_[i]; }
  double number(std::size_t i) const { return parsed(fields_[i]); }
  double at_least_one(std::size_t i) const {
    const double value = number(i);
    if (!(value >= 1)) throw Error(where_, "a size of less than 1: " + std::string(fields_[i]));
    return value;
  }
  double parsed(std::string_view text) const {
    const std::optional<double> value = finite_double(text);
    if (!value || !(*value >= 0)) throw Error(where_, "not a number: '" + std::string(text) + "'");
    return *value;
  }
  std::string joined() const {
    std::string all;
    for (const std::string_view field : fields_)
      all += (all.empty() ? "" : ",") + std::string(field);
    return all;
  }
  [[noreturn]] void fail(const std::string& message) const { throw Error(where_, message); }

 private:
  const std::vector<std::string_view>& fields_;
  Where where_;
};

/// A table of one operation.
template <class Form>
struct KernelTable {
  std::string file;
  std::vector<std::string> format_columns;  ///< Joined by slashes, after `prefix`.
  std::vector<std::string> shape_columns;
  std::string prefix;
  typename Form::Shape (*shape)(const ShapeFields& fields, const typename Form::Setting& setting,
                                const std::string& backend) = nullptr;
};

std::vector<std::size_t> columns_of(const CsvTable& table, const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) {
    const std::optional<std::size_t> column = table.column(name);
    if (!column) throw Error(Where{table.file, 1, ""}, "no column " + name);
    columns.push_back(*column);
  }
  return columns;
}

/// Chips by name.
using MeasuredByChip = std::map<std::string, MeasuredKernels>;

MeasuredKernels& chip_of(MeasuredByChip& chips, const std::string& in_table, const Where& where) {
  const std::string name = catalogue_name(in_table);
  const auto found = chips.find(name);
  if (found != chips.end()) return found->second;
  MeasuredKernels& measured = chips[name];
  measured.chip = load_chip(name, where);
  return measured;
}

template <class Form>
FormGroup<Form>& group_of(KernelGroups<Form>& groups, const Chip& chip, const std::string& backend,
                          const std::string& format, const Where& where) {
  // Rows of a group mostly follow one another.
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    if ((*group)->backend == backend && (*group)->format == format) return **group;
  }
  const auto setting = Form::setting(chip, format);
  if (!setting) throw Error(where, chip.name + " does not compute in " + format);
  auto group = std::make_unique<FormGroup<Form>>();
  group->backend = backend;
  group->format = format;
  group->setting = *setting;
  groups.push_back(std::move(group));
  return *groups.back();
}

template <class Form>
void read_table(const std::string& folder, const KernelTable<Form>& what,
                KernelGroups<Form>& (*groups_of)(MeasuredKernels&), MeasuredByChip& chips) {
  const std::string path = folder + "/" + what.file;
  if (!file_exists(path)) return;
  const CsvTable table = parse_csv(read_file(path), path);
  const std::vector<std::size_t> fixed = columns_of(table, {"system", "backend", "latency_us"});
  const std::vector<std::size_t> format_columns = columns_of(table, what.format_columns);
  const std::vector<std::size_t> shape_columns = columns_of(table, what.shape_columns);
  std::vector<std::string_view> fields;
  for (const CsvRow& row : table.rows) {
    const Where where{path, row.line, ""};
    std::string format = what.prefix;
    for (const std::size_t column : format_columns) {
      format += (format.empty() ? "" : "/") + row.fields[column];
    }
    MeasuredKernels& measured = chip_of(chips, row.fields[fixed[0]], where);
    FormGroup<Form>& group =
        group_of<Form>(groups_of(measured), measured.chip, row.fields[fixed[1]], format, where);
    fields.clear();
    for (const std::size_t column : shape_columns) fields.emplace_back(row.fields[column]);
    const ShapeFields shape(fields, where);
    const double time_us = shape.parsed(row.fields[fixed[2]]);
    if (time_us <= 0) throw Error(where, "a time of 0");
    group.shapes.push_back(what.shape(shape, group.setting, group.backend));
    group.measured_s.push_back(1e-6 * time_us);
    group.held_out.push_back(is_held_out(shape.joined()));
  }
}

/// The tables were measured with copies of the weights in turn: by TensorRT-LLM with as many as
/// fill L2 but no more than five, by the others with six. Inferred from bandwidths
/// (docs/notes/kernels.md).
GemmShape measured_gemm(const ShapeFields& fields, const GemmForm::Setting& setting,
                        const std::string& backend) {
  GemmShape shape{fields.at_least_one(0), fields.at_least_one(1), fields.at_least_one(2)};
  const double weights = shape.n * shape.k * setting.format.weight_bytes;
  const double copies =
      backend == "trtllm" ? std::min(5.0, std::ceil(setting.machine.l2_bytes / weights)) : 6;
  shape.cycled_bytes = copies * weights;
  return shape;
}

AttentionShape windowed(AttentionShape shape, double window, const ShapeFields& fields) {
  if (shape.heads < shape.kv_heads) fields.fail("more kv heads than heads");
  shape.window = window;
  return shape;
}

AttentionShape measured_prefill(const ShapeFields& f, const AttentionSetting& /*setting*/,
                                const std::string& /*backend*/) {
  return windowed(attention_shape(f.at_least_one(0), f.at_least_one(1), f.at_least_one(2),
                                  f.at_least_one(4), f.at_least_one(5)),
                  f.number(3), f);
}

AttentionShape measured_decode(const ShapeFields& f, const AttentionSetting& /*setting*/,
                               const std::string& /*backend*/) {
  return windowed(attention_shape(f.at_least_one(0), f.at_least_one(1), f.at_least_one(2),
                                  f.at_least_one(4), f.number(5) + 1),
                  f.number(3), f);
}

AttentionShape measured_mla_prefill(const ShapeFields& f, const AttentionSetting& /*setting*/,
                                    const std::string& /*backend*/) {
  return mla_prefill_shape(f.at_least_one(0), f.at_least_one(1), f.at_least_one(2));
}

AttentionShape measured_mla_decode(const ShapeFields& f, const AttentionSetting& /*setting*/,
                                   const std::string& /*backend*/) {
  return mla_decode_shape(f.at_least_one(0), f.at_least_one(1), f.number(2) + 1);
}

ExpertForm::Shape measured_experts(const ShapeFields& f, const ExpertForm::Setting& /*setting*/,
                                   const std::string& /*backend*/) {
  ExpertShape shape{f.at_least_one(0), f.at_least_one(1), f.at_least_one(2), f.at_least_one(3),
                    f.at_least_one(4), f.at_least_one(5), f.at_least_one(6)};
  if (shape.experts < shape.ep || shape.experts > 1e5) f.fail("no such number of experts");
  const std::string_view distribution = f.text(7);
  if (distribution.starts_with("pl")) {
    shape.skew = f.parsed(distribution.substr(2));
  } else if (distribution != "balanced") {
    f.fail("write balanced or pl and an exponent: " + std::string(distribution));
  }
  return ExpertForm::shape(shape);
}

CollectiveShape measured_collective(const ShapeFields& f,
                                    const CollectiveForm::Setting& /*setting*/,
                                    const std::string& /*backend*/) {
  const CollectiveShape shape{f.number(0), f.at_least_one(1)};
  if (shape.devices < 2) f.fail("a collective needs two devices");
  return shape;
}

void read_attention(const std::string& folder, MeasuredByChip& chips) {
  read_table<PrefillForm>(
      folder,
      {"attention_prefill.csv",
       {"dtype", "kv_dtype"},
       {"heads", "kv_heads", "head_dim", "window", "batch", "isl"},
       "",
       measured_prefill},
      [](MeasuredKernels & m) -> auto& { return m.operations.attention_prefill; }, chips);
  read_table<DecodeForm>(
      folder,
      {"attention_decode.csv",
       {"kv_dtype"},
       {"heads", "kv_heads", "head_dim", "window", "batch", "past_len"},
       "bf16",
       measured_decode},
      [](MeasuredKernels & m) -> auto& { return m.operations.attention_decode; }, chips);
  read_table<PrefillForm>(
      folder,
      {"mla_prefill.csv",
       {"dtype", "kv_dtype"},
       {"local_heads", "batch", "isl"},
       "",
       measured_mla_prefill},
      [](MeasuredKernels & m) -> auto& { return m.operations.mla_prefill; }, chips);
  read_table<DecodeForm>(
      folder,
      {"mla_decode.csv",
       {"dtype", "kv_dtype"},
       {"local_heads", "batch", "past_len"},
       "",
       measured_mla_decode},
      [](MeasuredKernels & m) -> auto& { return m.operations.mla_decode; }, chips);
}

void read_collectives(const std::string& folder, MeasuredByChip& chips) {
  const auto groups = [](MeasuredKernels & m) -> auto& { return m.operations.collectives; };
  for (const char* file : {"nccl.csv", "oneccl.csv"}) {
    read_table<CollectiveForm>(
        folder, {file, {"op", "dtype"}, {"gpus", "bytes"}, "", measured_collective}, groups, chips);
  }
  read_table<CollectiveForm>(folder,
                             {"custom_allreduce.csv",
                              {"dtype", "mode"},
                              {"gpus", "bytes"},
                              "all_reduce",
                              measured_collective},
                             groups, chips);
}

template <class Form>
void sort_groups(KernelGroups<Form>& groups) {
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::tie(a->backend, a->format) < std::tie(b->backend, b->format);
  });
}

}  // namespace

std::vector<MeasuredKernels> read_kernel_tables(const std::string& folder) {
  MeasuredByChip chips;
  read_table<GemmForm>(
      folder, {"gemm.csv", {"dtype"}, {"m", "n", "k"}, "", measured_gemm},
      [](MeasuredKernels & m) -> auto& { return m.operations.gemm; }, chips);
  read_attention(folder, chips);
  read_table<ExpertForm>(
      folder,
      {"moe.csv",
       {"dtype", "kernel"},
       {"tokens", "hidden", "inter", "topk", "experts", "tp", "ep", "distribution"},
       "",
       measured_experts},
      [](MeasuredKernels & m) -> auto& { return m.operations.experts; }, chips);
  read_collectives(folder, chips);
  if (chips.empty()) {
    throw Error(Where{folder, 0, ""}, "no tables of kernels",
                "docs/file-formats.md says what they are called");
  }
  std::vector<MeasuredKernels> result;
  for (auto& [name, measured] : chips) {
    for_each_operation([](const char* /*operation*/, auto& groups) { sort_groups(groups); },
                       measured.operations);
    result.push_back(std::move(measured));
  }
  return result;
}

}  // namespace braid
