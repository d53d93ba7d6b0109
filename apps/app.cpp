#include "apps/app.h"

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "apps/bash_completion.h"
#include "apps/build_facts.h"
#include "apps/check_files.h"
#include "apps/command_line.h"
#include "apps/manual_page.h"
#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/instruction_set.h"

namespace alpa {
namespace {

/// How long a failing rank waits for the others to fail too. Longer than the same check takes to fail on the
/// slowest rank, short beside the minute in which a broken job must be gone.
constexpr double kFailureGrace_s = 2;

struct Failure {
  int status = 1;
  std::string text;
};

/// What leaves a body as status and text; nothing where it returns.
template <class Body>
std::optional<Failure> failure_of(Body&& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{static_cast<int>(error.kind()), error.what()};
  } catch (const std::exception& error) {
    return Failure{1, error.what()};
  }
}

void print(const std::string& who, const Failure& failure) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: error: {}\n", who, failure.text);
}

const char* text_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "";
}

std::string version_text(const std::string& name) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);  // allowed before MPI_Init
  std::string mpi_line(mpi);
  mpi_line = mpi_line.substr(0, mpi_line.find('\n'));
  std::replace(mpi_line.begin(), mpi_line.end(), '\t', ' ');
  return fmt::format(
      "{} {} ({})\ncompiler: {}, {}\nMPI: {}\nHDF5: {}\nCBC: {}\noneDNN: {}\nSentencePiece: {}\nCUDA: "
      "{}\nNCCL: {}\n"
      "vector instructions: {}, the widest of baseline, avx2 and avx512 that this processor has\n",
      name, build::kVersion, build::kRevision, build::kCompiler, build::kFlags, mpi_line, build::kHdf5,
      build::kCbc, build::kOneDnn, build::kSentencePiece, build::kCuda, build::kNccl,
      text_of(best_instruction_set()));
}

}  // namespace

HangLimits hang_limits(double timeout_s) { return {0.1 * timeout_s, timeout_s}; }

Command& App::subcommand(const std::string& name, const std::string& purpose) {
  return *subcommands_.emplace_back(std::make_unique<Command>(name, purpose));
}

Command& App::parallel_subcommand(const std::string& name, const std::string& purpose,
                                  std::function<int(const ParallelRun&)> body) {
  Command& command = subcommand(name, purpose);
  parallel_.emplace_back(&command, std::move(body));
  return command;
}

std::vector<NamedCommand> App::named_commands() const {
  std::vector<NamedCommand> all{{name(), this}};
  for (const auto& subcommand : subcommands_)
    all.push_back({name() + " " + subcommand->name(), subcommand.get()});
  return all;
}

std::string App::help_in_form(const NamedCommand& command) const {
  switch (help_form_) {
    case HelpForm::man:
      return manual_page(named_commands(), fmt::format("alpa {}", build::kVersion), build::kDate);
    case HelpForm::bash:
      return bash_completion(named_commands());
    case HelpForm::text:
      break;
  }
  std::vector<const Command*> others;
  if (command.command == this)
    for (const auto& subcommand : subcommands_) others.push_back(subcommand.get());
  return command.command->help(command.full_name, others);
}

const Command* App::parse(int argc, const char* const* argv, bool speaks) {
  for (int i = 0; i < argc; ++i) command_line_ += (i ? " " : "") + std::string(argv[i]);
  const std::vector<Word<LogLevel>> levels{{"debug", LogLevel::debug},
                                           {"info", LogLevel::info},
                                           {"warning", LogLevel::warning},
                                           {"error", LogLevel::error},
                                           {"off", LogLevel::off}};
  const auto add_common = [&](Command& command) {
    if (command.has_outputs()) command.flag("--force", force_, "replace files that exist");
    command.option("--log-level", log_level_, "least serious line of the log", levels)
        .flag("--help", help_, "print this and exit; -h too")
        .flag("--version", version_, "print the version and what it was built with, and exit");
  };
  add_common(*this);
  option("--help-as", help_form_, "print the help of this command and all below it in another form, and exit",
         {{"text", HelpForm::text, "as --help does, of this command alone"},
          {"man", HelpForm::man, "a manual page: --help-as man > page.1; man -l page.1"},
          {"bash", HelpForm::bash, "completion for bash, to be sourced"}});
  CLI::App cli;
  std::vector<ParsedCommand> commands;
  for (const auto& subcommand : subcommands_) add_common(*subcommand);
  for (NamedCommand& command : named_commands())
    commands.push_back(
        {command, command.command == this ? &cli : cli.add_subcommand(command.command->name())});
  cli.require_subcommand(0, 1);
  for (ParsedCommand& command : commands) register_settings(command);
  refuse_empty_values(argc, argv);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& error) {
    refuse_without_value(error.what(), commands);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, error.what(), "see --help");
  }
  const ParsedCommand* chosen = &commands[0];
  for (const ParsedCommand& command : commands)
    if (command.cli != &cli && command.cli->parsed()) chosen = &command;
  if (chosen->is_given("--help") || chosen->is_given("--help-as") || chosen->is_given("--version")) {
    for (const auto& [setting, option] : chosen->options)
      if (setting->name == "--help-as" && option->count() > 0) setting->set(option->results().back());
    const std::string text =
        chosen->is_given("--version") ? version_text(name()) : help_in_form(chosen->command);
    if (speaks) std::fputs(text.c_str(), stdout);
    return nullptr;
  }
  const Command* const command = chosen->command.command;
  if (chosen != &commands[0]) refuse_before_command(commands[0], *command);
  if (command == this && argc > 1) check_first_word(argv[1], named_commands());
  apply(*chosen);
  return command;
}

