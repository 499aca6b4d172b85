#include "braid/report/html_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/rounding.h"
#include "braid/plan/names.h"
#include "braid/plan/stage_context.h"
#include "braid/report/heading.h"
#include "braid/report/html_chart.h"
#include "braid/report/html_lane.h"
#include "braid/report/html_parts.h"
#include "braid/report/html_stage_graph.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::size_t kMostRows = 32;  ///< Stages drawn.
// Of more passes of all stages the first and the last are drawn, of more transfers none, of more
// layers no names: a page stays below a megabyte and a half.
constexpr std::size_t kMostPasses = 60'000, kMostTransfers = 60'000, kMostNames = 2'000;
constexpr std::size_t kMostSamples = 60'000;  ///< Of memory, of all stages.
constexpr double kTicks = 4e6;                ///< Of the whole timeline.

/// Stages that are drawn, in order: all, or the first and last.
std::vector<std::size_t> drawn_stages(std::size_t stages) {
  std::vector<std::size_t> drawn;
  for (std::size_t s = 0; s < stages; ++s) {
    if (stages <= kMostRows || s < kMostRows / 2 || s >= stages - kMostRows / 2) drawn.push_back(s);
  }
  return drawn;
}

bool is_pass(const Event& event) {
  return event.kind == EventKind::forward || event.kind == EventKind::backward ||
         event.kind == EventKind::input_gradient || event.kind == EventKind::weight_gradient ||
         event.kind == EventKind::optimizer;
}

std::string key(const char* colour, const char* name) {
  return fmt::format(R"key(<span><i class="key" style="background:var(--{})"></i>{}</span>)key",
                     colour, name);
}

/// Which colour is what, of those that the timeline has. `sends`: they are drawn.
std::string keys_of(const Timeline& timeline, bool chunked, bool sends) {
  const auto has = [&](EventKind kind) {
    return std::any_of(timeline.events.begin(), timeline.events.end(),
                       [kind](const Event& event) { return event.kind == kind; });
  };
  std::string text = "<div class=\"keys\">" + key("forward", "forward");
  if (has(EventKind::backward)) text += key("backward", "backward");
  if (has(EventKind::input_gradient)) {
    text += key("backward", "input gradients") + key("weight", "weight gradients");
  }
  if (has(EventKind::optimizer)) text += key("optimizer", "optimizer");
  if (sends) text += key("send", "sending");
  if (has(EventKind::gradient_sync) || has(EventKind::parameter_sync) ||
      has(EventKind::shared_gradient_sync)) {
    text += key("sync", "collectives of gradients and parameters");
  }
  if (chunked) text += "<span>lighter: every second chunk</span>";
  if (timeline.rounds > 1) text += "<span>lighter: every second round</span>";
  return text + "</div>\n";
}

/// From when until when passes are left out; of the whole iteration nothing.
std::optional<std::pair<double, double>> omitted_of(const Timeline& timeline,
                                                    const std::vector<std::size_t>& row_of,
                                                    std::size_t rows) {
  std::vector<std::vector<const Event*>> passes(rows);
  std::size_t all = 0;
  for (const Event& event : timeline.events) {
    const std::size_t row = row_of[static_cast<std::size_t>(event.stage)];
    if (row >= rows || !is_pass(event)) continue;
    passes[row].push_back(&event);
    ++all;
  }
  if (all <= kMostPasses) return std::nullopt;
  const std::size_t most = kMostPasses / rows / 2;
  double first_s = timeline.end_s;
  double last_s = 0;
  for (const std::vector<const Event*>& row : passes) {
    if (row.size() <= 2 * most) continue;
    first_s = std::min(first_s, row[most]->start_s);
    last_s = std::max(last_s, row[row.size() - 1 - most]->end_s);
  }
  if (first_s >= last_s) return std::nullopt;
  return std::pair(first_s, last_s);
}

Json parts_of(const PassTime& time) {
  return {time.compute_s, time.tp_comm_s, time.cp_comm_s, time.ep_comm_s, time.offload_s};
}

