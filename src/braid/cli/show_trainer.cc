#include "braid/cli/show_trainer.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/and_list.h"
#include "braid/base/json.h"
#include "braid/cli/verbs.h"
#include "braid/planners/registry.h"

namespace braid {
namespace {

std::string month_text(int month) { return fmt::format("20{:02}-{:02}", month / 100, month % 100); }

/// The condition in words; empty where there is none.
std::string condition_text(const TrainerCondition& when) {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::vector<std::string>& words) {
    if (!words.empty()) parts.push_back(fmt::format("{} {}", what, fmt::join(words, " or ")));
  };
  add("called", when.framework);
  add("on", when.hardware);
  add("not on", when.hardware_other_than);
  if (when.compute_capability_below > 0) {
    parts.push_back(fmt::format("below compute capability {:.1f}", when.compute_capability_below));
  }
  add("in", when.precision);
  add("of", when.model);
  add("not of", when.model_other_than);
  add("that says", when.model_says);
  add("of type", when.model_type);
  if (!when.model_has.empty()) parts.push_back("with " + and_list(when.model_has));
  add("whose row says", when.says);
  if (when.version_from > 0) parts.push_back("from " + month_text(when.version_from));
  if (when.published_from > 0) parts.push_back("published from " + month_text(when.published_from));
  return fmt::format("{}", fmt::join(parts, ", "));
}

const char* meaning_of(const std::string& key) {
  for (const BehaviourFlag& flag : behaviour_flags()) {
    if (key == flag.key) return flag.meaning;
  }
  return "";
}

Json to_json(const TrainerFile& trainer) {
  Json json = Json::object();
  json["name"] = trainer.name;
  json["description"] = trainer.title;
  for (const char* section : {"can", "does", "usually"}) {
    json[section] = Json::array();
    for (const TrainerEntry& entry : trainer.entries) {
      if (entry.section != section) continue;
      Json part = {{"key", entry.key}, {"is", entry.text}, {"source", entry.source}};
      const std::string when = condition_text(entry.when);
      if (!when.empty()) part["when"] = when;
      json[section].push_back(std::move(part));
    }
  }
  return json;
}

}  // namespace

int show_trainer(const TrainerFile& trainer, bool json) {
  if (json) {
    fmt::print("{}", to_text(to_json(trainer)));
    return kFound;
  }
  fmt::print("{}\n{}\n", trainer.name, trainer.title);
  for (const auto& [section, heading] :
       {std::pair{"can", "Can be told"}, std::pair{"does", "Does"},
        std::pair{"usually", "Does where a measured run does not say"}}) {
    std::string text;
    for (const TrainerEntry& entry : trainer.entries) {
      if (entry.section != section) continue;
      text += fmt::format("  {:<26} {}\n", entry.key, entry.text.empty() ? "none" : entry.text);
      const std::string when = condition_text(entry.when);
      if (!when.empty()) text += fmt::format("{:29}runs {}\n", "", when);
      const std::string meaning = meaning_of(entry.key);
      if (!meaning.empty()) text += fmt::format("{:29}{}\n", "", meaning);
      text += fmt::format("{:29}source: {}\n", "", entry.source);
    }
    if (!text.empty()) fmt::print("\n{}\n{}", heading, text);
  }
  for (const PlannerEntry& planner : planners()) {
    if (planner.name != trainer.name) continue;
    fmt::print("\nA planner has the same name: {}\n", planner.description);
  }
  return kFound;
}

}  // namespace braid
