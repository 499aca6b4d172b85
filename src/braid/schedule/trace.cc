#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/json.h"
#include "braid/plan/names.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

// Tracks of each process. Sends take one for each receiver, because links run side by side.
constexpr std::int64_t kCompute = 0;
constexpr std::int64_t kCollectives = 1;
constexpr std::int64_t kFirstSend = 2;

/// Nanoseconds, rounded alike for starts and ends so that neighbours still do not overlap.
std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e18;
  return std::llround(std::min(seconds * 1e9, kMost));
}

std::string quoted_json(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A pass that inputs come to: stage, whether backward, chunk, micro-batch.
using PassKey = std::tuple<std::int32_t, bool, std::int32_t, std::int64_t>;

bool is_gradient_pass(EventKind kind) {
  return kind == EventKind::backward || kind == EventKind::input_gradient;
}

/// For each event the number of the arrow at it, 0 for none: each pass has one to it from the
/// transfer that came last, which carries the same number.
std::vector<std::int64_t> arrows(const std::vector<Event>& events) {
  std::vector<std::pair<PassKey, std::size_t>> passes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const bool backward = is_gradient_pass(event.kind);
    if (event.kind == EventKind::forward || backward) {
      passes.push_back({{event.stage, backward, event.chunk, event.micro_batch}, i});
    }
  }
  std::sort(passes.begin(), passes.end());
  std::vector<std::int64_t> arrow_of(events.size(), 0);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.kind != EventKind::send) continue;
    const PassKey key{event.peer_stage, event.gradients, event.peer_chunk, event.peer_micro_batch};
    const auto found =
        std::lower_bound(passes.begin(), passes.end(), std::pair{key, std::size_t{0}});
    if (found == passes.end() || found->first != key) continue;
    // Viewers take events by start, and want an arrow's tail first.
    if (nanoseconds(event.start_s) >= nanoseconds(events[found->second].start_s)) continue;
    std::int64_t& arrow = arrow_of[found->second];
    if (arrow > 0) {
      const auto other = static_cast<std::size_t>(arrow - 1);
      if (events[other].end_s > event.end_s) continue;
      arrow_of[other] = 0;
    }
    arrow = arrow_of[i] = static_cast<std::int64_t>(i) + 1;
  }
  return arrow_of;
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

std::string stage_name(const Stage& stage, std::size_t index) {
  std::string text = fmt::format("stage {}: layers ", index + 1);
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    if (c > 0) text += " | ";
    text += layer_ranges(stage.chunks[c]);
  }
  text += fmt::format(" (dp {} x tp {} x cp {}", stage.dp, stage.tp, stage.cp);
  if (stage.own) text += fmt::format(", micro-batches of {}", stage.own->micro_batch);
  const std::string order = own_order_text(stage);
  if (!order.empty()) text += ", " + order;
  return text + ")";
}

struct TracedTimeline {
  const Timeline* timeline = nullptr;
  std::string prefix;  ///< Of its stages' names.
};

/// Text of a trace, event by event.
class TraceWriter {
 public:
  TraceWriter(const Plan& plan, std::vector<TracedTimeline> timelines)
      : plan_(plan), timelines_(std::move(timelines)) {}

  std::string write() {
    const Timeline& first = *timelines_.front().timeline;
    text_ += "{\"displayTimeUnit\": \"ms\",\n\"otherData\": {";
    format("\"program\": \"braid\", \"model\": {}, \"planner\": {}, \"iteration_time_s\": {}",
           quoted_json(plan_.model), quoted_json(plan_.planner), first.iteration_time_s);
    if (timelines_.size() > 1) {
      format(", \"measured_iteration_time_s\": {}", timelines_.back().timeline->iteration_time_s);
    }
    if (first.rounds > 1) format(", \"rounds\": {}", first.rounds);
    text_ += "},\n";
    text_ += "\"traceEvents\": [";
    for (number_ = 0; number_ < timelines_.size(); ++number_) write_timeline();
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  const Timeline& timeline() const { return *timelines_[number_].timeline; }

  void write_timeline() {
    const Timeline& timeline = this->timeline();
    text_.reserve(text_.size() + 512 + 200 * timeline.events.size());
    arrow_of_ = arrows(timeline.events);
    collect_peers();
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) write_names(s);
    for (std::size_t i = 0; i < timeline.events.size(); ++i) write_event(i);
    for (std::size_t s = 0; s < timeline.memory.size(); ++s) {
      for (const MemorySample& sample : timeline.memory[s]) {
        begin("C", s, kCompute);
        text_ += R"(, "cat": "memory", "name": "memory", "ts": )";
        write_time(nanoseconds(sample.time_s));
        format(R"(, "args": {{"GiB": {:.6f}}}}})", sample.bytes / 0x1p30);
      }
    }
    first_arrow_ += static_cast<std::int64_t>(timeline.events.size());
  }

  /// Of a stage in this timeline: from 0 on, those of a stage side by side.
  std::int64_t process_of(std::size_t stage) const {
    return static_cast<std::int64_t>(stage * timelines_.size() + number_);
  }