/// What the passes of each chunk are made of: for every run of layers that cost the same the first
/// one, how many, and which of "costs".
Json layers_of(const Plan& plan, const std::vector<std::size_t>& drawn) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> numbers;
  Json costs = Json::array();
  Json stages = Json::array();
  const auto cost_of = [&](std::int32_t layer, std::int32_t option) {
    const std::int32_t kind = plan.profile.layers[static_cast<std::size_t>(layer)].kind;
    const auto [found, is_new] = numbers.try_emplace({kind, option}, numbers.size());
    if (is_new) {
      const LayerCost& cost =
          options_of(plan.profile, layer)[static_cast<std::size_t>(option)].cost;
      costs.push_back({parts_of(cost.forward), parts_of(cost.recompute),
                       parts_of(cost.backward_input), parts_of(cost.backward_weight)});
    }
    return found->second;
  };
  for (const std::size_t s : drawn) {
    Json chunks = Json::array();
    for (const Chunk& chunk : plan.stages[s].chunks) {
      Json runs = Json::array();
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const std::size_t cost = cost_of(chunk.layers[i], chunk.options[i]);
        if (!runs.empty() && runs.back()[2] == cost &&
            runs.back()[0].get<std::int32_t>() + runs.back()[1].get<std::int32_t>() ==
                chunk.layers[i]) {
          runs.back()[1] = runs.back()[1].get<std::int32_t>() + 1;
        } else {
          runs.push_back({chunk.layers[i], 1, cost});
        }
      }
      chunks.push_back(std::move(runs));
    }
    stages.push_back(std::move(chunks));
  }
  Json names = Json::array();
  if (plan.profile.layers.size() <= kMostNames) {
    for (const ProfileLayer& layer : plan.profile.layers) names.push_back(layer.name);
  }
  return {{"names", std::move(names)}, {"costs", std::move(costs)}, {"stages", std::move(stages)}};
}

/// Which events a page draws.
struct DrawnPart {
  std::vector<std::size_t> stages;  ///< In order.
  std::vector<std::size_t> row_of;  ///< [stage]; at least stages.size() where it is not drawn.
  std::optional<std::pair<double, double>> omitted_s;  ///< From when until when none are.
  std::size_t sends = 0;                               ///< In the rest.

  bool has(const Event& event) const {
    return row_of[static_cast<std::size_t>(event.stage)] < stages.size() &&
           event.end_s > event.start_s &&
           (!omitted_s || event.end_s <= omitted_s->first || event.start_s >= omitted_s->second);
  }
  bool has_sends() const { return sends > 0 && sends <= kMostTransfers; }
};

DrawnPart drawn_part(const Plan& plan, const Timeline& timeline) {
  DrawnPart part;
  part.stages = drawn_stages(plan.stages.size());
  part.row_of.assign(plan.stages.size(), plan.stages.size());
  for (std::size_t r = 0; r < part.stages.size(); ++r) part.row_of[part.stages[r]] = r;
  part.omitted_s = omitted_of(timeline, part.row_of, part.stages.size());
  part.sends = static_cast<std::size_t>(std::count_if(
      timeline.events.begin(), timeline.events.end(),
      [&](const Event& event) { return event.kind == EventKind::send && part.has(event); }));
  return part;
}

/// What the script of the page draws the passes from. Its axis ends with the timeline.
Json passes_json(const Plan& plan, const Timeline& timeline, const DrawnPart& part) {
  const std::vector<std::size_t>& drawn = part.stages;
  const double tick_s = timeline.end_s / kTicks;
  std::vector<LaneWriter> passes(drawn.size(), LaneWriter(tick_s));
  std::vector<LaneWriter> transfers(drawn.size(), LaneWriter(tick_s));
  for (const Event& event : timeline.events) {
    if (!part.has(event) || (event.kind == EventKind::send && !part.has_sends())) continue;
    const std::size_t row = part.row_of[static_cast<std::size_t>(event.stage)];
    (is_pass(event) ? passes : transfers)[row].add(event);
  }
  Json json = Json::object();
  json["end_s"] = timeline.end_s;
  json["tick_s"] = tick_s;
  json["rounds"] = timeline.rounds;
  json["chunks"] = plan.parallel.vp;
  json["sends_left_out"] = part.has_sends() ? 0 : part.sends;
  if (part.omitted_s) json["omitted_s"] = {part.omitted_s->first, part.omitted_s->second};
  const StageGraphDrawing graph = stage_graph_drawing(plan, drawn);
  json["edges"] = graph.edges;
  json["stages"] = Json::array();
  for (std::size_t r = 0; r < drawn.size(); ++r) {
    json["stages"].push_back({{"stage", drawn[r] + 1},
                              {"lane", graph.lanes[r]},
                              {"title", graph.titles[r]},
                              {"passes", passes[r].json()},
                              {"transfers", transfers[r].json()}});
  }
  json["layers"] = layers_of(plan, drawn);
  return json;
}

