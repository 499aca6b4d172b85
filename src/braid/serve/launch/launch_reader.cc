#include "braid/serve/launch/launch_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "braid/base/and_list.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/text.h"
#include "braid/serve/launch/engine_arguments.h"
#include "braid/trainers/exchange/shell_script.h"

namespace braid {
namespace {

/// The command of an engine within the words of one: which it is, where its arguments begin.
struct FoundCommand {
  const EngineCommand* of = nullptr;
  std::size_t arguments = 0;
};

std::optional<FoundCommand> engine_command(const std::vector<std::string>& words) {
  const auto is = [&](std::size_t at, std::string_view name) {
    if (at >= words.size()) return false;
    const std::string_view word = words[at];
    return word.substr(word.rfind('/') + 1) == name;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const EngineCommand* each : kEngineCommands) {
      for (const auto& [program, verb] : each->starts) {
        if (!is(i, program)) continue;
        if (verb.empty()) return FoundCommand{each, i + 1};
        if (is(i + 1, verb)) return FoundCommand{each, i + 2};
      }
    }
  }
  return std::nullopt;
}

/// What a comment says of the next command.
struct Headline {
  std::int64_t workers = 0;
  std::optional<WorkerRole> role;
  std::string precision;
};

/// The words of a line, with signs of redirection as words of their own, without commas behind
/// them and quotes around them.
std::vector<std::string> words_of(const std::string& line) {
  std::string spaced;
  for (const char c : line) {
    const bool sign = c == '<' || c == '>' || c == '#';
    const bool doubled = c == '<' && spaced.ends_with("< ");
    if (doubled) spaced.pop_back();
    if (sign && !doubled) spaced += ' ';
    spaced += c;
    if (sign) spaced += ' ';
  }
  std::vector<std::string> words;
  std::istringstream from(spaced);
  for (std::string word; from >> word;) {
    if (word.ends_with(',')) word.pop_back();
    const bool quoted = word.size() > 1 && word.front() == word.back() &&
                        (word.front() == '\'' || word.front() == '"');
    words.push_back(quoted ? word.substr(1, word.size() - 2) : word);
  }
  return words;
}

/// "# 6 prefill workers in fp8, 1 GPU each"; also "# 6 workers of prompts in fp8".
std::optional<Headline> headline_of(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  constexpr std::size_t kMostDigits = 6;
  const auto is_at = [&](std::size_t at, std::string_view word) {
    return at < words.size() && words[at] == word;
  };
  const bool counts = words.size() >= 3 && words[0] == "#" && !words[1].empty() &&
                      words[1].size() <= kMostDigits &&
                      std::all_of(words[1].begin(), words[1].end(), is_digit);
  if (!counts) return std::nullopt;
  Headline result;
  std::size_t next = 2;
  const auto take_role = [&](std::size_t at, std::string_view prompts, std::string_view decoding) {
    const bool known = is_at(at, prompts) || is_at(at, decoding);
    if (known) result.role = is_at(at, prompts) ? WorkerRole::prompts : WorkerRole::decoding;
    return known;
  };
  if (take_role(next, "prefill", "decode")) ++next;
  if (!is_at(next, "workers") && !is_at(next, "worker")) return std::nullopt;
  result.workers = std::stoll(words[1]);
  ++next;
  if (is_at(next, "of") && take_role(next + 1, "prompts", "decoding")) next += 2;
  if (is_at(next, "in") && next + 1 < words.size()) result.precision = words[next + 1];
  return result;
}

/// A script as it is read: what it writes to files taken out, in parts that begin with a headline.
struct LaunchScript {
  std::vector<std::pair<std::optional<Headline>, std::string>> parts;
  std::map<std::string, std::string> files;
};

/// "\n" of printf's format as a line's end, "%%" as a percent sign.
std::string printed(std::string_view format) {
  std::string text;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool two = i + 1 < format.size();
    if (two && format[i] == '\\' && format[i + 1] == 'n') {
      text += '\n';
      ++i;
    } else if (two && format[i] == '%' && format[i + 1] == '%') {
      text += '%';
      ++i;
    } else {
      text += format[i];
    }
  }
  return text;
}

/// Puts a name in place of <(printf '…').
std::string without_printed(std::string line, std::map<std::string, std::string>& files) {
  constexpr std::string_view kBegin = "<(printf '", kEnd = "')";
  for (std::size_t at = line.find(kBegin); at != std::string::npos; at = line.find(kBegin, at)) {
    const std::size_t from = at + kBegin.size();
    const std::size_t end = line.find(kEnd, from);
    if (end == std::string::npos) return line;
    const std::string name = "options-" + std::to_string(files.size() + 1) + ".yaml";
    files[name] = printed(std::string_view(line).substr(from, end - from));
    line.replace(at, end + kEnd.size() - at, name);
  }
  return line;
}

/// The file and the last line of cat > FILE <<EOF, cat <<'EOF' > FILE and the like.
std::optional<std::pair<std::string, std::string>> here_document(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  if (words.size() != 5 || words[0] != "cat") return std::nullopt;
  if (words[1] == "<<" && words[3] == ">") {
    std::swap(words[1], words[3]);
    std::swap(words[2], words[4]);
  }
  if (words[1] != ">" || words[3] != "<<") return std::nullopt;
  std::string& until = words[4];
  if (until.starts_with('-')) until.erase(0, 1);  // Of <<-EOF.
  if (until.empty()) return std::nullopt;
  return std::pair(words[2], until);
}

