#include "braid/plan/excluded_forms.h"

#include <vector>

#include "braid/base/and_list.h"

namespace braid {
namespace {

std::vector<std::string> texts_of(FormTraits traits) {
  std::vector<std::string> texts;
  for (std::size_t t = 0; t < kFormTraits.size(); ++t) {
    if ((traits >> t & 1U) != 0) texts.emplace_back(kFormTraits[t].text);
  }
  return texts;
}

}  // namespace

std::string refusal_text(const ExcludedForms& excluded) {
  const std::vector<std::string> with = texts_of(excluded.with);
  std::string text = (with.size() == 1 ? "has no " : "does not combine ") + and_list(with);
  if (excluded.without != 0) text += " without " + and_list(texts_of(excluded.without), " or ");
  return text + excluded.models;
}

}  // namespace braid
