#include "braid/trainers/exchange/stage_layout.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

constexpr std::int64_t kMost = 1 << 16;

class LayoutReader {
 public:
  LayoutReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<std::int64_t> read() {
    const std::string all = expanded(0);
    if (at_ != text_.size()) fail();
    // All layers count where there are predictions, which are one layer together.
    const bool predicts = all.find('m') != std::string::npos;
    std::vector<std::int64_t> layers(1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const char c = all[i];
      if (c == '|') {
        layers.push_back(0);
        continue;
      }
      const bool at_ends = c == 'E' || c == 'L';
      if (!at_ends && c != 't' && c != 'm') fail();
      const bool follows = c == 'm' && i > 0 && all[i - 1] == 'm';
      if (!follows && (!at_ends || predicts)) ++layers.back();
    }
    return layers;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(Where{file_, 0, "--pipeline-model-parallel-layout"},
                in_quotes(text_) + " cannot be read", "write it as 'Et*3|(tt|)*6t*3L'");
  }

  /// The text up to a closing bracket or the end, without repetitions.
  std::string expanded(int depth) {
    constexpr int kMostNesting = 20;
    if (depth > kMostNesting) fail();
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::string part;
      const char c = text_[at_++];
      if (c == ' ' || c == ',') continue;
      if (c == '(') {
        part = expanded(depth + 1);
        if (at_ == text_.size()) fail();
        ++at_;
      } else {
        part = c;
      }
      const std::int64_t times = repetitions();
      if (std::ssize(all) + times * std::ssize(part) > kMost) fail();
      for (std::int64_t i = 0; i < times; ++i) all += part;
    }
    return all;
  }

  std::int64_t repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    std::int64_t times = 0;
    for (++at_; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
         ++at_) {
      times = std::min(kMost, 10 * times + (text_[at_] - '0'));
    }
    return times;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::int64_t> blocks_of_layout(const std::string& layout, const std::string& file) {
  return LayoutReader(layout, file).read();
}

std::vector<std::int64_t> layers_of_pattern(const std::string& pattern) {
  std::vector<std::int64_t> layers(1);
  for (const char c : pattern.substr(0, pattern.find('/'))) {
    if (c == '|') {
      layers.push_back(0);
    } else {
      ++layers.back();
    }
  }
  return layers;
}

std::string hybrid_pattern(const Plan& plan) {
  std::string text;
  std::size_t at = 0;
  for (const std::int64_t blocks : count_blocks(plan).per_chunk) {
    text += plan.shape->layer_pattern.substr(at, static_cast<std::size_t>(blocks)) + "|";
    at += static_cast<std::size_t>(blocks);
  }
  text.pop_back();
  return text;
}

bool is_hybrid(const Plan& plan) { return plan.shape && !plan.shape->layer_pattern.empty(); }

std::size_t chunk_of_predictions(const Plan& plan) {
  const auto layer = static_cast<std::int32_t>(plan.shape->first_block + plan.shape->blocks);
  const std::size_t chunks = plan.stages.front().chunks.size();
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const auto& layers = plan.stages[s].chunks[c].layers;
      if (std::find(layers.begin(), layers.end(), layer) != layers.end()) {
        return c * plan.stages.size() + s;
      }
    }
  }
  return chunks * plan.stages.size() - 1;
}

void check_predictions_of_hybrid(const Plan& plan, const std::string& target) {
  const std::size_t chunks = plan.stages.size() * plan.stages.front().chunks.size();
  if (plan.shape->mtp_modules == 0 || chunk_of_predictions(plan) == chunks - 1) return;
  throw Error(target + " has MTP modules of hybrids on the last stage, beside the loss",
              "plan with --for " + target);
}

}  // namespace braid
