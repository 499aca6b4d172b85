#include "braid/plan/trainer_condition.h"

#include <algorithm>
#include <utility>

#include "braid/base/text.h"
#include "braid/plan/known_word.h"

namespace braid {
namespace {

using Words = std::vector<std::string>;

bool says_one_of(const std::string& text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return contains(text, word); });
}

bool begins_with_one_of(const std::string& text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return text.starts_with(word); });
}

/// 2201 of "2022-01" or "22.01".
int month_of(const Value& value) {
  std::string digits;
  for (const char c : value.as_string()) {
    if (is_digit(c)) digits += c;
  }
  if (digits.size() == 6) digits.erase(0, 2);
  if (digits.size() != 4) value.fail("is no year and month", "write 2022-01");
  return std::stoi(digits);
}

}  // namespace

std::vector<std::string> words_of(const Value& value) {
  Words words;
  for (const Value& word : value.elements()) words.push_back(lowered(word.as_string()));
  return words;
}

TrainerCondition read_condition(const Value& value) {
  value.expect_only({"framework", "hardware", "hardware_other_than", "compute_capability_below",
                     "precision", "model", "model_other_than", "model_says", "model_type",
                     "model_has", "says", "version_from", "published_from"});
  TrainerCondition when;
  const std::pair<const char*, Words TrainerCondition::*> lists[] = {
      {"framework", &TrainerCondition::framework},
      {"hardware", &TrainerCondition::hardware},
      {"hardware_other_than", &TrainerCondition::hardware_other_than},
      {"precision", &TrainerCondition::precision},
      {"model", &TrainerCondition::model},
      {"model_other_than", &TrainerCondition::model_other_than},
      {"model_says", &TrainerCondition::model_says},
      {"model_type", &TrainerCondition::model_type},
      {"says", &TrainerCondition::says}};
  for (const auto& [key, list] : lists) {
    if (value[key].exists()) when.*list = words_of(value[key]);
  }
  if (value["model_has"].exists()) {
    for (const Value& part : value["model_has"].elements()) {
      when.model_has.emplace_back(kModelParts[known_place(part, kModelParts)]);
    }
  }
  if (value["compute_capability_below"].exists()) {
    when.compute_capability_below = value["compute_capability_below"].as_double_in(1, 1000);
  }
  if (value["version_from"].exists()) when.version_from = month_of(value["version_from"]);
  if (value["published_from"].exists()) when.published_from = month_of(value["published_from"]);
  return when;
}

void describe_model(const ModelShape& shape, TrainerSubject& subject) {
  subject.model_type = lowered(shape.model_type);
  subject.kv_heads = shape.latent_attention ? shape.heads : shape.kv_heads;
  const bool biases = shape.linear_bias || shape.expert_bias;
  const std::array<bool, kModelParts.size()> has = {
      shape.experts > 0,    biases, shape.rms, shape.tied_embeddings, !shape.layer_pattern.empty(),
      shape.attention_sinks};
  for (std::size_t p = 0; p < has.size(); ++p) {
    if (has[p]) subject.model_has.emplace_back(kModelParts[p]);
  }
}

bool TrainerCondition::holds(const TrainerSubject& subject) const {
  const auto any_of = [](const Words& words, const std::string& text) {
    return words.empty() || says_one_of(text, words);
  };
  return std::all_of(framework.begin(), framework.end(),
                     [&](const std::string& word) { return contains(subject.framework, word); }) &&
         any_of(hardware, subject.hardware) &&
         !says_one_of(subject.hardware, hardware_other_than) &&
         (compute_capability_below == 0 || subject.compute_capability < compute_capability_below) &&
         any_of(precision, subject.precision) && any_of(model_says, subject.model) &&
         any_of(says, subject.says) &&
         (model.empty() || begins_with_one_of(subject.model, model)) &&
         !begins_with_one_of(subject.model, model_other_than) &&
         (model_type.empty() || begins_with_one_of(subject.model_type, model_type)) &&
         std::all_of(model_has.begin(), model_has.end(),
                     [&](const std::string& part) {
                       return std::find(subject.model_has.begin(), subject.model_has.end(), part) !=
                              subject.model_has.end();
                     }) &&
         subject.version >= version_from && subject.published >= published_from;
}

}  // namespace braid
