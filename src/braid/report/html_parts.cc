#include "braid/report/html_parts.h"

#include <cassert>
#include <string_view>

#include <fmt/format.h>

#include "braid/base/embedded_file.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/report/terms.h"

namespace braid {

std::span<const EmbeddedFile> embedded_page_files();  // Made by the build (cmake/embed.cmake).

namespace {

/// The text of an embedded file of the page.
std::string_view page_file(std::string_view file) {
  for (const EmbeddedFile& found : embedded_page_files()) {
    if (found.file == file) return found.text;
  }
  return {};
}

// Of the parts of the time and of the memory, in the order of terms.h.
constexpr const char* kTimeColours[] = {"#3572b0", "#7fb0d8", "#e08e3c", "#c9b037", "#a0522d",
                                        "#8c6bb1", "#c2528b", "#aab4bf", "#777777", "#4f9d69"};
constexpr const char* kMemoryColours[] = {"#3572b0", "#7fb0d8", "#4f9d69", "#e08e3c", "#c9b037"};

template <std::size_t kCount>
std::vector<Share> shares_of(const std::vector<std::pair<std::string, double>>& terms,
                             const char* const (&colours)[kCount]) {
  assert(terms.size() == kCount);
  std::vector<Share> shares;
  shares.reserve(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    shares.push_back({terms[i].first, colours[i], terms[i].second});
  }
  return shares;
}

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
         escaped(title) +
         "</title>\n<meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\"><style>\n" +
         std::string(page_file("page.css")) + "</style>\n</head><body>\n";
}

std::string page_end() {
  std::string text =
      "<footer>Made by braid. Charts are drawn by D3; its licence and the versions of its modules "
      "are in the source of this page.</footer>\n<script>\n/*\n";
  text += page_file("licence.txt");
  text += "*/\n";
  // Its modules extend each other; charts come last.
  for (const EmbeddedFile& file : embedded_page_files()) {
    if (file.file.ends_with(".min.js")) text += std::string(file.text) + "\n";
  }
  text += page_file("charts.js");
  return text + "</script>\n</body></html>\n";
}

std::string notes_part(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "<p class=\"warning\">" + escaped(note) + "</p>\n";
  return text;
}

std::string section(const std::string& heading, const std::string& body) {
  return body.empty() ? "" : "<h2>" + escaped(heading) + "</h2>\n" + body;
}

std::string scrolled(const std::string& part) {
  return "<div class=\"scroll\">\n" + part + "</div>\n";
}

std::string legend(const std::vector<Share>& shares, std::string (*format)(double)) {
  return legend(shares, format, 0);
}

std::string legend(const std::vector<Share>& shares, std::string (*format)(double), double whole) {
  std::string text = "<div class=\"keys\">";
  for (const Share& share : shares) {
    if (share.value <= kRoundingShare * whole) continue;  // Nothing, or what rounding left of it.
    text += fmt::format(R"(<span><i class="key" style="background:{}"></i>{} {}{}</span>)",
                        share.colour, share.name, format(share.value),
                        whole > 0 ? fmt::format(", {:.1f} %", 100 * share.value / whole) : "");
  }
  return text + "</div>\n";
}

std::string bar(const std::vector<Share>& shares, double whole) {
  return bar(shares, whole, whole);
}

std::string bar(const std::vector<Share>& shares, double whole, double limit) {
  std::string text = R"(<div class="bar">)";
  for (const Share& share : shares) {
    if (share.value <= 0 || whole <= 0) continue;
    text += fmt::format(R"(<div style="width:{:.3f}%;background:{}" title="{}"></div>)",
                        100 * share.value / whole, share.colour, share.name);
  }
  if (limit < whole) {
    text += fmt::format(R"(<i class="end" style="left:{:.3f}%" title="usable"></i>)",
                        100 * limit / whole);
  }
  return text + "</div>\n";
}

std::vector<Share> time_shares(const Metrics& metrics) {
  return shares_of(time_terms(metrics), kTimeColours);
}

std::vector<Share> memory_shares(const MemoryBreakdown& memory) {
  return shares_of(memory_terms(memory), kMemoryColours);
}

std::string seconds_text(double seconds) { return fmt::format("{} s", four_figures(seconds)); }

std::string gib_text(double bytes) { return fmt::format("{} GiB", four_figures(bytes / kGiB)); }

}  // namespace braid
