#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace braid::test {

/// What a value of the JSON that a run prints must be.
struct Fact {
  enum class Relation : std::uint8_t {
    is,
    near,
    at_least,
    at_most,
    has,
    size,
    same_as,
    keys_of,
    absent
  };

  std::string pointer;  ///< RFC 6901: /stages/0/dp.
  Relation relation = Relation::is;
  nlohmann::json value;
};

/// The name and the text of a file, or a part of one.
using FileText = std::pair<std::string, std::string>;

/// What stdout or stderr must be.
struct ExpectedText {
  std::vector<std::string> has, lacks;
  std::optional<std::string> is;
};

/// A piece of a file that is exchanged for one run.
struct Edit {
  std::string file, from, to;
};

/// One run of braid and what it must do.
struct CaseRun {
  int line = 0;  ///< In the file of cases.
  std::vector<std::string> words;
  std::vector<FileText> files;  ///< There for this run only.
  std::vector<Edit> edits;      ///< The same.
  bool fails = false;  ///< Says why in one line and no more: expect_one_line in case_run.cc.
  int status = 0;
  ExpectedText out, err;
  std::vector<Fact> facts;        ///< Of stdout.
  std::string save;               ///< The file that stdout goes to, if any.
  std::vector<FileText> written;  ///< Files that the run leaves, and what is in them.
};

/// Runs one after another in one folder.
struct Case {
  std::string file;  ///< Whose case it is, as its reader calls it.
  std::string name;
  std::vector<FileText> files;
  std::vector<CaseRun> runs;
};

/// Reads a YAML file of cases:
///
///     files: {NAME: TEXT}       # written for every case; case and run may have more
///     command: WORDS            # what the words of every run begin with; case and run may have
///     their own cases:
///       - name: LettersAndDigits
///         each: {WORD: [a, b]}  # all runs for each of these; {WORD} stands for it in their texts
///         runs:                 # or the keys of a single run in the case itself
///           - args: plan f.json --cluster ''       # quotes keep a word together
///             edit: [f.json, FROM, TO]             # for this run, the first FROM
///             each: {X: [c, d]}                    # this run for each of these
///             refused: TEXT     # bad input, which stderr's one line says
///           - args: plan f.json --memory '1 B'
///             no_plan: TEXT     # the same with exit status 1, or what `status` says
///           - args: plan f.json --json -o p.json
///             status: 0                            # which it is by default
///             out: TEXT         # or a list; also err, out_lacks, err_lacks, out_is, err_is
///             json: {/stages: {size: 2}, /status: optimal, /gap: {near: 0.25}, /x: {absent: true}}
///             written: {p.json: TEXT}
///             save: out.json                       # what stdout is written to, for later runs
///
/// A file's text may be {text: T, times: N}, {hex: ff, times: N} or {copy: PATH}, of this
/// repository. {source} stands for the repository's folder. Facts of `json` are also at_least,
/// at_most, has, same_as and keys_of (another place). Throws Error for keys that it does not know,
/// runs that expect nothing, names that come twice or are empty, and variables that nothing uses.
std::vector<Case> read_cases(const std::string& path);
std::vector<Case> parse_cases(const std::string& text, const std::string& file);

}  // namespace braid::test