int App::run_serial(int argc, const char* const* argv) {
  const Command* command = this;
  int status = 0;
  const std::optional<Failure> failure = failure_of([&] {
    command = parse(argc, argv, true);
    if (command) status = run_here(*command);
  });
  if (!failure) return status;
  print(name(), *failure);
  return command ? command->failure_status(failure->status) : failure->status;
}

int App::run_here(const Command& command) {
  log_ = std::make_unique<Log>(name(), log_level_);
  assert(command.has_body());
  check_files(command, force_);
  const int status = command.run();
  if (std::fflush(stdout) != 0)
    throw Error(ErrorKind::run_time, fmt::format("cannot write the output: {}", std::strerror(errno)),
                "free some space or quota where the output goes");
  return status;
}

int App::run_parallel(int argc, const char* const* argv, const std::function<int(const ParallelRun&)>& body) {
  parallel_.emplace_back(this, body);
  for (const auto& [command, its_body] : parallel_) {
    command->option(
        "--hang-timeout", hang_timeout_s_,
        "exit with status 7 when another rank has kept this one waiting for that many seconds; after a tenth "
        "of them a message says which rank (MPI) or in which call (GPUs); 0: wait for ever",
        at_least(0));
    command->may_end_with({ErrorKind::allocation, ErrorKind::peer});
  }
  const Environment environment = read_environment();
  const bool speaks = environment.process == 0;
  const Command* command = nullptr;
  decltype(parallel_)::const_iterator on_ranks = parallel_.end();
  int status = 0;
  if (const auto failure = failure_of([&] {
        command = parse(argc, argv, speaks);
        on_ranks = std::ranges::find(parallel_, command, [](const auto& each) { return each.first; });
        if (command && on_ranks == parallel_.end()) status = run_here(*command);
      })) {
    if (speaks) print(name(), *failure);
    return command ? command->failure_status(failure->status) : failure->status;
  }
  return on_ranks == parallel_.end() ? status : run_on_ranks(*command, environment, on_ranks->second);
}

int App::run_on_ranks(const Command& command, const Environment& environment,
                      const std::function<int(const ParallelRun&)>& body) {
  int status = 0;
  std::optional<StopRequest> stop;  // before MPI starts, which may start threads
  std::optional<MpiSession> session;
  if (const auto failure = failure_of([&] {
        stop.emplace();
        session.emplace(environment.tasks);
      })) {
    print(name(), *failure);
    return failure->status;
  }
  const int rank = session->rank();
  const std::string who = session->size() > 1 ? fmt::format("{}: rank {}", name(), rank) : name();
  Log log(rank == 0 ? name() : who, rank == 0 ? log_level_ : std::max(log_level_, LogLevel::warning));
  const auto failure = failure_of([&] {
    session->watch(hang_limits(hang_timeout_s_), environment.node_name,
                   [&log](const std::string& what) { log.warning(what); });
    check_files(command, force_);
    status = body({*session, *stop, log, environment});
  });
  if (failure) {
    status = failure->status;
    const std::uint64_t digest = hash64(fmt::format("{} {}", status, failure->text));
    const FailureReach reach = session->failure_reach(digest, kFailureGrace_s);
    if (reach != FailureReach::every_rank_alike)
      print(who, *failure);
    else if (rank == 0)
      print(name(), *failure);
    if (reach == FailureReach::some_ranks) session->abort(status);
  }
  session->finish(status);
  return status;
}

}  // namespace alpa