/// Samples of a stage's memory; of many the largest of each of `most` equal stretches of time.
Json samples_json(const std::vector<MemorySample>& samples, double end_s, std::size_t most) {
  std::map<double, std::size_t> numbers;
  Json levels = Json::array();
  Json steps = Json::array();
  const auto add = [&](std::int64_t at, double bytes) {
    const auto [found, is_new] = numbers.try_emplace(bytes, numbers.size());
    if (is_new) levels.push_back(bytes);
    if (!steps.empty() && steps.back() == found->second) return;
    steps.push_back(at);
    steps.push_back(found->second);
  };
  constexpr std::int64_t kSteps = 1 << 20;
  const std::int64_t bins = samples.size() <= most ? kSteps : static_cast<std::int64_t>(most);
  const auto bin_of = [&](double time_s) {
    return std::min(bins - 1,
                    static_cast<std::int64_t>(time_s / end_s * static_cast<double>(bins)));
  };
  double level = 0;
  for (std::size_t i = 0; i < samples.size();) {
    const std::int64_t bin = bin_of(samples[i].time_s);
    double highest = i > 0 && bins < kSteps ? level : 0;
    for (; i < samples.size() && bin_of(samples[i].time_s) == bin; ++i) {
      level = samples[i].bytes;
      highest = std::max(highest, level);
    }
    add(bin, highest);
    // What the stretch ends with holds until the next sample.
    if (highest != level && i < samples.size() && bin_of(samples[i].time_s) > bin + 1) {
      add(bin + 1, level);
    }
    if (i == samples.size() && highest != level) add(std::min(bin + 1, bins), level);
  }
  return {{"parts", bins}, {"levels", std::move(levels)}, {"steps", std::move(steps)}};
}

double peak_of(const std::vector<MemorySample>& samples) {
  double peak = 0;
  for (const MemorySample& sample : samples) peak = std::max(peak, sample.bytes);
  return peak;
}

Json memory_json(const Plan& plan, const Timeline& timeline,
                 const std::vector<std::size_t>& drawn) {
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  Json json = Json::object();
  json["end_s"] = timeline.end_s;
  std::size_t tightest = drawn.front();
  json["stages"] = Json::array();
  for (const std::size_t s : drawn) {
    if (peak_of(timeline.memory[s]) > peak_of(timeline.memory[tightest])) tightest = s;
    Json kinds = Json::array();
    for (const Share& share : memory_shares(memories[s])) {
      kinds.push_back({share.name, share.colour, share.value});
    }
    json["stages"].push_back({{"stage", s + 1},
                              {"usable_bytes", usable_bytes_of_stage(plan, s)},
                              {"peak_bytes", peak_of(timeline.memory[s])},
                              {"kinds", std::move(kinds)},
                              {"samples", samples_json(timeline.memory[s], timeline.end_s,
                                                       kMostSamples / drawn.size() / 2)}});
  }
  json["shown"] = tightest + 1;
  return json;
}

/// What is drawn, in words.
std::string drawn_text(const Plan& plan, const Timeline& timeline, std::size_t rows,
                       const std::optional<std::pair<double, double>>& omitted) {
  std::string text =
      timeline.rounds > 1
          ? fmt::format(
                "{} rounds that follow each other without a flush, {} in all, of which "
                "each takes {} in the long run",
                timeline.rounds, seconds_text(timeline.end_s),
                seconds_text(timeline.iteration_time_s))
          : "the whole iteration of " + seconds_text(timeline.iteration_time_s);
  if (omitted) {
    text = fmt::format("the first {} and the last {} of {}", seconds_text(omitted->first),
                       seconds_text(timeline.end_s - omitted->second), text);
  }
  if (rows < plan.stages.size()) {
    text += fmt::format("; the first and last {} of {} stages", kMostRows / 2, plan.stages.size());
  }
  return text;
}

/// Why stages with chunks that differ hold less than the plan counts, if they do.
std::string counted_text(const Plan& plan, const Timeline& timeline) {
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  double less = 0;
  for (std::size_t s = 0; s < memories.size(); ++s) {
    less = std::max(less, memories[s].device_total() - peak_of(timeline.memory[s]));
  }
  if (plan.parallel.vp == 1 || less < kNoGap * memories.front().device_total()) return "";
  return " The plan counts each chunk of a stage as its largest, which is up to " + gib_text(less) +
         " more.";
}

