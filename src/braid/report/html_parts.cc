#include "braid/report/html_parts.h"

#include <fmt/format.h>

namespace braid {
namespace {

constexpr const char* kStyle =
    R"(<meta name="viewport" content="width=device-width,initial-scale=1"><style>
:root{color-scheme:light dark;--text:#1c2733;--dim:#5a6b7d;--page:#fff;--box:#eef1f5;--line:#dde3ea}
@media(prefers-color-scheme:dark){:root{--text:#dfe6ee;--dim:#93a3b5;--page:#15191e;--box:#252c35;--line:#333c47}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page);max-width:1100px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.15em;margin:2em 0 .5em}
table{border-collapse:collapse}table.wide{width:100%}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid var(--line);vertical-align:top}
td:first-child,th:first-child,.wide th:nth-child(2),.wide th:last-child{text-align:left}table.figures td,table.figures th{padding:.2em .5em}table.figures td{white-space:nowrap}
td.layers{text-align:left;max-width:22em;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8em;margin:1.2em 0}
.cards div{background:var(--box);border-radius:6px;padding:.5em .8em}.cards b{display:block;font-size:1.25em}
.cards span{color:var(--dim);font-size:.87em}
.bar{display:flex;height:24px;border-radius:4px;overflow:hidden;background:var(--box)}
.keys{display:flex;flex-wrap:wrap;gap:.1em 1.4em;margin:.5em 0}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
.note{color:var(--dim)}svg{width:100%;background:var(--box);border-radius:4px;display:block}
svg text{font:12px sans-serif;fill:var(--text)}svg text.number{font-size:9px;fill:#fff;text-anchor:middle;pointer-events:none}svg text.dark{fill:#1c2733}svg text.figure{paint-order:stroke;stroke:var(--box);stroke-width:3px}li{overflow-wrap:anywhere}
.scroll{overflow-x:auto}.scroll+.scroll{margin-top:.6em}
@media(max-width:700px){.scroll>table{min-width:44em}.scroll>svg{min-width:50em}.scroll td.layers{min-width:9em}.scroll td .keys{min-width:13em}.note{overflow-wrap:anywhere}body{margin:1em auto}}
</style>
)";

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string page_head(const std::string& title) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" +
         escaped(title) + "</title>\n" + kStyle + "</head><body>\n";
}

std::string scrolled(const std::string& part) {
  return "<div class=\"scroll\">\n" + part + "</div>\n";
}

std::string legend(const std::vector<Share>& shares, std::string (*format)(double)) {
  std::string text = "<div class=\"keys\">";
  for (const Share& share : shares) {
    if (share.value <= 0) continue;
    text += fmt::format(R"(<span><i class="key" style="background:{}"></i>{} {}</span>)",
                        share.colour, share.name, format(share.value));
  }
  return text + "</div>\n";
}

std::string bar(const std::vector<Share>& shares, double whole) {
  std::string text = R"(<div class="bar">)";
  for (const Share& share : shares) {
    if (share.value <= 0 || whole <= 0) continue;
    text += fmt::format(R"(<div style="width:{:.3f}%;background:{}" title="{}"></div>)",
                        100 * share.value / whole, share.colour, share.name);
  }
  return text + "</div>\n";
}

std::vector<Share> time_shares(const Metrics& metrics) {
  return {
      {"compute", "#3572b0", metrics.compute_s}, {"recomputation", "#7fb0d8", metrics.recompute_s},
      {"TP", "#e08e3c", metrics.tp_comm_s},      {"CP", "#c9b037", metrics.cp_comm_s},
      {"EP", "#a0522d", metrics.ep_comm_s},      {"PP", "#8c6bb1", metrics.pp_comm_s},
      {"DP", "#c2528b", metrics.dp_comm_s},      {"host memory", "#777777", metrics.offload_s},
      {"bubble", "#cfd6de", metrics.bubble_s},   {"optimizer", "#4f9d69", metrics.optimizer_s}};
}

std::vector<Share> memory_shares(const MemoryBreakdown& memory) {
  return {{"weights", "#3572b0", memory.weights},
          {"gradients", "#7fb0d8", memory.gradients},
          {"optimizer state", "#4f9d69", memory.optimizer},
          {"activations", "#e08e3c", memory.activations},
          {"working space", "#c9b037", memory.working}};
}

}  // namespace braid
