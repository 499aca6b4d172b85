#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/serve/launch/engine_manifest.h"
#include "braid/serve/launch/launch_reader.h"
#include "braid/trainers/exchange/given_arguments.h"

namespace braid {

/// The arguments of one engine's command, and where what they say goes.
struct EngineArguments {
  GivenArguments& given;
  LaunchedWorker& worker;
  std::vector<std::string>&notes, &unknown;  ///< Of LaunchedService.
  /// The text of a file that the command names.
  std::function<std::string(const std::string& name)> text_of_file;
};

/// An argument's short or second name.
struct OtherName {
  std::string_view is, stands_for;
};

/// The program that starts an engine, by its name without folders, and the word behind it.
struct CommandStart {
  std::string_view program, verb;  ///< The verb may be empty.
};

/// How an engine is started: its command lines, read and written.
struct EngineCommand {
  std::string_view engine;   ///< Of the catalogue.
  std::string_view title;    ///< As people call it.
  std::string_view example;  ///< How a command line begins.
  std::span<const CommandStart> starts;
  std::span<const OtherName> names;
  std::string_view model;  ///< The argument that names the model; empty: it stands first alone.
  std::string_view
      to_fp8;  ///< Rounds weights to eight bits as they are loaded; empty: nothing does.
  void (*read)(const EngineArguments& to);
  std::string (*line)(const WorkerPlan& of, const LaunchNames& names, WorkerRole role);
  const EngineManifest* manifest;
};

extern const EngineCommand kVllmCommand, kSglangCommand, kTrtllmCommand;

/// All of these; an engine of one's own is started as the first.
inline constexpr std::array kEngineCommands = {&kVllmCommand, &kSglangCommand, &kTrtllmCommand};

/// The command of the engine of that name; that of the first for an engine of one's own.
const EngineCommand& command_of_engine(std::string_view engine);

/// Words of a command with the names that stand for others written out: "-tp" as
/// "--tensor-parallel-size".
std::vector<std::string> written_out(std::span<const std::string> words,
                                     std::span<const OtherName> names);

/// A count that may end with k, m, g (thousands) or K, M, G (1,024s), as "32k"; nullopt: not given,
/// or "auto" and -1, which leave it to the engine. Throws Error.
std::optional<double> tokens_of(GivenArguments& given, std::string_view name);
/// A share above 0 and up to 1. Throws Error.
std::optional<double> share_of(GivenArguments& given, std::string_view name);
/// A degree of parallelism, 1 where it is not given. Throws Error.
std::int64_t degree_of(GivenArguments& given, std::string_view name);

/// The precision of weights that a method of quantisation means: "fp8", "fp4", "int4"; empty where
/// it is not known.
std::string precision_of_method(std::string_view method);
/// "fp8" or "bf16" of the name that an engine has for the numbers of its cache; empty: as the
/// checkpoint says. Throws Error naming the argument.
std::string cache_of(GivenArguments& given, std::string_view name);

/// Most tokens that a draft model makes a round.
inline constexpr std::int64_t kMostDrafted = 64;
/// Adds that drafts are made in a way that is not modelled, which `argument` says.
void note_other_drafts(const EngineArguments& to, std::string_view argument,
                       std::string_view method);

/// Adds a sentence for each argument that is given and not modelled.
struct NotModelled {
  std::string_view name, why;
};
void note_given(const EngineArguments& to, std::span<const NotModelled> arguments);

}  // namespace braid
