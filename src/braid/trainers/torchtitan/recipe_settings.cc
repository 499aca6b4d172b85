#include "braid/trainers/torchtitan/recipe_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "braid/base/text.h"
#include "braid/trainers/exchange/python_functions.h"

namespace braid {
namespace {

/// Classes whose keyword arguments are read, and assignments to what they make.
struct Section {
  std::string_view type, prefix;
};
constexpr std::array<Section, 3> kSections = {{{"ParallelismConfig", "parallelism."},
                                               {"TrainingConfig", "training."},
                                               {"CompileConfig", "compile."}}};

/// Names that stand for a number or a text.
using Constants = std::map<std::string, std::string, std::less<>>;

/// "8 * 2_048 * STEPS" multiplied out; nullopt: it is something else.
std::optional<std::int64_t> product_of(std::string_view text, const Constants& constants) {
  std::int64_t product = 1;
  while (true) {
    const std::size_t star = text.find('*');
    std::string digits(trimmed_python(text.substr(0, star)));
    if (const auto known = constants.find(digits); known != constants.end()) digits = known->second;
    std::erase(digits, '_');
    std::int64_t factor = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, factor);
    if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
    if (star == std::string_view::npos) return product;
    text.remove_prefix(star + 1);
  }
}

/// A text in quotes, without these.
std::optional<std::string_view> text_in_quotes(std::string_view text) {
  const bool is_text = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                       text.back() == text.front();
  return is_text ? std::optional(text.substr(1, text.size() - 2)) : std::nullopt;
}

std::string value_of(std::string_view text, const Constants& constants) {
  text = trimmed_python(text);
  if (const auto quoted = text_in_quotes(text)) return std::string(*quoted);
  if (const auto product = product_of(text, constants)) return std::to_string(*product);
  const auto known = constants.find(text);
  return known != constants.end() ? known->second : std::string(text);
}

std::string recomputation_of(std::string_view policy) {
  policy = trimmed_python(policy);
  return policy == "None"                   ? "none"
         : contains(policy, "FullAC")       ? "full"
         : contains(policy, "SelectiveAC")  ? "selective"
         : contains(policy, "MemoryBudget") ? "memory_budget"
                                            : std::string(policy);
}

/// The last part of "config.parallelism".
std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool is_registry(std::string_view name) { return last_part(name).ends_with("model_registry"); }

using Functions = std::map<std::string_view, PythonFunction>;

Functions functions_by_name(std::string_view text) {
  Functions all;
  for (const PythonFunction& each : python_functions(text)) all[each.name] = each;
  return all;
}

/// Lines of a text by positions in it.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) {
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1)) {
      ends_.push_back(at);
    }
  }
  int line_of(std::size_t at) const {
    return 1 + static_cast<int>(std::lower_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  }

 private:
  std::vector<std::size_t> ends_;
};

/// What all walks of a file share.
struct RecipeFile {
  explicit RecipeFile(std::string_view whole)
      : text(whole), functions(functions_by_name(whole)), lines(whole) {}

  std::string_view text;
  Functions functions;
  LineCounter lines;
  std::map<std::string, std::string, std::less<>> imported;  ///< Recipes, and of which module.
  Constants constants;
  RecipeSettings read;
  int calls = 0;  ///< Of functions of the file, so far.
};

/// Walks a part of the text once and keeps the brackets that are open.
class RecipeWalk {
 public:
  RecipeWalk(RecipeFile& file, std::size_t begin, std::size_t end, int depth = 0)
      : file_(file), text_(file.text.substr(0, end)), at_(begin), depth_(depth) {}

