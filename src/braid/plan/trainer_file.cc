#include "braid/plan/trainer_file.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "braid/base/and_list.h"
#include "braid/base/embedded_file.h"
#include "braid/base/named_entry.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/plan/known_word.h"
#include "braid/plan/names.h"
#include "braid/system/chip_reader.h"

namespace braid {

std::span<const EmbeddedFile> embedded_trainers();

namespace {

/// What the keys of the section `can` read into.
using LimitSetters =
    std::map<std::string, std::function<void(const Value&, TrainerLimits&)>, std::less<>>;
/// Those of them that are about one model or cluster.
constexpr std::array<std::string_view, 4> kModelLimits = {"alike_nodes", "key_value_heads", "never",
                                                          "whole_sequence_pieces"};

template <typename T>
T parsed(const Value& value, std::optional<T> (*parse)(std::string_view), const char* known) {
  const auto found = parse(value.as_string());
  if (!found) {
    value.fail("unknown value " + in_quotes(value.as_string()), std::string("use ") + known);
  }
  return *found;
}

ScheduleKind schedule_in(const Value& value) {
  return parsed<ScheduleKind>(value, parse_schedule, "gpipe, 1f1b or interleaved");
}
Recompute recompute_in(const Value& value) {
  return parsed<Recompute>(value, parse_recompute, "none, selective or full");
}
Zero zero_in(const Value& value) { return static_cast<Zero>(value.as_int_in(0, 3)); }

template <class Read>
auto list_of(const Value& value, const Read& read) {
  std::vector<decltype(read(value))> list;
  for (const Value& element : value.elements()) list.push_back(read(element));
  return list;
}

/// The same of what every trainer has one of.
template <class Read>
auto list_of_some(const Value& value, const Read& read) {
  auto list = list_of(value, read);
  if (list.empty()) value.fail("has no value", "name at least one");
  return list;
}

/// Whether a list of words has each of these, which are all that it may have.
std::vector<bool> has_each(const Value& value, const std::vector<std::string_view>& known) {
  std::vector<bool> has(known.size(), false);
  for (const Value& element : value.elements()) has[known_place(element, known)] = true;
  return has;
}

LimitSetters limit_setters() {
  const auto flag = [](bool TrainerLimits::*field) {
    return [field](const Value& value, TrainerLimits& can) { can.*field = value.as_bool(); };
  };
  const auto count = [](int TrainerLimits::*field) {
    return [field](const Value& value, TrainerLimits& can) {
      can.*field = static_cast<int>(value.as_int_in(1, 1 << 24));
    };
  };
  return {
      {"models",
       [](const Value& value, TrainerLimits& can) {
         can.language_models_only = has_each(value, {"language"})[0];
       }},
      {"chips",
       [](const Value& value, TrainerLimits& can) { can.chips = list_of_some(value, read_kind); }},
      {"compute_capability",
       [](const Value& value, TrainerLimits& can) {
         can.compute_capability = value.as_double_in(1, 1000);
       }},
      {"schedules", [](const Value& value,
                       TrainerLimits& can) { can.schedules = list_of_some(value, schedule_in); }},
      {"recompute", [](const Value& value,
                       TrainerLimits& can) { can.recompute = list_of_some(value, recompute_in); }},
      {"zero",
       [](const Value& value, TrainerLimits& can) { can.zero = list_of_some(value, zero_in); }},
      {"pipelined_zero", [](const Value& value,
                            TrainerLimits& can) { can.pipelined_zero = list_of(value, zero_in); }},
      {"sequence_parallel",
       [](const Value& value, TrainerLimits& can) {
         can.sequence_parallel =
             list_of_some(value, [](const Value& element) { return element.as_bool(); });
       }},
      {"context_parallel",
       [](const Value& value, TrainerLimits& can) {
         can.ring_context_parallel = has_each(value, {"ring"})[0];
       }},
      {"offload",
       [](const Value& value, TrainerLimits& can) {
         const std::vector<bool> has = has_each(value, {"optimizer", "weights", "activations"});
         can.offload_optimizer = has[0];
         can.offload_weights = has[1];
         can.offload_activations = has[2];
       }},
      {"orders",
       [](const Value& value, TrainerLimits& can) {
         const std::vector<bool> has = has_each(value, {"pipeline_outermost", "data_outermost"});
         if (!has[0] && !has[1]) value.fail("has no value", "name at least one");
         can.pipeline_outermost = has[0];
         can.data_outermost = has[1];
       }},
      {"expert_parallel", flag(&TrainerLimits::expert_parallel)},
      {"uneven_stages", flag(&TrainerLimits::uneven_stages)},
      {"heterogeneous_stages", flag(&TrainerLimits::heterogeneous_stages)},
      {"auto_sharding", flag(&TrainerLimits::auto_sharding)},
      {"most_stages", count(&TrainerLimits::most_stages)},
      {"most_tensor_parallel", count(&TrainerLimits::most_tensor_parallel)},
  };
}

/// A key of the sections that have conditions: how its value is read and what it sets.
template <class Target>
struct Setting {
  const char* key;
  double (*read)(const Value&);
  std::function<void(double, Target&)> set;
};

double flag_in(const Value& value) { return value.as_bool() ? 1 : 0; }

template <class Target>
Setting<Target> flag_setting(const char* key, bool Target::*field) {
  return {key, flag_in, [field](double value, Target& target) { target.*field = value != 0; }};
}

const std::vector<Setting<TrainerBehaviour>>& behaviour_settings() {
  static const std::vector<Setting<TrainerBehaviour>> settings = [] {
    std::vector<Setting<TrainerBehaviour>> all;
    for (const BehaviourFlag& each : behaviour_flags()) {
      all.push_back(flag_setting(each.key, each.flag));
    }
    all.push_back({"attention_rate", [](const Value& value) { return value.as_double_in(1e-3, 1); },
                   [](double value, TrainerBehaviour& does) { does.attention_rate = value; }});
    return all;
  }();
  return settings;
}

const std::vector<Setting<TrainerUsual>>& usual_settings() {
  static const std::vector<Setting<TrainerUsual>> settings = {
      {"zero", [](const Value& value) { return static_cast<double>(value.as_int_in(0, 3)); },
       [](double value, TrainerUsual& usual) {
         usual.zero = static_cast<Zero>(static_cast<int>(value));
       }},
      {"recompute",
       [](const Value& value) {
         return static_cast<double>(static_cast<int>(recompute_in(value)));
       },
       [](double value, TrainerUsual& usual) {
         usual.recompute = static_cast<Recompute>(static_cast<int>(value));
       }},
      flag_setting("sequence_parallel", &TrainerUsual::sequence_parallel),
      flag_setting("dropout", &TrainerUsual::dropout),
      flag_setting("one_layer_chunks", &TrainerUsual::one_layer_chunks),
      flag_setting("multi_token_prediction", &TrainerUsual::multi_token_prediction),
      flag_setting("whole_batches", &TrainerUsual::whole_batches),
      flag_setting("whole_experts", &TrainerUsual::whole_experts)};
  return settings;
}

/// A value as text that reads back.
std::string text_of(const Value& value) {
  if (!value.is_array()) {
    return value.kind() == Value::Kind::boolean ? (value.as_bool() ? "true" : "false")
           : value.is_number()                  ? fmt::format("{}", value.as_double())
                                                : std::string(value.as_string());
  }
  std::string text;
  for (const Value& element : value.elements()) {
    text += (text.empty() ? "" : ", ") + text_of(element);
  }
  return text;
}

/// The key's entry in a section, which has a value, a source and perhaps a condition.
TrainerEntry read_entry(const char* section, std::string_view key, const Value& value,
                        bool conditional) {
  if (!value.is_object()) {
    value.fail("has no source", "write {is: …, source: where that is known from}");
  }
  if (conditional) {
    value.expect_only({"is", "when", "source"});
  } else {
    value.expect_only({"is", "source"});
  }
  if (!value["source"].exists() || value["source"].as_string().empty()) {
    value.fail("has no source", "add `source`: where the trainer's code or manual says so");
  }
  TrainerEntry entry;
  entry.section = section;
  entry.key = key;
  entry.text = text_of(value["is"]);
  entry.source = value["source"].as_string();
  if (value["when"].exists()) entry.when = read_condition(value["when"]);
  return entry;
}

template <class Target>
void read_settings(const char* section, const Value& value,
                   const std::vector<Setting<Target>>& settings,
                   std::vector<TrainerEntry>& entries) {
  if (!value.exists()) return;
  for (const auto& [key, given] : value.members()) {
    const auto setting =
        std::find_if(settings.begin(), settings.end(),
                     [&key = key](const Setting<Target>& each) { return each.key == key; });
    if (setting == settings.end()) {
      std::vector<std::string_view> known;
      known.reserve(settings.size());
      for (const Setting<Target>& each : settings) known.emplace_back(each.key);
      given.fail("a trainer " + std::string(section) + " nothing called " + in_quotes(key),
                 did_you_mean(key, known));
    }
    const std::vector<Value> several = given.is_array() ? given.elements() : std::vector{given};
    for (const Value& one : several) {
      entries.push_back(read_entry(section, key, one, true));
      entries.back().value = setting->read(one["is"]);
    }
  }
}

/// "pipelines", or "no pipelines".
void read_trait(const Value& value, ExcludedForms& forms) {
  constexpr std::string_view kNot = "no ";
  std::string_view word = value.as_string();
  const bool without = word.starts_with(kNot);
  if (without) word.remove_prefix(kNot.size());
  std::array<std::string_view, kFormTraits.size()> known;
  std::transform(kFormTraits.begin(), kFormTraits.end(), known.begin(),
                 [](const FormTraitName& each) { return each.key; });
  const auto trait = static_cast<FormTrait>(known_place(value, word, known));
  (without ? forms.without : forms.with) |= bit_of(trait);
}

/// " for models of type qwen3 with experts on v100", as far as the condition asks for these.
std::string models_text(const TrainerCondition& when) {
  std::string text;
  if (!when.model_type.empty()) {
    text += " for models of type " + and_list(when.model_type, " or ");
  } else if (!when.model_has.empty()) {
    text += " for models";
  }
  if (!when.model_has.empty()) {
    std::vector<std::string> parts = when.model_has;
    for (std::string& part : parts) std::replace(part.begin(), part.end(), '_', ' ');
    text += " with " + and_list(parts);
  }
  if (!when.hardware.empty()) text += " on " + and_list(when.hardware, " or ");
  if (when.compute_capability_below > 0) {
    text += fmt::format(" below compute capability {:.1f}", when.compute_capability_below);
  }
  return text;
}

void read_exclusions(const Value& value, TrainerFile& file) {
  for (const Value& one : value.elements()) {
    file.entries.push_back(read_entry("can", "never", one, true));
    ConditionalExclusion& read = file.never.emplace_back();
    for (const Value& trait : one["is"].elements()) read_trait(trait, read.forms);
    if (read.forms.with == 0) one["is"].fail("names nothing that a form has", "name something");
    read.when = file.entries.back().when;
    read.forms.models = models_text(read.when);
  }
}

/// The limits that are about one model or cluster (kModelLimits).
void read_model_limit(std::string_view key, const Value& value, TrainerFile& file) {
  if (key == "never") return read_exclusions(value, file);
  file.entries.push_back(read_entry("can", key, value, false));
  if (key == "whole_sequence_pieces" || key == "alike_nodes") {
    (key == "alike_nodes" ? file.alike_nodes : file.divides_tokens) = value["is"].as_bool();
    return;
  }
  constexpr std::array<std::string_view, 2> kKinds = {"whole", "shared"};
  file.divides_heads = true;
  file.shares_heads = known_place(value["is"], kKinds) == 1;
}

void read_limits(const Value& value, TrainerFile& file) {
  if (!value.exists()) return;
  const LimitSetters setters = limit_setters();
  for (const auto& [key, given] : value.members()) {
    if (std::find(kModelLimits.begin(), kModelLimits.end(), key) != kModelLimits.end()) {
      read_model_limit(key, given, file);
      continue;
    }
    const auto setter = setters.find(key);
    if (setter == setters.end()) {
      std::vector<std::string_view> known(kModelLimits.begin(), kModelLimits.end());
      for (const auto& [name, set] : setters) known.emplace_back(name);
      given.fail("a trainer has no capability called " + in_quotes(key), did_you_mean(key, known));
    }
    file.entries.push_back(read_entry("can", key, given, false));
    setter->second(given["is"], file.can);
  }
}

template <class Target>
Target resolved(const TrainerFile& file, const char* section, const TrainerSubject& subject,
                const std::vector<Setting<Target>>& settings) {
  Target target;
  std::string last;
  for (const TrainerEntry& entry : file.entries) {
    if (entry.section != section || entry.key == last || !entry.when.holds(subject)) continue;
    last = entry.key;
    for (const Setting<Target>& setting : settings) {
      if (entry.key == setting.key) setting.set(entry.value, target);
    }
  }
  return target;
}

}  // namespace

Trainer TrainerFile::trainer(const TrainerSubject& subject) const {
  return {name, resolved(*this, "does", subject, behaviour_settings())};
}

TrainerLimits TrainerFile::limits(const TrainerSubject& subject) const {
  TrainerLimits limits = can;
  for (const ConditionalExclusion& each : never) {
    if (each.when.holds(subject)) limits.never.push_back(each.forms);
  }
  if (divides_heads) limits.divided_heads = subject.kv_heads;
  limits.shared_heads = shares_heads;
  if (alike_nodes) limits.alike_nodes = subject.devices_per_node;
  if (divides_tokens) limits.divided_tokens = subject.seq_len;
  return limits;
}

TrainerUsual TrainerFile::usual(const TrainerSubject& subject) const {
  return resolved(*this, "usually", subject, usual_settings());
}

TrainerSubject subject_of(const TrainerFile& trainer, const System& system,
                          const Precision& precision) {
  TrainerSubject subject;
  subject.framework = lowered(trainer.name);
  subject.precision = lowered(name_of(precision));
  if (!system.groups.empty()) subject.devices_per_node = system.groups.front().devices_per_node;
  for (const DeviceGroup& group : system.groups) {
    subject.hardware += (subject.hardware.empty() ? "" : " + ") + lowered(group.chip.name);
  }
  subject.compute_capability = least_compute_capability(system);
  return subject;
}

namespace {

void read_defaults(const Value& value, TrainerFile& file) {
  for (const Value& kind : value.elements()) {
    if (kind.as_string() == "any") {
      file.default_on_others = true;
    } else {
      file.default_on.push_back(read_kind(kind));
    }
  }
}

}  // namespace

TrainerFile read_trainer(const Value& value) {
  value.expect_only({"name", "title", "can", "does", "usually", "runs", "default_on"});
  TrainerFile file;
  file.name = value["name"].as_string();
  file.title = value["title"].as_string();
  read_limits(value["can"], file);
  read_settings("does", value["does"], behaviour_settings(), file.entries);
  read_settings("usually", value["usually"], usual_settings(), file.entries);
  if (value["runs"].exists()) {
    for (const Value& run : value["runs"].elements()) file.runs.push_back(read_condition(run));
  }
  if (value["default_on"].exists()) read_defaults(value["default_on"], file);
  return file;
}

TrainerFile load_trainer(const std::string& name_or_path, const Where& named) {
  return read_trainer(open_entry(name_or_path, named, embedded_trainers(), "trainer").root());
}

namespace {

TrainerFile read_embedded(const EmbeddedFile& file) {
  return read_trainer(
      Document::parse(file.text, Document::Syntax::yaml, std::string(file.file)).root());
}

}  // namespace

TrainerFile trainer_of_catalogue(std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_trainers();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.name == name; });
  assert(found != files.end());
  return read_embedded(*found);
}

