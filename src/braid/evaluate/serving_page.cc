#include "braid/evaluate/serving_page.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/evaluate/service_evaluation.h"
#include "braid/report/html_chart.h"
#include "braid/report/html_parts.h"
#include "braid/serve/stated_times.h"

namespace braid {
namespace {

std::string milliseconds(double seconds) {
  return fmt::format("{} ms", four_figures(1e3 * seconds));
}

std::string worker_name(const ServingLayout& layout, std::int64_t draft_tokens) {
  return layout_text(layout) + (draft_tokens > 0 ? fmt::format(", drafts {}", draft_tokens) : "");
}

using PageRows = std::vector<std::vector<std::string>>;

/// The first column has names, the others figures.
std::string page_table(const PageRows& rows) {
  std::string text = "<table class=\"wide figures\">\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const char* tag = r == 0 ? "th" : "td";
    text += "<tr>";
    for (const std::string& cell : rows[r]) {
      text += fmt::format("<{}>{}</{}>", tag, escaped(cell), tag);
    }
    text += "</tr>\n";
  }
  return scrolled(text + "</table>\n");
}

std::string cards(const ServingPlan& plan, const ServingJob& job) {
  const ServingIntervals sure = intervals_of(plan, job);
  const auto range = [](double time_s, const ErrorInterval& interval) {
    return fmt::format("80 % of services {} to {}", milliseconds(time_s * interval.low),
                       milliseconds(time_s * interval.high));
  };
  const auto card = [](const std::string& figure, const std::string& name) {
    return "<div><b>" + escaped(figure) + "</b><span>" + escaped(name) + "</span></div>\n";
  };
  const double each = plan.requests_per_s_per_device();
  return "<div class=\"cards\">\n" +
         card(four_figures(plan.requests_per_s), "requests/s within both targets") +
         card(four_figures(each), "requests/s a GPU") +
         card(four_figures(each * job.output_tokens), "output tokens/s a GPU") +
         card(std::to_string(plan.devices), "GPUs") +
         card(milliseconds(plan.ttft_s),
              "to the first token (TTFT); " + range(plan.ttft_s, sure.ttft)) +
         card(milliseconds(plan.tpot_s),
              "for each later one (TPOT); " + range(plan.tpot_s, sure.tpot)) +
         "</div>\n";
}

std::string workers_part(const ServingPlan& plan) {
  PageRows rows = {{"workers", "number", "GPUs each", "sequences", "chunk"}};
  const auto add = [&](const char* role, const WorkerPlan& of) {
    rows.push_back({fmt::format("{}: {}", role, worker_name(of.layout, of.draft_tokens)),
                    std::to_string(of.workers), std::to_string(of.layout.devices()),
                    fmt::format("{:.0f}", of.limits.sequences),
                    fmt::format("{:.0f}", of.limits.chunk_tokens)});
  };
  if (plan.disaggregated) add("prefill", plan.prefill);
  add(plan.disaggregated ? "decode" : "aggregated", plan.decode);
  return section("Workers", page_table(rows));
}

Json point_json(const ServingPoint& point, int group, bool best) {
  return {{"x", {1e3 * point.tpot_s}},
          {"y", point.tokens_per_s_per_device},
          {"group", group},
          {"best", best},
          {"text", fmt::format("{}, {:.0f} sequences: TPOT {}, TTFT {}, {} tokens/s a GPU",
                               worker_name(point.layout, point.draft_tokens), point.sequences,
                               milliseconds(point.tpot_s), milliseconds(point.ttft_s),
                               four_figures(point.tokens_per_s_per_device))}};
}

std::string front_chart(const ServingOutcome& outcome, const ServingJob& job) {
  constexpr int kOther = 0, kPlanned = 1;
  const ServingPlan& plan = *outcome.plan;
  Json points = Json::array();
  const auto same = [](const ServingPoint& a, const ServingPoint& b) {
    return a.layout == b.layout && a.sequences == b.sequences && a.draft_tokens == b.draft_tokens;
  };
  for (const ServingPoint& point : outcome.points) {
    const bool best = std::any_of(outcome.front.begin(), outcome.front.end(),
                                  [&](const ServingPoint& each) { return same(each, point); });
    points.push_back(point_json(point, kOther, best));
  }
  const double tokens = plan.requests_per_s_per_device() * job.output_tokens;
  points.push_back(point_json({plan.tpot_s, plan.ttft_s, tokens, plan.decode.layout,
                               plan.decode.limits.sequences, plan.decode.draft_tokens},
                              kPlanned, true));
  if (plan.disaggregated) {
    points.back()["text"] =
        fmt::format("prefill and decode workers: TPOT {}, TTFT {}, {} tokens/s a GPU",
                    milliseconds(plan.tpot_s), milliseconds(plan.ttft_s), four_figures(tokens));
  }
  const std::string title = "Time per token against tokens a second";
  Json data = Json::object();
  data["title"] = title;
  data["x"] = Json::array({{{"name", "time per token"}, {"unit", "ms"}}});
  data["y"] = {{"name", "output of a GPU"}, {"unit", "tokens/s"}};
  data["front"] = {{"best", "Pareto-optimal in both"},
                   {"line", "the most tokens a second up to each time"}};
  data["limit"] = {{"x", 1e3 * job.tpot_s}, {"name", "target"}};
  data["groups"] = {"aggregated workers",
                    plan.disaggregated ? "the planned service" : "the planned worker"};
  data["points"] = std::move(points);
  return section(
      title,
      "<p class=\"note\">A mark for each layout of aggregated workers and number of sequences at "
      "once, of the plan's engine and precision, with the engine's own chunk.</p>\n" +
          chart("scatter", data));
}

std::string memory_bar(const std::string& name, const WorkerPlan& of, const ServingJob& job) {
  const WorkerRoom room = worker_room(of, job);
  const WorkerMemory& memory = room.memory;
  const double groups = static_cast<double>(of.layout.dp);
  const double used =
      std::min(memory.room_bytes, room.request_bytes * of.limits.sequences / groups);
  const double whole = job.system->groups.front().chip.memory.bytes;
  const double engine = memory.weights_bytes + memory.activation_bytes + memory.graph_bytes;
  const std::vector<Share> shares = {
      {"weights", "#3572b0", memory.weights_bytes},
      {"activations", "#e08e3c", memory.activation_bytes},
      {"captured graphs", "#c9b037", memory.graph_bytes},
      {"caches of its sequences", "#4f9d69", used},
      {"room for more", "#a8d5ba", memory.room_bytes - used},
      {"not the engine's", "#7f8c99", whole - engine - memory.room_bytes}};
  return fmt::format("<h3>{}</h3>\n{}{}", escaped(name), bar(shares, whole),
                     legend(shares, gib_text)) +
         fmt::format(
             "<p class=\"note\">The cache of a request takes {} on average; {:.0f} requests "
             "fit.</p>\n",
             gib_text(room.request_bytes), room.held);
}

std::string memory_part(const ServingPlan& plan, const ServingJob& job) {
  std::string text;
  if (plan.disaggregated) text += memory_bar("Prefill workers", plan.prefill, job);
  text += memory_bar(plan.disaggregated ? "Decode workers" : "Workers", plan.decode, job);
  return section("Memory of a GPU", text);
}

std::string front_table(const ServingOutcome& outcome) {
  PageRows rows = {{"worker", "TPOT", "TTFT", "tokens/s/GPU", "sequences"}};
  for (const ServingPoint& point : outcome.front) {
    rows.push_back({worker_name(point.layout, point.draft_tokens), milliseconds(point.tpot_s),
                    milliseconds(point.ttft_s), four_figures(point.tokens_per_s_per_device),
                    fmt::format("{:.0f}", point.sequences)});
  }
  return section("Pareto-optimal aggregated workers, with the engine's own chunk",
                 rows.size() > 1 ? page_table(rows) : "");
}

}  // namespace

std::string serving_page(const ServingOutcome& outcome, const ServingJob& job,
                         const std::string& cluster, const std::vector<std::string>& notes) {
  const ServingPlan& plan = *outcome.plan;
  const WorkerPlan& decode = plan.decode;
  const std::string title = fmt::format("{} served by {} in {}", job.model->name,
                                        decode.engine->name, decode.format.name);
  std::string page = page_head(title) + "<h1>" + escaped(title) + "</h1>\n";
  page +=
      "<p>" +
      escaped(fmt::format(
          "On {}: requests of {:.0f} input and {:.0f} output tokens, the first token within {}, "
          "each later one within {}. {} of {} kinds of workers, caches in {}.",
          cluster, job.input_tokens, job.output_tokens, milliseconds(job.ttft_s),
          milliseconds(job.tpot_s), outcome.proven ? "The best" : "The best that was found",
          outcome.options, decode.format.cache)) +
      "</p>\n" + notes_part(notes);
  page += cards(plan, job) + workers_part(plan) + front_chart(outcome, job) +
          memory_part(plan, job) + front_table(outcome);
  return page + page_end();
}

}  // namespace braid
