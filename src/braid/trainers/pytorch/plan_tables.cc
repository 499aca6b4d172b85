#include "braid/trainers/pytorch/plan_tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "braid/base/index.h"
#include "braid/run/synthetic_data.h"
#include "braid/system/part.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/pytorch/python_text.h"

namespace braid {
namespace {

/// Text for the inside of a docstring.
std::string quoted(std::string text) {
  text = on_one_line(std::move(text));
  std::replace(text.begin(), text.end(), '\\', '/');
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

/// "0 to 3", "0, 4" or "2".
std::string rank_list(const std::vector<std::int32_t>& ranks) {
  const bool consecutive = ranks.back() - ranks.front() + 1 == std::ssize(ranks);
  if (ranks.size() > 2 && consecutive) return fmt::format("{} to {}", ranks.front(), ranks.back());
  return fmt::format("{}", fmt::join(ranks, ", "));
}

/// `NAME = {…}` with an entry a line, and a comment above.
std::string table(const std::string& comment, const std::string& name,
                  const std::vector<std::string>& entries) {
  std::string text = "\n# " + comment + "\n" + name + " = {";
  if (entries.empty()) return text + "}\n";
  text += "\n";
  for (const std::string& each : entries) text += "    " + each + ",\n";
  return text + "}\n";
}

/// Processes on each computer that has any, in the order of ranks.
std::vector<std::int64_t> processes_by_computer(const System& system,
                                                const std::vector<std::int64_t>& devices) {
  std::map<std::int64_t, std::int64_t> count;
  for (const DeviceRun& run : device_runs(system)) {
    const DeviceGroup& group = system.groups[at(static_cast<std::int64_t>(run.group))];
    const std::int64_t size =
        group.devices_per_host > 0 ? group.devices_per_host : run.devices_per_node;
    for (const std::int64_t device : devices) {
      if (device < run.first || device >= run.first + run.count) continue;
      ++count[run.first + (device - run.first) / size * size];
    }
  }
  std::vector<std::int64_t> processes;
  processes.reserve(count.size());
  for (const auto& [first, number] : count) processes.push_back(number);
  return processes;
}

std::string_view type_name(const Precision& precision) {
  return precision.matmul == Dtype::f32 || precision.matmul == Dtype::tf32 ? "float32" : "bfloat16";
}

std::string_view schedule_name(const Plan& plan) {
  const bool own = std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& stage) {
    return stage.own && !stage.own->passes.empty();
  });
  if (own) return "an order of its own";
  switch (plan.parallel.schedule) {
    case ScheduleKind::gpipe:
      return "GPipe";
    case ScheduleKind::interleaved:
      return "interleaved 1F1B";
    case ScheduleKind::one_f_one_b:
      break;
  }
  return "1F1B";
}

}  // namespace

std::vector<std::string> PlanTables::launch(const std::string& file,
                                            std::vector<std::string>& warnings) const {
  const std::vector<std::int64_t> processes =
      processes_by_computer(ordered_.plan.system, staged_.rank_device);
  if (processes.size() == 1) {
    return {fmt::format("torchrun --nproc_per_node {} {}", processes.front(), file)};
  }
  const bool same = std::adjacent_find(processes.begin(), processes.end(), std::not_equal_to<>()) ==
                    processes.end();
  if (same) {
    return {
        fmt::format("torchrun --nnodes {} --node_rank N --nproc_per_node {} --master_addr HOST {}",
                    processes.size(), processes.front(), file)};
  }
  warnings.emplace_back("computers have different numbers of ranks: each is started with its own");
  std::vector<std::string> lines;
  for (std::size_t n = 0; n < processes.size(); ++n) {
    lines.push_back(
        fmt::format("torchrun --nnodes {} --node_rank {} --nproc_per_node {} --master_addr HOST {}",
                    processes.size(), n, processes[n], file));
  }
  return lines;
}