  template <typename... Args>
  void format(fmt::format_string<Args...> form, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Args>(args)...);
  }
  void begin(std::string_view phase, std::size_t stage, std::int64_t track) {
    const std::int64_t process = process_of(stage) + 1;
    const auto stages = static_cast<std::int64_t>(plan_.stages.size());
    const auto processes = stages * static_cast<std::int64_t>(timelines_.size());
    // Beyond the processes' numbers; a stage has at most one track for each other one and two more.
    const std::int64_t thread =
        track == kCompute ? process : processes + (process - 1) * (stages + 1) + track;
    text_ += first_ ? "\n{" : ",\n{";
    first_ = false;
    format(R"("ph": "{}", "pid": {}, "tid": {})", phase, process, thread);
  }
  void write_time(std::int64_t time_ns) { format("{}.{:03}", time_ns / 1000, time_ns % 1000); }

  void write_metadata(std::size_t stage, std::int64_t track, std::string_view key,
                      std::string_view field, const std::string& value) {
    begin("M", stage, track);
    format(R"(, "name": "{}", "args": {{"{}": {}}}}})", key, field, value);
  }
  void write_thread(std::size_t stage, std::int64_t track, const std::string& name) {
    write_metadata(stage, track, "thread_name", "name", quoted_json(name));
    write_metadata(stage, track, "thread_sort_index", "sort_index", fmt::format("{}", track));
  }
  void write_names(std::size_t stage) {
    const std::string name = timelines_[number_].prefix + stage_name(plan_.stages[stage], stage);
    write_metadata(stage, kCompute, "process_name", "name", quoted_json(name));
    write_metadata(stage, kCompute, "process_sort_index", "sort_index",
                   fmt::format("{}", process_of(stage)));
    write_thread(stage, kCompute, "compute");
    write_thread(stage, kCollectives, "collectives");
    for (const std::int32_t peer : peers_[stage]) {
      write_thread(stage, kFirstSend + peer, fmt::format("send to stage {}", peer + 1));
    }
  }
  void collect_peers() {
    peers_.assign(plan_.stages.size(), {});
    for (const Event& event : timeline().events) {
      if (event.kind == EventKind::send) {
        peers_[static_cast<std::size_t>(event.stage)].insert(event.peer_stage);
      }
    }
  }

  void write_event(std::size_t index) {
    const Event& event = timeline().events[index];
    const std::int64_t start_ns = nanoseconds(event.start_s);
    begin("X", static_cast<std::size_t>(event.stage), track_of(event));
    text_ += ", \"ts\": ";
    write_time(start_ns);
    text_ += ", \"dur\": ";
    write_time(nanoseconds(event.end_s) - start_ns);
    if (const std::int64_t arrow = arrow_of_[index]; arrow > 0) {
      format(R"(, "bind_id": {}, "{}": true)", first_arrow_ + arrow,
             event.kind == EventKind::send ? "flow_out" : "flow_in");
    }
    write_what(event);
    text_ += '}';
  }
  static std::int64_t track_of(const Event& event) {
    switch (event.kind) {
      case EventKind::send:
        return kFirstSend + event.peer_stage;
      case EventKind::gradient_sync:
      case EventKind::shared_gradient_sync:
      case EventKind::parameter_sync:
        return kCollectives;
      case EventKind::forward:
      case EventKind::backward:
      case EventKind::input_gradient:
      case EventKind::weight_gradient:
      case EventKind::optimizer:
        break;
    }
    return kCompute;
  }
  // The colours are those of chrome://tracing that are nearest to the report's. Perfetto colours by
  // the name without its digits, which comes to one colour a kind as well.
  void write_what(const Event& event) {
    switch (event.kind) {
      case EventKind::forward:
        return write_pass("forward", "rail_response", "F", event);
      case EventKind::backward:
        return write_pass("backward", "rail_idle", "B", event);
      case EventKind::input_gradient:
        return write_pass("input gradient", "rail_idle", "I", event);
      case EventKind::weight_gradient:
        return write_pass("weight gradient", "olive", "W", event);
      case EventKind::send:
        return write_pass("send", "detailed_memory_dump",
                          event.gradients ? "gradients" : "activations", event);
      case EventKind::gradient_sync:
        return write_kind("sync", "thread_state_uninterruptible",
                          fmt::format("gradient bucket {}", event.micro_batch));
      case EventKind::shared_gradient_sync:
        return write_kind("sync", "thread_state_uninterruptible", "shared gradients");
      case EventKind::parameter_sync:
        return write_kind("sync", "thread_state_uninterruptible", "parameters");
      case EventKind::optimizer:
        return write_kind("optimizer", "rail_load", "optimizer");
    }
  }
  void write_kind(std::string_view category, std::string_view colour, const std::string& name) {
    format(R"(, "cat": "{}", "cname": "{}", "name": "{}")", category, colour, name);
  }
  void write_pass(std::string_view category, std::string_view colour, std::string_view name,
                  const Event& event) {
    const bool chunked = plan_.stages[static_cast<std::size_t>(event.stage)].chunks.size() > 1;
    write_kind(category, colour,
               fmt::format("{} {}", name, event.micro_batch) +
                   (chunked ? fmt::format(" c{}", event.chunk) : ""));
    // chrome://tracing wants no key at both ends of an arrow.
    if (event.kind == EventKind::send) return;
    format(R"(, "args": {{"micro_batch": {}, "chunk": {})", event.micro_batch, event.chunk);
    if (timeline().rounds > 1) format(R"(, "round": {})", event.round);
    text_ += '}';
  }

  const Plan& plan_;
  std::vector<TracedTimeline> timelines_;
  std::size_t number_ = 0;                     ///< Of the timeline that is being written.
  std::int64_t first_arrow_ = 0;               ///< Behind those of the timelines before.
  std::vector<std::int64_t> arrow_of_;         ///< [event]
  std::vector<std::set<std::int32_t>> peers_;  ///< [stage]: to which it sends.
  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string to_trace(const Plan& plan, const Timeline& timeline) {
  return TraceWriter(plan, {{&timeline, ""}}).write();
}

std::string to_trace(const Plan& plan, const Timeline& predicted, const Timeline& measured) {
  return TraceWriter(plan, {{&predicted, "predicted, "}, {&measured, "measured, "}}).write();
}

}  // namespace braid