  void run() {
    while (at_ < text_.size()) step();
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = end_of_python_line(text_, at_);
    } else if (c == '"' || c == '\'') {
      at_ = end_of_python_string(text_, at_);
    } else if (is_python_name_part(c)) {
      read_name();
    } else {
      if (c == '(' || c == '[' || c == '{') open_.emplace_back();
      if ((c == ')' || c == ']' || c == '}') && !open_.empty()) open_.pop_back();
      ++at_;
    }
  }

  void read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_python_name_part(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "from" && open_.empty()) return read_import();
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    if (at_ < text_.size() && text_[at_] == '(') {
      call(name);
      open_.push_back(name);
      ++at_;
      if (is_registry(name)) read_flavor();
    } else if (text_.substr(at_, 1) == "=" && text_.substr(at_, 2) != "==") {
      ++at_;
      take(name, begin);
    }
  }

  /// What a function of the file sets counts where it is called.
  void call(std::string_view name) {
    constexpr int kMostDepth = 20, kMostCalls = 1000;
    const auto own = file_.functions.find(name);
    if (own != file_.functions.end() && depth_ < kMostDepth && file_.calls++ < kMostCalls) {
      RecipeWalk(file_, own->second.begin, own->second.end, depth_ + 1).run();
    }
    const auto other = file_.imported.find(name);
    if (other != file_.imported.end()) {
      file_.read.from_elsewhere.push_back(std::string(name) + "() of " + other->second);
    }
  }

  /// "from torchtitan.models.llama3 import model_registry", or recipes of another file.
  void read_import() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_python_name_part(text_[at_])) ++at_;
    const std::string_view module = text_.substr(begin, at_ - begin);
    std::size_t end = end_of_python_line(text_, at_);
    const std::size_t bracket = text_.substr(0, end).find('(', at_);
    if (bracket != std::string_view::npos) end = std::min(text_.find(')', bracket), text_.size());
    const std::string_view names = text_.substr(at_, end - at_);
    at_ = end;
    constexpr std::string_view kPackage = "torchtitan.models.";
    if (module.starts_with(kPackage) && contains(names, "model_registry")) {
      const std::string_view rest = module.substr(kPackage.size());
      add("model.name", std::string(rest.substr(0, rest.find('.'))), begin);
    }
    if (module.ends_with("config_registry")) note_recipes(names, module);
  }

  void note_recipes(std::string_view names, std::string_view module) {
    for (std::size_t at = 0; at < names.size();) {
      const std::size_t begin = at;
      while (at < names.size() && is_python_name_part(names[at])) ++at;
      if (at > begin) file_.imported[std::string(names.substr(begin, at - begin))] = module;
      if (at == begin) ++at;
    }
  }

  void read_flavor() {
    const std::size_t end = end_of_python_value(text_, at_, true);
    const std::string_view first = trimmed_python(text_.substr(at_, end - at_));
    if (first.empty() || contains(first, "=")) return;
    const bool is_known = text_in_quotes(first) || file_.constants.contains(first);
    if (!is_known) return;
    // A model that is built anew has no converters of the one before.
    add("model.converters", "none", at_);
    add("model.flavor", value_of(first, file_.constants), at_);
  }

  /// The name that the TOML has for what is set here; empty: none.
  std::string key_of(std::string_view name) const {
    const std::string_view inside = open_.empty() ? std::string_view{} : last_part(open_.back());
    for (const Section& section : kSections) {
      if (inside == section.type) return std::string(section.prefix) + std::string(name);
      const std::size_t found = name.rfind(section.prefix);
      const bool whole = found == 0 || (found != std::string_view::npos && name[found - 1] == '.');
      if (whole) return std::string(name.substr(found));
    }
    if (last_part(name) == "activation_checkpoint") return "activation_checkpoint.mode";
    if (is_registry(inside) && name == "flavor") return "model.flavor";
    if (is_registry(inside) && name == "converters") return "model.converters";
    return "";
  }

  void take(std::string_view name, std::size_t begin) {
    const std::string key = key_of(name);
    const bool is_local = key.empty() && open_.empty() && !contains(name, ".");
    if (key.empty() && !is_local) return;
    const std::size_t end = end_of_python_value(text_, at_, !open_.empty());
    const std::string_view value = text_.substr(at_, end - at_);
    if (is_local) {
      note_constant(name, value);
      return;
    }
    add(key,
        key == "activation_checkpoint.mode" ? recomputation_of(value)
                                            : value_of(value, file_.constants),
        begin);
  }

  /// A name for a number or a text; for anything else it stands for no value.
  void note_constant(std::string_view name, std::string_view value) {
    const std::string known = value_of(value, file_.constants);
    const bool is_value = text_in_quotes(trimmed_python(value)) || product_of(known, {});
    if (is_value) {
      file_.constants[std::string(name)] = known;
    } else if (const auto found = file_.constants.find(name); found != file_.constants.end()) {
      file_.constants.erase(found);
    }
  }

  void add(std::string name, std::string value, std::size_t at) {
    if (value.empty()) return;
    file_.read.settings.push_back({std::move(name), std::move(value), file_.lines.line_of(at)});
  }

  RecipeFile& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::string_view> open_;  ///< What stands before each open bracket.
};

/// Whether it says that it gives a trainer's configuration; nullopt: it says nothing.
std::optional<bool> says_it_is_a_recipe(const PythonFunction& function) {
  const std::string_view type = function.returns;
  if (type.empty()) return std::nullopt;
  if (type.ends_with(".Config")) return type.ends_with("Trainer.Config");
  const bool is_section = std::any_of(kSections.begin(), kSections.end(), [&](const Section& each) {
    return last_part(type) == each.type;
  });
  return type.ends_with("Config") && !is_section;
}

}  // namespace

std::vector<std::string> torchtitan_recipes(std::string_view text) {
  std::vector<PythonFunction> functions = python_functions(text);
  std::erase_if(functions, [](const PythonFunction& each) {
    return !each.needs_no_arguments() || each.name.starts_with('_');
  });
  std::vector<bool> is_recipe(functions.size());
  const auto body_of = [&](const PythonFunction& each) {
    return text.substr(each.begin, each.end - each.begin);
  };
  const auto begins_with_another = [&](std::string_view body) {
    for (std::size_t i = 0; i < functions.size(); ++i) {
      if (is_recipe[i] && calls_python(body, functions[i].name)) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::string_view body = body_of(functions[i]);
    is_recipe[i] = says_it_is_a_recipe(functions[i])
                       .value_or(contains(body, "Trainer.Config(") || begins_with_another(body));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (is_recipe[i]) names.emplace_back(functions[i].name);
  }
  return names;
}

RecipeSettings torchtitan_recipe_settings(std::string_view text, std::string_view name) {
  RecipeFile file(text);
  if (name.empty()) {
    file.functions.clear();
    RecipeWalk(file, 0, text.size()).run();
    return std::move(file.read);
  }
  for (const PythonStatement& statement : python_statements(text)) {
    const std::string_view line = text.substr(statement.begin, statement.end - statement.begin);
    const bool is_code = line.starts_with("def ") || line.starts_with("async def ") ||
                         line.starts_with("class ") || line.starts_with("if __name__");
    if (!is_code) RecipeWalk(file, statement.begin, statement.end).run();
  }
  const auto found = file.functions.find(name);
  if (found != file.functions.end()) {
    RecipeWalk(file, found->second.begin, found->second.end).run();
  }
  return std::move(file.read);
}

}  // namespace braid
