#include "braid/program/einsum_equation.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace braid {
namespace {

using Fail = std::function<void(const std::string& message)>;

constexpr std::string_view kDots = "...";
constexpr std::size_t kMostLeft = 26;  ///< Dimensions that an ellipsis stands for.
constexpr std::size_t kSigns = 128;

std::size_t index_of(char sign) { return static_cast<unsigned char>(sign); }

bool is_letter(char sign) { return (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z'); }

/// `letters` with the ellipsis written out as one sign for each of the `rank` dimensions left.
std::string written_out(const std::string& letters, std::size_t rank, const Fail& fail) {
  const std::size_t dots = letters.find(kDots);
  if (dots == std::string::npos) return letters;
  const std::size_t named = letters.size() - kDots.size();
  if (rank < named || rank - named > kMostLeft) {
    fail("the subscripts of its equation do not fit its operands");
  }
  std::string left;
  for (std::size_t d = rank - named; d > 0; --d) left += static_cast<char>(d);
  return letters.substr(0, dots) + left + letters.substr(dots + kDots.size());
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// How often each sign occurs in operands.
using Counts = std::array<int, kSigns>;

/// Notes the sizes of an operand's signs; 1 gives way to others.
void take_sizes(const std::string& signs, const Shape& shape, Counts& seen, Shape& sizes,
                const Fail& fail) {
  for (std::size_t d = 0; d < signs.size(); ++d) {
    if (!is_letter(signs[d]) && index_of(signs[d]) - 1 >= kMostLeft) {
      fail("its equation has other signs than letters");
    }
    const std::size_t sign = index_of(signs[d]);
    std::int64_t& known = sizes[sign];
    const bool is_first = seen[sign]++ == 0;
    if (is_first || known == 1) {
      known = shape[d];
    } else if (known != shape[d] && shape[d] != 1) {
      fail(fmt::format("one of its subscripts has the sizes {} and {}", known, shape[d]));
    }
  }
}

/// What an ellipsis stands for, then the letters that occur once.
std::string usual_output(const Counts& seen) {
  std::string output;
  for (std::size_t sign = kMostLeft; sign > 0; --sign) {
    if (seen[sign] > 0) output += static_cast<char>(sign);
  }
  for (std::size_t letter = 'A'; letter < seen.size(); ++letter) {
    if (seen[letter] == 1) output += static_cast<char>(letter);
  }
  return output;
}

}  // namespace

std::string EinsumEquation::signs() const {
  std::string all;
  for (const std::string& operand : operands) all += operand;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

EinsumEquation einsum_equation(std::string text, std::span<const Shape> shapes, const Fail& fail) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  EinsumEquation parsed{split_at_commas(text.substr(0, arrow)), "", Shape(kSigns, 0)};
  if (parsed.operands.size() != shapes.size()) {
    fail("its equation does not name as many operands as it has");
  }
  Counts seen{};
  std::size_t most_left = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::string& signs = parsed.operands[i];
    const std::size_t rank = shapes[i].size();
    if (signs.find(kDots) != std::string::npos && rank + kDots.size() > signs.size()) {
      most_left = std::max(most_left, rank + kDots.size() - signs.size());
    }
    signs = written_out(signs, rank, fail);
    if (signs.size() != rank) {
      fail(fmt::format("the subscripts of operand {} do not fit its shape {}", i,
                       shape_text(shapes[i])));
    }
    take_sizes(signs, shapes[i], seen, parsed.sizes, fail);
  }
  if (arrow != std::string::npos) {
    const std::string output = text.substr(arrow + 2);
    const bool has_dots = output.find(kDots) != std::string::npos;
    const std::size_t named = has_dots ? output.size() - kDots.size() : 0;
    parsed.output = written_out(output, named + most_left, fail);
  } else {
    parsed.output = usual_output(seen);
  }
  for (const char sign : parsed.output) {
    if (index_of(sign) >= seen.size() || seen[index_of(sign)] == 0) {
      fail("its output has a subscript that no operand has");
    }
  }
  return parsed;
}

}  // namespace braid
