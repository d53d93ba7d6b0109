#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/environment.h"
#include "libalpa/base/hang_limits.h"
#include "libalpa/base/log.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/comm/mpi_session.h"

namespace alpa {

/// What a rank of a parallel command works with.
struct ParallelRun {
  MpiSession& session;
  const StopRequest& stop;
  Log& log;  ///< rank 0 speaks, the others warn
  const Environment& environment;
};

/// Waits of `timeout_s` end with ErrorKind::peer (0: never), and are reported after a tenth of that.
HangLimits hang_limits(double timeout_s);

/// The forms that the help comes in (--help-as): all say what the registered commands and settings say.
enum class HelpForm { text, man, bash };

/// The frame common to the commands: the command line, --help, --version, --log-level, --force, what a
/// failure looks like, and exit statuses.
///
///     App app("alpa-plan", "choose how to split a model over a cluster");
///     app.argument("MODEL.toml", model, "model definition").option("--out", out, "plan to write (HDF5)");
///     app.subcommand("explain", "explain a plan").argument("PLAN.h5", plan, "...").runs([&] { ... });
///     return app.run(argc, argv, [&] { ... });
///
/// A failure is printed on stderr as "alpa-plan: error: what happened", then what to try and what was being
/// done, and becomes the exit status of its kind; std::exception becomes 1.
class App : public Command {
 public:
  App(const std::string& name, const std::string& purpose) : Command(name, purpose) {}

  /// The reference stays valid.
  Command& subcommand(const std::string& name, const std::string& purpose);

  /// One that run_parallel() runs on every rank.
  Command& parallel_subcommand(const std::string& name, const std::string& purpose,
                               std::function<int(const ParallelRun&)> body);

  /// Runs `body`, or the subcommand that the command line names, in this process alone; MPI is never started.
  /// The result is the exit status.
  template <class Body>
  int run(int argc, const char* const* argv, Body body) {
    runs(std::move(body));
    return run_serial(argc, argv);
  }

  /// Runs `body` or that of a parallel subcommand on every rank of an MPI job, or a subcommand as run() does.
  /// Signals are handled and MPI is started before it; after it, MPI ends with its result as the exit status.
  ///
  /// Where an exception leaves the body of every rank within two seconds, all end MPI in order, and a failure
  /// that is the same everywhere is printed once. Where it leaves only some, those print theirs and abort the
  /// others, which would wait for them for ever; those that a rank keeps waiting for --hang-timeout do so
  /// with the status of ErrorKind::peer. So checks that all ranks make alike need no agreement, and those of
  /// one rank need no message.
  int run_parallel(int argc, const char* const* argv, const std::function<int(const ParallelRun&)>& body);

  /// The log of a serial command or subcommand, once it runs.
  Log& log() { return *log_; }

  /// The whole command line, for provenance.
  const std::string& command_line() const { return command_line_; }

 private:
  int run_serial(int argc, const char* const* argv);
  int run_here(const Command& command);
  int run_on_ranks(const Command& command, const Environment&,
                   const std::function<int(const ParallelRun&)>& body);

  /// The command that the line names, its settings set; nullptr where the line asked for help or the version,
  /// which are on stdout then. Throws Error(usage).
  const Command* parse(int argc, const char* const* argv, bool speaks);
  std::vector<NamedCommand> named_commands() const;  ///< this one, then its subcommands
  /// What the line that named `command` gets where it asked for the help in another form.
  std::string help_in_form(const NamedCommand& command) const;

  std::vector<std::unique_ptr<Command>> subcommands_;
  std::vector<std::pair<Command*, std::function<int(const ParallelRun&)>>> parallel_;
  LogLevel log_level_ = LogLevel::info;
  double hang_timeout_s_ = 1800;
  bool force_ = false;
  bool help_ = false, version_ = false;
  HelpForm help_form_ = HelpForm::text;
  std::unique_ptr<Log> log_;
  std::string command_line_;
};

}  // namespace alpa
