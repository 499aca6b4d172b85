#include "braid/cli/job_options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "braid/base/error.h"
#include "braid/base/parallel.h"
#include "braid/base/quantity.h"
#include "braid/frontend/model.h"
#include "braid/plan/names.h"

namespace braid {

void add_job_options(CLI::App& app, JobOptions& o) {
  app.add_option("MODEL", o.model,
                 "Zoo name, Hugging Face folder or config.json, .onnx file, or graph JSON")
      ->required();
  app.add_option("--cluster", o.cluster, "NAME, NAME:64 (devices), NAME:8nodes, or a YAML file")
      ->required();
  app.add_option("--global-batch", o.global_batch, "Samples per iteration")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  app.add_option("--seq-len", o.seq_len, "Tokens per sample (default: the model's own maximum)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 28));
  app.add_option("--precision", o.precision, "bf16, fp16, fp8, tf32 or fp32");
  app.add_option("--dim", o.dims, "Value of a symbolic dimension, NAME=N (repeatable)");
  app.add_option("--max-memory", o.max_memory,
                 "Use no more device memory than this, e.g. '40 GiB'");
  app.add_option("--top", o.top, "How many plans to show")->check(CLI::Range(1, 1000));
  app.add_option("--budget", o.budget, "Stop after this many timed configurations")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  const auto degree = [&](const char* name, int& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(1, 1 << 24));
  };
  degree("--tp", o.tp, "Fix the tensor parallel degree");
  degree("--pp", o.pp, "Fix the number of pipeline stages");
  degree("--dp", o.dp, "Fix the data parallel degree");
  degree("--cp", o.cp, "Fix the context parallel degree");
  degree("--ep", o.ep, "Fix the expert parallel degree");
  degree("--vp", o.vp, "Fix the model chunks per stage");
  degree("--micro-batch", o.micro_batch, "Fix the samples per micro-batch");
  app.add_option("--sequence-parallel", o.sequence_parallel, "Fix it: on or off")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--recompute", o.recompute, "Fix it: none, selective or full")
      ->check(CLI::IsMember({"none", "selective", "full"}));
  app.add_option("--zero", o.zero, "Fix the ZeRO stage, 0 to 3")->check(CLI::Range(0, 3));
  app.add_option("--schedule", o.schedule, "Fix it: gpipe, 1f1b or interleaved")
      ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved"}));
  app.add_flag("--no-offload", o.no_offload, "Never move state to host memory");
  app.add_option("--threads", o.threads, "Worker threads (results do not depend on it)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--progress", o.progress, "Show progress even when stderr is no terminal");
  app.add_flag("--json", o.json, "Print exactly one JSON object");
}

namespace {

std::optional<int> fixed(int value) { return value > 0 ? std::optional<int>(value) : std::nullopt; }

ModelOptions model_options(const JobOptions& o) {
  ModelOptions options;
  options.seq_len = o.seq_len;
  for (const std::string& dim : o.dims) {
    const auto equals = dim.find('=');
    std::int64_t value = 0;
    const char* end = dim.data() + dim.size();
    const bool read = equals != std::string::npos && equals > 0 &&
                      std::from_chars(dim.data() + equals + 1, end, value).ptr == end;
    if (!read || value < 1 || value > (std::int64_t{1} << 40)) {
      throw Error(Where{"", 0, "--dim"}, "'" + dim + "' is not NAME=N with N of at least 1");
    }
    options.dims[dim.substr(0, equals)] = value;
  }
  return options;
}

}  // namespace

void load_job(const JobOptions& o, LoadedJob& loaded) {
  if (o.threads > 0) set_thread_count(o.threads);
  loaded.job.precision = parse_precision(o.precision);
  loaded.graph = load_model(o.model, model_options(o));
  loaded.system = load_system(o.cluster);
  if (!o.max_memory.empty()) {
    const auto bytes = parse_quantity(o.max_memory, Unit::bytes);
    if (!bytes || *bytes <= 0) {
      throw Error(Where{"", 0, "--max-memory"}, "'" + o.max_memory + "' is not an amount of memory",
                  "write it with its unit, such as '40 GiB'");
    }
    for (DeviceGroup& group : loaded.system.groups) {
      Chip& chip = group.chip;
      chip.memory.bytes = std::min(chip.memory.bytes, *bytes + chip.reserved_bytes);
    }
  }
  loaded.job.graph = &loaded.graph;
  loaded.job.model_source = o.model;
  loaded.job.global_batch = o.global_batch;
  SpaceOptions& space = loaded.space;
  space.tp = fixed(o.tp);
  space.pp = fixed(o.pp);
  space.dp = fixed(o.dp);
  space.cp = fixed(o.cp);
  space.ep = fixed(o.ep);
  space.vp = fixed(o.vp);
  space.micro_batch = fixed(o.micro_batch);
  if (!o.sequence_parallel.empty()) space.sequence_parallel = o.sequence_parallel == "on";
  if (!o.recompute.empty()) space.recompute = parse_recompute(o.recompute);
  if (!o.schedule.empty()) space.schedule = parse_schedule(o.schedule);
  if (o.zero >= 0) space.zero = static_cast<Zero>(o.zero);
  space.allow_offload = !o.no_offload;
  space.top = o.top;
  loaded.budget.work = o.budget;
}

Progress progress_line(const JobOptions& o) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (!o.progress && !terminal) return {};
  return [terminal](double best_s, double bound_s, std::int64_t work) {
    fmt::print(stderr, "{}best {:>10.4g} s  bound {:>10.4g} s  gap {:>6.2f}%  work {}{}",
               terminal ? "\r" : "", best_s, bound_s, 100 * (1 - bound_s / best_s), work,
               terminal ? "" : "\n");
  };
}

}  // namespace braid