LaunchScript launch_script(std::string_view text) {
  LaunchScript script;
  script.parts.emplace_back();
  std::istringstream lines{std::string(text)};
  std::string until, file;
  for (std::string line; std::getline(lines, line);) {
    std::string& part = script.parts.back().second;
    if (!until.empty()) {
      if (line == until) {
        until.clear();
      } else {
        script.files[file] += line + "\n";
      }
      part += '\n';
      continue;
    }
    if (const auto document = here_document(line)) {
      std::tie(file, until) = *document;
      script.files[file].clear();
      part += '\n';
      continue;
    }
    const std::optional<Headline> headline = headline_of(line);
    if (headline) script.parts.emplace_back(headline, "");
    script.parts.back().second += without_printed(line, script.files) + "\n";
  }
  return script;
}

class LaunchReader {
 public:
  using TextOfFile = std::function<std::string(const std::string& name)>;

  LaunchReader(std::string_view text, std::string file, const TextOfFile& text_of_file)
      : script_(launch_script(text)), file_(std::move(file)), text_of_file_(text_of_file) {}

  LaunchedService read() {
    for (const auto& [headline, part] : script_.parts) {
      const ShellScript commands = read_shell_script(part, file_);
      std::optional<Headline> next = headline;
      for (const ShellCommand& words : commands.commands) {
        const auto command = engine_command(words);
        if (!command) continue;
        read_command(words, *command, std::exchange(next, std::nullopt));
      }
      for (const std::string& name : commands.undefined) {
        service_.notes.push_back(name + ": what it stands for is not known, and left out");
      }
    }
    check_roles();
    return std::move(service_);
  }

 private:
  std::string text_of(const std::string& name) const {
    const auto here = script_.files.find(name);
    if (here != script_.files.end()) return here->second;
    return text_of_file_(name);
  }

  void read_command(const std::vector<std::string>& words, const FoundCommand& command,
                    const std::optional<Headline>& headline) {
    LaunchedWorker worker;
    worker.engine = command.of->engine;
    std::vector<std::string> arguments(words.begin() + std::ptrdiff_t(command.arguments),
                                       words.end());
    if (!arguments.empty() && !arguments.front().starts_with("-")) worker.model = arguments.front();
    arguments = written_out(arguments, command.of->names);
    GivenArguments given(arguments, file_);
    if (!command.of->model.empty()) {
      if (const auto model = given.text(command.of->model)) worker.model = *model;
    }
    command.of->read({given, worker, service_.notes, service_.unknown,
                      [&](const std::string& name) { return text_of(name); }});
    if (headline) take(*headline, worker);
    const std::vector<std::string> unknown = given.unknown();
    service_.unknown.insert(service_.unknown.end(), unknown.begin(), unknown.end());
    service_.workers.push_back(std::move(worker));
  }

  static void take(const Headline& headline, LaunchedWorker& worker) {
    worker.workers = headline.workers;
    if (headline.role) {
      worker.role = *headline.role;
      worker.tells_role = true;
    }
    if (!headline.precision.empty()) worker.precision = headline.precision;
  }

  [[noreturn]] void fail_without_engine() const {
    std::vector<std::string> titles, examples;
    for (const EngineCommand* each : kEngineCommands) {
      titles.emplace_back(each->title);
      examples.push_back(in_quotes(std::string(each->example) + " …"));
    }
    throw Error(Where{file_, 0, ""}, "nothing here starts " + and_list(titles, " or "),
                "give " + and_list(examples, " or "));
  }

  void check_roles() const {
    const std::vector<LaunchedWorker>& workers = service_.workers;
    if (workers.empty()) fail_without_engine();
    if (workers.size() == 1 && workers.front().role == WorkerRole::all) return;
    const auto count = [&](WorkerRole role) {
      return std::count_if(workers.begin(), workers.end(),
                           [&](const LaunchedWorker& each) { return each.role == role; });
    };
    if (workers.size() == 2 && count(WorkerRole::prompts) == 1 &&
        count(WorkerRole::decoding) == 1 && workers[0].engine == workers[1].engine) {
      return;
    }
    throw Error(Where{file_, 0, ""},
                "this is not one engine's aggregated workers, nor its prefill and decode workers, "
                "one command for each kind",
                "put a line '# 2 prefill workers' or '# 1 decode worker' above each");
  }

  LaunchScript script_;
  std::string file_;
  const TextOfFile& text_of_file_;
  LaunchedService service_;
};

}  // namespace

bool is_launch_text(std::string_view text) {
  const auto is_named = [&](const EngineCommand* each) {
    return std::any_of(each->starts.begin(), each->starts.end(),
                       [&](const CommandStart& start) { return contains(text, start.program); });
  };
  if (std::none_of(kEngineCommands.begin(), kEngineCommands.end(), is_named)) return false;
  try {
    for (const auto& [headline, part] : launch_script(text).parts) {
      for (const ShellCommand& words : read_shell_script(part, "").commands) {
        if (engine_command(words)) return true;
      }
    }
  } catch (const Error&) {
    return false;  // Whoever reads it says what is wrong with it.
  }
  return false;
}

LaunchedService read_launch_lines(
    std::string_view text, const std::string& file,
    const std::function<std::string(const std::string& name)>& text_of_file) {
  return LaunchReader(text, file, text_of_file).read();
}

LaunchedService read_launch_lines(std::string_view text, const std::string& file) {
  return read_launch_lines(text, file, [&](const std::string& name) {
    std::error_code error;
    const std::filesystem::path beside = std::filesystem::path(file).parent_path() / name;
    const bool is_beside = std::filesystem::is_regular_file(beside, error);
    return read_file(is_beside ? beside.string() : name);
  });
}

}  // namespace braid