/// The timeline and what to know of it.
std::string passes_chart(const Plan& plan, const Timeline& timeline) {
  const DrawnPart part = drawn_part(plan, timeline);
  const std::size_t rows = part.stages.size();
  return "<p class=\"note\">A row for each stage's first device: its passes, numbered by "
         "micro-batch, above what it sends and sums; " +
         drawn_text(plan, timeline, rows, part.omitted_s) +
         (rows > 1 ? ". On the left, which stage hands over to which.</p>\n" : ".</p>\n") +
         keys_of(timeline, plan.parallel.vp > 1, part.has_sends()) +
         chart("timeline", passes_json(plan, timeline, part));
}

/// Timeline, memory and what to know of both.
std::string charts(const Plan& plan, const Timeline& timeline) {
  if (!(timeline.end_s > 0)) return "";
  const std::vector<std::size_t> drawn = drawn_stages(plan.stages.size());
  const std::string memory = "<p class=\"note\">Of a stage's first device, by kind." +
                             counted_text(plan, timeline) + "</p>\n" +
                             chart("memory", memory_json(plan, timeline, drawn));
  return section("Timeline", passes_chart(plan, timeline)) + section("Memory over time", memory);
}

}  // namespace

std::string timeline_section(const Plan& plan) {
  Timeline timeline;
  try {
    timeline = simulate(plan);
  } catch (const Error&) {
    return section("Timeline",
                   "<p class=\"note\">The iteration has too many passes to be drawn.</p>\n");
  }
  return charts(plan, timeline);
}

std::string timeline_page(const Plan& plan, const std::vector<std::string>& notes) {
  const Metrics metrics = measure(plan);
  return page_head(plan.model + ", timeline") +
         fmt::format(
             "<h1>{} on {}</h1>\n<p class=\"note\">{} an iteration, of which {} bubble in the "
             "busiest stage; {} devices "
             "in {} stages, {}, schedule {}</p>\n",
             escaped(plan.model), escaped(plan.system.name), seconds_text(metrics.iteration_time_s),
             seconds_text(metrics.bubble_s), devices_used(plan), plan.stages.size(),
             escaped(planner_words(plan)), schedule_text(plan)) +
         notes_part(notes) + timeline_section(plan) + page_end();
}

std::string timeline_page(const DrawnOrder& drawn, const std::string& schedule,
                          const std::vector<std::string>& notes) {
  const Plan& plan = drawn.plan;
  const PlanOrder& order = drawn.order;
  return page_head(plan.model + ", " + schedule) +
         fmt::format(
             "<h1>{} on {}</h1>\n<p class=\"note\">{} an iteration by {} in place of the plan's "
             "own "
             "schedule, of which the busiest device idles {}; at most {} in stage {}; {} devices "
             "in "
             "{} stages, {}</p>\n",
             escaped(plan.model), escaped(plan.system.name), seconds_text(order.iteration_time_s),
             schedule, seconds_text(order.idle_s), gib_text(order.peak_memory_bytes),
             order.tightest_stage + 1, devices_used(plan), plan.stages.size(),
             escaped(planner_words(plan))) +
         notes_part(notes) + charts(plan, drawn.timeline) + page_end();
}

std::string measured_page(const Plan& plan, Timeline predicted, Timeline measured,
                          const std::vector<std::string>& notes) {
  const double predicted_s = predicted.iteration_time_s, measured_s = measured.iteration_time_s;
  // One scale for both: they are zoomed together.
  predicted.end_s = measured.end_s = std::max(predicted.end_s, measured.end_s);
  return page_head(plan.model + ", predicted and measured") +
         fmt::format(
             "<h1>{}: predicted for {}, and measured</h1>\n<p class=\"note\">{} an iteration "
             "predicted, {} measured; {} devices in {} stages, {}, schedule {}</p>\n",
             escaped(plan.model), escaped(plan.system.name), seconds_text(predicted_s),
             seconds_text(measured_s), devices_used(plan), plan.stages.size(),
             escaped(planner_words(plan)), schedule_text(plan)) +
         notes_part(notes) + section("Predicted", passes_chart(plan, predicted)) +
         section("Measured", passes_chart(plan, measured)) + page_end();
}

}  // namespace braid