std::string PlanTables::heading(const std::vector<std::string>& launch,
                                const std::vector<std::string>& warnings) const {
  const Plan& plan = ordered_.plan;
  std::string text = "\"\"\"" + quoted(title_of(plan)) + "\n\nTrains the model by the plan, " +
                     std::to_string(staged_.rank_device.size()) + " processes in " +
                     std::to_string(plan.stages.size()) +
                     (plan.stages.size() == 1 ? " stage" : " stages") +
                     ", by torch.distributed alone:\n\n";
  for (const std::string& line : launch) text += "    " + quoted(line) + "\n";
  text += fmt::format(
      "\nStarted without torchrun, the file trains the whole model in one process, with the same "
      "weights\n"
      "and data: losses are the same but for rounding. Both are made up: made_up() is where yours "
      "go.\n"
      "\nEach iteration takes {} samples; passes are in the order of {}.\n\n",
      plan.global_batch, schedule_name(plan));
  std::vector<std::array<std::string, 4>> rows = {{"stage", "ranks", "micro-batch", "layers"}};
  for (std::size_t p = 0; p < staged_.parts.size(); ++p) {
    const StagePart& part = staged_.parts[p];
    const Chunk& chunk = plan.stages[at(part.stage)].chunks[at(part.chunk)];
    std::string layers;
    for (std::size_t i = 0; i < chunk.layers.size();) {
      std::size_t end = i + 1;
      while (end < chunk.layers.size() && chunk.layers[end] == chunk.layers[end - 1] + 1) ++end;
      layers += layers.empty() ? "" : ", ";
      layers += quoted(plan.profile.layers[at(chunk.layers[i])].name);
      if (end - i > 1)
        layers += " to " + quoted(plan.profile.layers[at(chunk.layers[end - 1])].name);
      i = end;
    }
    rows.push_back(
        {std::to_string(p + 1), rank_list(part.ranks), std::to_string(part.micro_batch), layers});
  }
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < 3; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const auto& row : rows) {
    text += fmt::format("    {:>{}}  {:>{}}  {:>{}}  {}\n", row[0], widths[0], row[1], widths[1],
                        row[2], widths[2], row[3]);
  }
  for (const std::string& each : warnings) text += "\nNote: " + quoted(each) + ".\n";
  return text + "\"\"\"\n\n";
}

std::string PlanTables::text() const {
  std::string text =
      "@dataclass\n"
      "class Stage:\n"
      "    module: type\n"
      "    ranks: list  # A replica on each.\n"
      "    micro_batch: int  # Samples of a pass.\n"
      "    takes: tuple  # Names of what its module is given, and of what it returns.\n"
      "    gives: tuple\n"
      "    zero: int = 0  # Stage of ZeRO: 1 shards the optimizer's state, 2 gradients too.\n\n\n";
  text += fmt::format("BATCH = {}  # Samples of an iteration, of all replicas together.\n",
                      staged_.batch);
  text += fmt::format("DTYPE = \"{}\"  # Unless --dtype says otherwise.\n",
                      type_name(ordered_.plan.precision));
  return text + data_text() + stage_text() + shared_text() + order_text();
}

std::string PlanTables::data_text() const {
  const SyntheticData data(staged_.model, 1, staged_.batch);
  std::vector<std::string> inputs, targets, shapes;
  const std::vector<ProgramInput>& all = facts_.program().inputs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_real = all[i].type != ElementType::i64;
    inputs.push_back(fmt::format("\"{}\": ({}, {})", facts_.names[at(all[i].value)],
                                 python_tuple(written_shape(*all[i].shape)),
                                 is_real ? "None" : std::to_string(data.bound(i))));
  }
  std::set<ValueId> crossing;
  for (const StagePart& part : staged_.parts) {
    crossing.insert(part.handed.begin(), part.handed.end());
    for (const ValueId id : part.losses) {
      const std::int64_t columns = data.columns(id);
      const std::int64_t rows = element_count(staged_.model.shapes[at(id)]) / columns;
      targets.push_back(fmt::format("\"{}\": (({},), {})", facts_.names[at(id)], rows,
                                    columns == 1 ? "None" : std::to_string(columns)));
    }
  }
  for (const ValueId id : crossing) {
    shapes.push_back(fmt::format("\"{}\": {}", facts_.names[at(id)],
                                 python_tuple(written_shape(staged_.model.shapes[at(id)]))));
  }
  return table("What a sample of each input is: its shape, and what its whole numbers are below.",
               "INPUTS", inputs) +
         table(
             "What a sample of each result is to be: the class of each row, and how many there "
             "are.",
             "TARGETS", targets) +
         table("The shapes of what stages hand over, of a sample.", "SHAPES", shapes);
}

