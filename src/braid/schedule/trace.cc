#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "braid/base/json.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

// Threads of each process. Sends take one for each receiver, because links run side by side.
constexpr int kCompute = 0;
constexpr int kCollectives = 1;
constexpr int kFirstSend = 2;

/// Nanoseconds, rounded alike for starts and ends so that neighbours still do not overlap.
std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e18;
  return std::llround(std::min(seconds * 1e9, kMost));
}

std::string quoted_json(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string layer_ranges(const Chunk& chunk) {
  std::string text;
  for (std::size_t i = 0; i < chunk.layers.size();) {
    std::size_t j = i;
    while (j + 1 < chunk.layers.size() && chunk.layers[j + 1] == chunk.layers[j] + 1) ++j;
    if (!text.empty()) text += ", ";
    text += i == j ? fmt::format("{}", chunk.layers[i])
                   : fmt::format("{}-{}", chunk.layers[i], chunk.layers[j]);
    i = j + 1;
  }
  return text;
}

std::string stage_label(const Stage& stage) {
  std::string text = "layers ";
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    if (c > 0) text += " | ";
    text += layer_ranges(stage.chunks[c]);
  }
  return text;
}

/// Text of a trace, event by event.
class TraceWriter {
 public:
  TraceWriter(const Plan& plan, const Timeline& timeline) : plan_(plan), timeline_(timeline) {
    text_.reserve(512 + 160 * timeline.events.size());
  }

  std::string write() {
    text_ += "{\"displayTimeUnit\": \"ms\",\n\"otherData\": {";
    format("\"program\": \"braid\", \"model\": {}, \"planner\": {}, \"iteration_time_s\": {}}},\n",
           quoted_json(plan_.model), quoted_json(plan_.planner), timeline_.iteration_time_s);
    text_ += "\"traceEvents\": [";
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) write_names(s);
    for (const Event& event : timeline_.events) write_event(event);
    for (std::size_t s = 0; s < timeline_.memory.size(); ++s) {
      for (const MemorySample& sample : timeline_.memory[s]) {
        begin();
        format(R"("ph": "C", "name": "memory", "pid": {}, "tid": 0, "ts": )", s);
        write_time(nanoseconds(sample.time_s));
        format(R"(, "args": {{"bytes": {:.0f}}}}})", sample.bytes);
      }
    }
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void format(fmt::format_string<Args...> form, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Args>(args)...);
  }
  void begin() {
    text_ += first_ ? "\n{" : ",\n{";
    first_ = false;
  }
  void write_time(std::int64_t time_ns) { format("{}.{:03}", time_ns / 1000, time_ns % 1000); }

  void write_metadata(std::size_t stage, int thread, std::string_view key, std::string_view field,
                      const std::string& value) {
    begin();
    format(R"("ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{"{}": {}}}}})", key, stage,
           thread, field, value);
  }
  void write_thread(std::size_t stage, int thread, const std::string& name) {
    write_metadata(stage, thread, "thread_name", "name", quoted_json(name));
    write_metadata(stage, thread, "thread_sort_index", "sort_index", fmt::format("{}", thread));
  }

  void write_names(std::size_t stage) {
    const Stage& part = plan_.stages[stage];
    const std::string own =
        part.own ? fmt::format(", micro-batches of {}", part.own->micro_batch) : "";
    write_metadata(stage, 0, "process_name", "name",
                   quoted_json(fmt::format("stage {} (dp {} x tp {} x cp {}{})", stage + 1, part.dp,
                                           part.tp, part.cp, own)));
    write_metadata(stage, 0, "process_labels", "labels", quoted_json(stage_label(part)));
    write_metadata(stage, 0, "process_sort_index", "sort_index", fmt::format("{}", stage));
    write_thread(stage, kCompute, "compute");
    write_thread(stage, kCollectives, "collectives");
    if (peers_.empty()) collect_peers();
    for (const std::int32_t peer : peers_[stage]) {
      write_thread(stage, kFirstSend + peer, fmt::format("send to stage {}", peer + 1));
    }
  }
  void collect_peers() {
    peers_.resize(plan_.stages.size());
    for (const Event& event : timeline_.events) {
      if (event.kind == EventKind::send) {
        peers_[static_cast<std::size_t>(event.stage)].insert(event.peer_stage);
      }
    }
  }

  void write_event(const Event& event) {
    const std::int64_t start_ns = nanoseconds(event.start_s);
    begin();
    format(R"("ph": "X", "pid": {}, "tid": {}, "ts": )", event.stage, thread_of(event));
    write_time(start_ns);
    text_ += ", \"dur\": ";
    write_time(nanoseconds(event.end_s) - start_ns);
    write_what(event);
    text_ += '}';
  }
  static int thread_of(const Event& event) {
    switch (event.kind) {
      case EventKind::send:
        return kFirstSend + event.peer_stage;
      case EventKind::gradient_sync:
      case EventKind::parameter_sync:
        return kCollectives;
      case EventKind::forward:
      case EventKind::backward:
      case EventKind::optimizer:
        break;
    }
    return kCompute;
  }
  void write_what(const Event& event) {
    switch (event.kind) {
      case EventKind::forward:
        return write_pass("forward", "F", event);
      case EventKind::backward:
        return write_pass("backward", "B", event);
      case EventKind::send:
        return write_pass("send", "send", event);
      case EventKind::gradient_sync:
        return format(R"(, "cat": "sync", "name": "gradients {}")", event.micro_batch);
      case EventKind::parameter_sync:
        text_ += R"(, "cat": "sync", "name": "parameters")";
        return;
      case EventKind::optimizer:
        text_ += R"(, "cat": "optimizer", "name": "optimizer")";
        return;
    }
  }
  void write_pass(std::string_view category, std::string_view name, const Event& event) {
    format(R"(, "cat": "{}", "name": "{} {}", "args": {{"micro_batch": {}, "chunk": {}}})",
           category, name, event.micro_batch, event.micro_batch, event.chunk);
  }

  const Plan& plan_;
  const Timeline& timeline_;
  std::string text_;
  bool first_ = true;
  std::vector<std::set<std::int32_t>> peers_;  ///< [stage]: to which it sends.
};

}  // namespace

std::string to_trace(const Plan& plan, const Timeline& timeline) {
  return TraceWriter(plan, timeline).write();
}

}  // namespace braid
