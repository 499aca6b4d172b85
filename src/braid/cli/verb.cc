#include "braid/cli/verb.h"

#include <memory>
#include <utility>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

namespace braid {
namespace {

/// Leaves headings out of --help, and none out of --help-all.
class GroupFormatter final : public CLI::Formatter {
 public:
  explicit GroupFormatter(std::function<bool(const std::string&)> shown)
      : shown_(std::move(shown)) {}

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (!is_positional && !shown_(group)) return "";
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::All) {
      return CLI::Formatter().make_help(app, std::move(name), mode);
    }
    // What is left out leaves empty lines.
    std::string text;
    for (const char c : CLI::Formatter::make_help(app, std::move(name), mode)) {
      if (c != '\n' || !text.ends_with("\n\n")) text += c;
    }
    return text;
  }

 private:
  std::function<bool(const std::string&)> shown_;
};

}  // namespace

VerbOption VerbOption::required(bool value) const { return VerbOption(option_->required(value)); }

VerbOption VerbOption::one_of(const std::vector<std::string>& words) const {
  return VerbOption(option_->check(CLI::IsMember(words)));
}

VerbOption VerbOption::excludes(const VerbOption& other) const {
  return VerbOption(option_->excludes(other.option_));
}

VerbOption VerbOption::group(const std::string& heading) const {
  return VerbOption(option_->group(heading));
}

VerbOption VerbOption::delimiter(char between) const {
  return VerbOption(option_->delimiter(between));
}

VerbOption VerbOption::type_name(const std::string& name) const {
  return VerbOption(option_->type_name(name));
}

VerbOption VerbOption::show_default(const std::string& text) const {
  return VerbOption(option_->default_str(text));
}

VerbOption VerbOption::one_value() const { return VerbOption(option_->allow_extra_args(false)); }

bool VerbOption::given() const { return option_->count() > 0; }

std::string VerbOption::name() const { return option_->get_name(); }

bool VerbOption::is(const std::string& name) const { return option_->check_lname(name); }

Verb::Verb(CLI::App& program, const std::string& name, const std::string& description)
    : app_(program.add_subcommand(name, description)) {}

void Verb::footer(const std::string& text) { app_->footer(text); }

void Verb::show_group_if(std::function<bool(const std::string& heading)> shown) {
  app_->formatter(std::make_shared<GroupFormatter>(std::move(shown)));
}

VerbOption Verb::add_option(const std::string& name, std::string& value,
                            const std::string& description) {
  return VerbOption(app_->add_option(name, value, description));
}

VerbOption Verb::add_option(const std::string& name, std::vector<std::string>& values,
                            const std::string& description) {
  return VerbOption(app_->add_option(name, values, description));
}

VerbOption Verb::add_option(const std::string& name,
                            const std::function<void(const std::string&)>& set,
                            const std::string& description) {
  return VerbOption(app_->add_option_function<std::string>(name, set, description));
}

VerbOption Verb::add_repeated(const std::string& name,
                              const std::function<void(const std::vector<std::string>&)>& set,
                              const std::string& description) {
  return VerbOption(app_->add_option_function<std::vector<std::string>>(name, set, description)
                        ->expected(1)
                        ->take_all()
                        ->allow_extra_args(false));
}

VerbOption Verb::add_flag(const std::string& name, bool& value, const std::string& description) {
  return VerbOption(app_->add_flag(name, value, description));
}

VerbOption Verb::option(const std::string& name) const {
  return VerbOption(app_->get_option(name));
}

std::vector<VerbOption> Verb::options() const {
  std::vector<VerbOption> options;
  for (CLI::Option* option : app_->get_options()) options.emplace_back(option);
  return options;
}

}  // namespace braid
