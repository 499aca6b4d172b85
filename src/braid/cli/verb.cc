#include "braid/cli/verb.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

namespace braid {

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

VerbOption VerbOption::show_default() const { return VerbOption(option_->capture_default_str()); }

VerbOption VerbOption::one_value() const { return VerbOption(option_->allow_extra_args(false)); }

bool VerbOption::given() const { return option_->count() > 0; }

std::string VerbOption::name() const { return option_->get_name(); }

bool VerbOption::is(const std::string& name) const { return option_->check_lname(name); }

Verb::Verb(CLI::App& program, const std::string& name, const std::string& description)
    : app_(program.add_subcommand(name, description)) {}

void Verb::footer(const std::string& text) { app_->footer(text); }

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