std::string PlanTables::stage_text() const {
  std::vector<std::string> entries;
  for (std::size_t p = 0; p < staged_.parts.size(); ++p) {
    const StagePart& part = staged_.parts[p];
    const auto names = [&](const std::vector<ValueId>& ids) {
      std::vector<std::string> items;
      items.reserve(ids.size());
      for (const ValueId id : ids) items.push_back('"' + facts_.names[at(id)] + '"');
      return python_tuple(items);
    };
    const int zero = static_cast<int>(form_of(ordered_.plan, at(part.stage)).zero);
    std::vector<std::string> items = {
        fmt::format("module=Stage{}", p + 1), "ranks=" + python_ranks(part.ranks),
        fmt::format("micro_batch={}", part.micro_batch), "takes=" + names(stages_[p].takes),
        "gives=" + names(stages_[p].gives)};
    if (zero > 0 && part.ranks.size() > 1) items.push_back(fmt::format("zero={}", zero));
    entries.push_back(python_call(fmt::format("{}: Stage", p + 1), items, "", 4));
  }
  return table("Stages by number, each behind those that it takes from.", "STAGES", entries);
}

std::string PlanTables::shared_text() const {
  // Where each parameter is: names in stages' modules, in the order of layers; and the stages.
  std::map<ValueId, std::vector<std::string>> names;
  std::map<ValueId, std::set<std::size_t>> stages;
  std::vector<std::size_t> part_of(texts_.members.size(), 0);
  for (std::size_t p = 0; p < staged_.parts.size(); ++p) {
    const StagePart& part = staged_.parts[p];
    for (const std::int32_t l :
         ordered_.plan.stages[at(part.stage)].chunks[at(part.chunk)].layers) {
      part_of[at(l)] = p;
    }
  }
  for (std::size_t l = 0; l < texts_.members.size(); ++l) {
    for (const auto& [name, id] : (*texts_.layers)[l].parameters) {
      names[id].push_back(texts_.members[l] + "." + name);
      stages[id].insert(part_of[l] + 1);
    }
  }
  std::vector<std::string> tied, shared;
  for (const auto& [id, all] : names) {
    for (std::size_t i = 1; i < all.size(); ++i) {
      tied.push_back(fmt::format("\"{}\": \"{}\"", all[i], all.front()));
    }
    if (stages[id].size() < 2) continue;
    const std::vector<std::int64_t> numbers(stages[id].begin(), stages[id].end());
    shared.push_back(fmt::format("\"{}\": {}", all.front(), python_tuple(numbers)));
  }
  return table("Parameters that are another: both are one tensor.", "TIED", tied) +
         table("Parameters that several stages hold.", "SHARED", shared);
}

std::string PlanTables::order_text() const {
  std::vector<std::string> entries;
  for (std::size_t d = 0; d < ordered_.order.devices.size(); ++d) {
    std::vector<std::string> words;
    for (const Work& work : ordered_.order.devices[d]) {
      if (work.kind == WorkKind::reduce_gradients || work.kind == WorkKind::optimizer) continue;
      words.push_back(
          fmt::format("{}{}", work.kind == WorkKind::forward ? "F" : "B", work.stage + 1));
    }
    const std::vector<std::string> terms = repeated_words(words);
    std::string entry = fmt::format("{}: {}", d + 1, joined(terms, " + "));
    if (entry.size() + 5 > kPythonColumns) {
      entry = fmt::format("{}: (\n        {}\n    )", d + 1, joined(terms, "\n        + "));
    }
    entries.push_back(entry);
  }
  std::string text =
      "\n# The passes of each stage's ranks: F2 is a forward pass of stage 2, B2 a backward "
      "pass.\nORDER = {\n";
  for (const std::string& each : entries) text += "    " + each + ",\n";
  return text + "}\n";
}

}  // namespace braid