const std::vector<TrainerFile>& trainer_catalogue() {
  static const std::vector<TrainerFile> catalogue = [] {
    std::vector<TrainerFile> files;
    for (const EmbeddedFile& file : embedded_trainers()) files.push_back(read_embedded(file));
    return files;
  }();
  return catalogue;
}

namespace {

/// Those with default_on. Reading a file takes longer than looking through all of them for the
/// word.
const std::vector<TrainerFile>& default_trainers() {
  static const std::vector<TrainerFile> trainers = [] {
    std::vector<TrainerFile> files;
    for (const EmbeddedFile& file : embedded_trainers()) {
      if (contains(file.text, "default_on:")) files.push_back(read_embedded(file));
    }
    return files;
  }();
  return trainers;
}

bool is_default_on(const TrainerFile& trainer, ChipKind kind) {
  return std::find(trainer.default_on.begin(), trainer.default_on.end(), kind) !=
         trainer.default_on.end();
}

}  // namespace

const TrainerFile& default_trainer(const System& system) {
  assert(!system.groups.empty());
  const TrainerFile* on_others = nullptr;
  for (const TrainerFile& trainer : default_trainers()) {
    if (std::all_of(system.groups.begin(), system.groups.end(), [&](const DeviceGroup& group) {
          return is_default_on(trainer, group.chip.kind);
        })) {
      return trainer;
    }
    if (trainer.default_on_others) on_others = &trainer;
  }
  assert(on_others != nullptr && "some trainer of the catalogue is the default on any chip");
  return *on_others;
}

const TrainerFile& trainer_of_run(const TrainerSubject& subject) {
  const auto specificity = [](const TrainerCondition& run) {
    std::size_t letters = 0;
    for (const std::string& word : run.framework) letters += word.size();
    const auto conditions = static_cast<std::size_t>(!run.hardware.empty()) +
                            static_cast<std::size_t>(!run.hardware_other_than.empty()) +
                            static_cast<std::size_t>(!run.precision.empty()) +
                            static_cast<std::size_t>(!run.model.empty()) +
                            static_cast<std::size_t>(run.published_from > 0);
    return std::pair{letters, conditions};
  };
  const TrainerFile* best = nullptr;
  std::pair<std::size_t, std::size_t> most;
  for (const TrainerFile& file : trainer_catalogue()) {
    for (const TrainerCondition& run : file.runs) {
      if (!run.holds(subject) || (best != nullptr && specificity(run) <= most)) continue;
      best = &file;
      most = specificity(run);
    }
  }
  assert(best != nullptr && "some trainer of the catalogue is for any run");
  return *best;
}

}  // namespace braid
