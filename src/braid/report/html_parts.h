#pragma once

#include <string>
#include <vector>

#include "braid/plan/outcome.h"

namespace braid {

// What braid's HTML pages are made of: they need nothing but themselves.

/// The text with the characters that mean something in HTML replaced, for content and attributes.
std::string escaped(const std::string& text);

/// Everything up to and with <body>, with the style of all pages. The title is escaped.
std::string page_head(const std::string& title);

/// What ends every page: the charting library (D3, with its licence) and what draws its charts
/// (html_chart.h).
std::string page_end();

/// What a reader has to know before the figures, a paragraph each; escaped. Empty without notes.
std::string notes_part(const std::vector<std::string>& notes);

/// A part of a page below a heading of its own; nothing where the body is empty.
std::string section(const std::string& heading, const std::string& body);

/// A table that scrolls sideways where the window is narrow, so that the page does not.
std::string scrolled(const std::string& part);

/// A part of a whole, such as the seconds of an iteration in which a stage computes.
struct Share {
  std::string name;
  const char* colour;
  double value;
};

/// What the iteration time and a stage's memory are made of, in the words of terms.h.
std::vector<Share> time_shares(const Metrics& metrics);
std::vector<Share> memory_shares(const MemoryBreakdown& memory);

/// One coloured bar; `whole` fills it. Shares that are not positive are left out.
std::string bar(const std::vector<Share>& shares, double whole);

/// The same with a line at `limit` where that is less than the whole.
std::string bar(const std::vector<Share>& shares, double whole, double limit);

/// Names and values of the shares that are positive.
std::string legend(const std::vector<Share>& shares, std::string (*format)(double));

/// The same with each one's percentage of the whole behind its value.
std::string legend(const std::vector<Share>& shares, std::string (*format)(double), double whole);

// Figures as the terminal's reports have them: four digits and one unit.
std::string seconds_text(double seconds);
std::string gib_text(double bytes);

}  // namespace braid
