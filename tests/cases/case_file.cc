#include "cases/case_file.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "braid/base/document.h"
#include "braid/base/file.h"

#include "support/source_path.h"

namespace braid::test {
namespace {

using Words = std::vector<std::string>;

/// What {NAME} stands for, and which of the names were used.
struct Variables {
  std::map<std::string, std::string> values = {{"source", test::source_folder()}};
  std::set<std::string> used;

  std::string filled(std::string text) {
    for (const auto& [name, value] : values) {
      const std::string mark = "{" + name + "}";
      for (std::size_t at = text.find(mark); at != std::string::npos;
           at = text.find(mark, at + value.size())) {
        text.replace(at, mark.size(), value);
        used.insert(name);
      }
    }
    return text;
  }
};

/// Splits at spaces; single or double quotes keep a word together.
Words words_of(const Value& value, Variables& variables) {
  Words words;
  char quote = '\0';
  bool inside = false;
  for (const char c : variables.filled(value.string_or(""))) {
    if (quote != '\0' ? c == quote : c == '\'' || c == '"') {
      quote = quote == '\0' ? c : '\0';
      if (!inside) words.emplace_back();
      inside = true;
    } else if (quote == '\0' && (c == ' ' || c == '\n')) {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back() += c;
    }
  }
  if (quote != '\0') value.fail("a quote that does not end", "close it");
  return words;
}

/// One text or a list of them; nothing where the key is missing.
Words texts_of(const Value& value, Variables& variables) {
  Words texts;
  if (!value.exists()) return texts;
  if (!value.is_array()) return {variables.filled(std::string(value.as_string()))};
  for (const Value& text : value.elements()) {
    texts.push_back(variables.filled(std::string(text.as_string())));
  }
  return texts;
}

std::string file_text(const Value& value, Variables& variables) {
  if (value.is_string()) return variables.filled(std::string(value.as_string()));
  value.expect_only({"text", "hex", "times", "copy"});
  if (value["copy"].exists()) {
    return read_file(test::source_path(std::string(value["copy"].as_string())));
  }
  std::string piece = value["text"].string_or("");
  const std::string hex = value["hex"].string_or("");
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    piece += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  }
  if (piece.empty()) value.fail("no text", "give text, hex or copy");
  std::string text;
  for (std::int64_t i = 0; i < value["times"].int_or(1); ++i) text += piece;
  return text;
}

std::vector<FileText> files_of(const Value& value, Variables& variables) {
  std::vector<FileText> files;
  if (!value.exists()) return files;
  for (const auto& [name, text] : value.members()) {
    files.emplace_back(variables.filled(std::string(name)), file_text(text, variables));
  }
  return files;
}

nlohmann::json json_of(const Value& value, Variables& variables) {
  switch (value.kind()) {
    case Value::Kind::boolean:
      return value.as_bool();
    case Value::Kind::integer:
      return value.as_int();
    case Value::Kind::number:
      return value.as_double();
    case Value::Kind::string:
      return variables.filled(std::string(value.as_string()));
    case Value::Kind::array: {
      nlohmann::json list = nlohmann::json::array();
      for (const Value& element : value.elements()) list.push_back(json_of(element, variables));
      return list;
    }
    case Value::Kind::null:
      return nullptr;
    default:
      value.fail("no value to compare with", "give a number, a text or a list");
  }
}

std::vector<Fact> facts_of(const Value& value, Variables& variables) {
  using Relation = Fact::Relation;
  static const std::map<std::string_view, Relation> kRelations = {
      {"near", Relation::near},       {"at_least", Relation::at_least},
      {"at_most", Relation::at_most}, {"has", Relation::has},
      {"size", Relation::size},       {"absent", Relation::absent},
      {"same_as", Relation::same_as}, {"keys_of", Relation::keys_of}};
  std::vector<Fact> facts;
  if (!value.exists()) return facts;
  for (const auto& [pointer, told] : value.members()) {
    const std::string name = variables.filled(std::string(pointer));
    if (!told.is_object()) {
      facts.push_back({name, Relation::is, json_of(told, variables)});
      continue;
    }
    told.expect_only(
        {"near", "at_least", "at_most", "has", "size", "absent", "same_as", "keys_of"});
    for (const auto& [relation, against] : told.members()) {
      facts.push_back({name, kRelations.at(relation), json_of(against, variables)});
    }
  }
  return facts;
}

ExpectedText expected_text(const Value& run, const std::string& stream, Variables& variables) {
  ExpectedText expected{
      texts_of(run[stream], variables), texts_of(run[stream + "_lacks"], variables), {}};
  const Value whole = run[stream + "_is"];
  if (whole.exists()) expected.is = variables.filled(std::string(whole.as_string()));
  return expected;
}

/// A run under one choice of the variables.
CaseRun run_of(const Value& value, const Value& command, Variables& variables) {
  CaseRun run;
  run.line = value.where().line;
  run.words = words_of(value["command"].exists() ? value["command"] : command, variables);
  for (std::string& word : words_of(value["args"], variables)) run.words.push_back(std::move(word));
  run.files = files_of(value["files"], variables);
  const Words edit = texts_of(value["edit"], variables);
  if (!edit.empty()) {
    if (edit.size() != 3) value["edit"].fail("not [FILE, FROM, TO]", "give these three");
    run.edits.push_back({edit[0], edit[1], edit[2]});
  }
  const bool refused = value["refused"].exists();
  run.fails = refused || value["no_plan"].exists();
  run.status = static_cast<int>(value["status"].int_or(refused ? 2 : run.fails ? 1 : 0));
  run.out = expected_text(value, "out", variables);
  run.err = expected_text(value, "err", variables);
  for (const char* key : {"refused", "no_plan"}) {
    for (std::string& text : texts_of(value[key], variables)) {
      run.err.has.push_back(std::move(text));
    }
  }
  run.facts = facts_of(value["json"], variables);
  run.save = value["save"].string_or("");
  if (value["written"].exists()) {
    for (const auto& [name, texts] : value["written"].members()) {
      for (std::string& text : texts_of(texts, variables)) {
        run.written.emplace_back(name, std::move(text));
      }
    }
  }
  return run;
}

void expect_something_of(const Value& run) {
  for (const char* key : {"refused", "no_plan", "status", "out", "out_lacks", "out_is", "err",
                          "err_lacks", "err_is", "json", "written"}) {
    if (run[key].exists()) return;
  }
  run.fail("the run expects nothing", "say refused, no_plan, status, out, err, json or written");
}

/// Every choice of the variables in `each`, beside those that are chosen already.
std::vector<Variables> choices_of(const Value& each, const Variables& chosen) {
  std::vector<Variables> choices = {chosen};
  if (!each.exists()) return choices;
  for (const auto& [name, texts] : each.members()) {
    std::vector<Variables> more;
    for (const Variables& choice : choices) {
      for (const Value& text : texts.elements()) {
        more.push_back(choice);
        more.back().values[std::string(name)] = text.as_string();
      }
    }
    choices = std::move(more);
  }
  return choices;
}

/// Adds a run for every choice of its variables; those chosen for its case are marked where used.
void add_runs(const Value& value, const Value& command, Variables& chosen, Case& tested) {
  expect_something_of(value);
  for (Variables& choice : choices_of(value["each"], chosen)) {
    tested.runs.push_back(run_of(value, command, choice));
    for (const auto& [name, text] : choice.values) {
      if (choice.used.contains(name) || chosen.values.contains(name)) continue;
      value.fail("nothing uses {" + name + "}", "use it or leave it out");
    }
    chosen.used.insert(choice.used.begin(), choice.used.end());
  }
}

Case case_of(const Value& value, const Value& file) {
  Variables variables;
  Case tested;
  tested.name = value["name"].as_string();
  if (tested.name.empty() || !std::all_of(tested.name.begin(), tested.name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0;
      })) {
    value["name"].fail("not a name of letters and digits", "use these only");
  }
  const Value command = (value["command"].exists() ? value : file)["command"];
  tested.files = files_of(file["files"], variables);
  if (!value["runs"].exists()) {
    value.expect_only({"name", "files", "command", "args", "each", "edit", "refused", "no_plan",
                       "status", "out", "out_lacks", "out_is", "err", "err_lacks", "err_is", "json",
                       "written", "save"});
    add_runs(value, command, variables, tested);
    return tested;
  }
  value.expect_only({"name", "command", "each", "files", "runs"});
  for (FileText& more : files_of(value["files"], variables)) tested.files.push_back(more);
  for (const Value& run : value["runs"].elements()) {
    run.expect_only({"command", "args", "each", "files", "edit", "refused", "no_plan", "status",
                     "out", "out_lacks", "out_is", "err", "err_lacks", "err_is", "json", "written",
                     "save"});
  }
  for (Variables& choice : choices_of(value["each"], variables)) {
    for (const Value& run : value["runs"].elements()) add_runs(run, command, choice, tested);
    for (const auto& [name, text] : choice.values) {
      if (name == "source" || choice.used.contains(name)) continue;
      value.fail("nothing uses {" + name + "}", "use it or leave it out");
    }
  }
  if (tested.runs.empty()) value["runs"].fail("no runs", "give one");
  return tested;
}

std::vector<Case> cases_of(const Document& document) {
  const Value root = document.root();
  root.expect_only({"files", "command", "cases"});
  std::vector<Case> cases;
  std::set<std::string> names;
  for (const Value& value : root["cases"].elements()) {
    cases.push_back(case_of(value, root));
    if (!names.insert(cases.back().name).second) {
      value["name"].fail("a second case has the name " + cases.back().name, "rename one");
    }
  }
  if (cases.empty()) root["cases"].fail("no cases", "give one");
  return cases;
}

}  // namespace

std::vector<Case> read_cases(const std::string& path) {
  return cases_of(Document::parse_file(path));
}

std::vector<Case> parse_cases(const std::string& text, const std::string& file) {
  return cases_of(Document::parse(text, Document::Syntax::yaml, file));
}

}  // namespace braid::test
