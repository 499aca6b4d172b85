#include "braid/cli/program.h"

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "braid/base/error.h"
#include "braid/base/suggest.h"
#include "braid/cli/verbs.h"

namespace braid {
namespace {

/// One line for a mistake on the command line; a word that nothing takes is named first, since it
/// is often why something else is missing.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = &app;
  for (const CLI::App* chosen : app.get_subcommands()) verb = chosen;
  const std::string of_verb =
      std::string("; see braid ") + (verb == &app ? "" : verb->get_name() + " ");
  const std::string help = of_verb + "--help";
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (extras.empty()) {
    const std::string message = error.what();  // "--tp: 1 required N missing"
    const bool mismatch = error.get_name() == "ArgumentMismatch";
    const std::string option = message.substr(0, message.find(':'));
    if (mismatch && message.find("At Most 1") != std::string::npos) {
      return option + ": given more than once; give it once";
    }
    // A short help need not have the option.
    const bool has_all = verb->get_option_no_throw("--help-all") != nullptr;
    return (mismatch && message.ends_with(" missing") ? option + ": needs a value" : message) +
           (has_all && option.starts_with("--") ? of_verb + "--help-all" : help);
  }
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const bool option = word.rfind('-', 0) == 0;
  std::vector<std::string> known;
  if (option) {
    for (const CLI::Option* entry : verb->get_options()) {
      for (const std::string& name : entry->get_lnames()) known.push_back("--" + name);
    }
  } else if (verb == &app) {
    for (const CLI::App* entry : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(entry->get_name());
    }
  }
  const std::string meant = nearest(word, known);
  return (option         ? "unknown option "
          : verb == &app ? "unknown command "
                         : "unexpected argument ") +
         word + (meant.empty() ? help : "; did you mean " + meant + "?");
}

}  // namespace

int fail(std::string_view message) noexcept {
  std::fputs("braid: ", stderr);
  for (const char c : message) std::fputc(c == '\n' ? ' ' : c, stderr);
  std::fputc('\n', stderr);
  return kBadInput;
}

int run_program(int argc, char** argv) {
  try {
    CLI::App app("braid plans how deep learning runs on machines", "braid");
    app.set_version_flag("--version", std::string("braid ") + BRAID_VERSION);
    app.set_help_all_flag("--help-all", "Print all options, also of single planners and profiles");
    app.require_subcommand(1);
    app.footer(
        "Example:\n  braid plan llama-3-70b --cluster dgx-h100:64 --global-batch 1024 --seq-len "
        "8192\n\nbraid COMMAND --help describes the options of a command.\nExit status: 0 found or "
        "holds, 1 infeasible or fails, 2 bad input, 3 budget exhausted.");
    std::vector<std::pair<std::string, Run>> verbs;
    verbs.emplace_back("plan", add_plan(app));
    verbs.emplace_back("evaluate", add_evaluate(app));
    verbs.emplace_back("compare", add_compare(app));
    verbs.emplace_back("profile", add_profile(app));
    verbs.emplace_back("simulate", add_simulate(app));
    verbs.emplace_back("verify", add_verify(app));
    verbs.emplace_back("export", add_export(app));
    verbs.emplace_back("report", add_report(app));
    verbs.emplace_back("validate", add_validate(app));
    verbs.emplace_back("map", add_map(app));
    verbs.emplace_back("explore", add_explore(app));
    verbs.emplace_back("tune", add_tune(app));
    verbs.emplace_back("place", add_place(app));
    verbs.emplace_back("measure", add_measure(app));
    verbs.emplace_back("run", add_run(app));
    verbs.emplace_back("serve-plan", add_serve_plan(app));
    verbs.emplace_back("decode", add_decode(app));
    verbs.emplace_back("calibrate", add_calibrate(app));
    verbs.emplace_back("list", add_list(app));
    verbs.emplace_back("show", add_show(app));
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app.exit(success);
    } catch (const CLI::ParseError& error) {
      return fail(parse_message(app, error));
    }
    for (const auto& [name, run] : verbs) {
      if (app.got_subcommand(name)) return run();
    }
    return fail("no verb given; see braid --help");
  } catch (const Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("this needs more memory than there is");
  } catch (const std::system_error& error) {
    // Of fmt, which prints what the verbs do not write to files.
    return fail(std::string("cannot write to standard output: ") + error.code().message());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "braid: internal error: %s\n", error.what());
    return kInternal;
  }
}

}  // namespace braid
