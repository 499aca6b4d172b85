#include <cstdio>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "braid/base/error.h"
#include "braid/cli/verbs.h"

namespace {

int fail(const std::string& message) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::fprintf(stderr, "braid: %s\n", line.c_str());
  return braid::kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("braid plans how deep learning runs on machines", "braid");
    app.set_version_flag("--version", std::string("braid ") + BRAID_VERSION);
    app.require_subcommand(1);
    std::vector<std::pair<std::string, braid::Run>> verbs;
    verbs.emplace_back("plan", braid::add_plan(app));
    verbs.emplace_back("compare", braid::add_compare(app));
    verbs.emplace_back("profile", braid::add_profile(app));
    verbs.emplace_back("simulate", braid::add_simulate(app));
    verbs.emplace_back("verify", braid::add_verify(app));
    verbs.emplace_back("list", braid::add_list(app));
    verbs.emplace_back("show", braid::add_show(app));
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app.exit(success);
    } catch (const CLI::ParseError& error) {
      return fail(std::string(error.what()) + "; see braid --help");
    }
    for (const auto& [name, run] : verbs) {
      if (app.got_subcommand(name)) return run();
    }
    return fail("no verb given; see braid --help");
  } catch (const braid::Error& error) {
    return fail(error.what());
  } catch (const std::bad_alloc&) {
    return fail("this needs more memory than there is");
  }
}
