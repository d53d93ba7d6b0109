#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/options.h"

namespace alpa {

/// What becomes of the files that a setting names.
enum class FileRole {
  none,       ///< it names none
  read,       ///< they, and all in them that are folders, stay as they are
  written,    ///< made; those that exist are replaced with --force only
  continued,  ///< made, or added to
};

/// The files that a setting names, once the command line is parsed.
using Files = std::function<std::vector<std::filesystem::path>()>;

/// One argument or option as the command line and its help see it.
struct Setting {
  std::string name;             ///< "MODEL.toml", "--out"
  std::string value_name = {};  ///< what stands for the value in the help; "" for a flag
  std::string help;
  std::string default_value = {};  ///< the default as text; "" where there is none
  bool is_required = false;
  bool takes_several = false;                        ///< `set` is called for each
  std::vector<std::string> words = {};               ///< lines "word  sentence" for the help
  std::function<void(const std::string&)> set = {};  ///< throws Error(usage); a flag's gets ""
  FileRole role = FileRole::none;
  Files files = {};  ///< where it has a role
  /// Of a file that exists: whether the same work wrote it before, so that it is replaced without --force.
  std::function<bool(const std::filesystem::path&)> is_earlier = {};

  bool is_argument() const { return name[0] != '-'; }
  bool is_flag() const { return value_name.empty(); }
  std::string described() const;  ///< "--out PATH: plan to write"
};

/// What a command takes and runs. Options are long ones (--help is -h too). References must live until the
/// command has run; what they hold at registration is the default that the help prints.
class Command {
 public:
  Command(std::string name, std::string purpose) : name_(std::move(name)), purpose_(std::move(purpose)) {}

  /// A file that must be given by its place. It is read, as those of options are, unless more is said.
  Command& argument(const std::string& name, std::filesystem::path& value, const std::string& help);

  /// Files by their place, one or more.
  Command& arguments(const std::string& name, std::vector<std::filesystem::path>& values,
                     const std::string& help);

  Command& option(const std::string& name, std::filesystem::path& value, const std::string& help);

  /// Ones that may be given several times.
  Command& option(const std::string& name, std::vector<std::filesystem::path>& values,
                  const std::string& help);
  Command& option(const std::string& name, std::vector<std::string>& values, const std::string& help);
  Command& option(const std::string& name, std::vector<double>& values, const std::string& help, Range range);

  /// An option for each setting that describe(settings, visit) lists: "micro_batches" is --micro-batches.
  template <class Settings>
  Command& options(Settings& settings) {
    return described([&settings](OptionsVisitor& visit) { describe(settings, visit); });
  }

  /// A single one, with what OptionsVisitor::field() says of it.
  template <class Value>
  Command& option(const std::string& name, Value& value, const std::string& help, Range range) {
    return described([=, &value](OptionsVisitor& visit) { visit.field(name, value, help, range); });
  }
  template <class Value>
  requires std::is_enum_v<Value> Command& option(
      const std::string& name, Value& value, const std::string& help,
      const std::type_identity_t<std::vector<Word<Value>>>& words) {
    return described([=, &value](OptionsVisitor& visit) { visit.field(name, value, help, words); });
  }
  /// `form` stands for the value in the help.
  Command& option(const std::string& name, std::string& value, const std::string& help,
                  const std::string& form = "TEXT");
  Command& flag(const std::string& name, bool& value, const std::string& help);

  /// The option named last must be given.
  Command& required();

  /// What becomes of the files that the setting named last names: its path, or what `files` says. Outputs
  /// that are inputs, or one file, or would replace another's work are refused before the command runs
  /// (check_files()). A command that writes has the option --force.
  Command& reads(Files files);
  Command& writes(Files files = {});
  Command& continues(Files files = {});
  /// Written; a file that exists and of which `is_earlier` holds was written by the same work.
  Command& renews(std::function<bool(const std::filesystem::path&)> is_earlier);

  Command& example(const std::string& command_line, const std::string& what);

  /// What the command does; the result is the exit status (void: 0).
  template <class Body>
  Command& runs(Body body) {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>)
      body_ = [body] { return body(), 0; };
    else
      body_ = body;
    return *this;
  }

  /// Its failures may be of these kinds too, beside those that every command has: run_time, usage and input.
  Command& may_end_with(const std::vector<ErrorKind>& kinds);

  /// Exit statuses of its own with what they mean, and the status of every failure.
  Command& exit_statuses(std::vector<std::pair<int, std::string>> meanings, int failure);

  const std::string& name() const { return name_; }
  const std::string& purpose() const { return purpose_; }
  const std::vector<Setting>& settings() const { return settings_; }
  const std::vector<std::pair<std::string, std::string>>& examples() const { return examples_; }
  std::vector<std::pair<int, std::string>> statuses() const;  ///< exit statuses with what they mean
  bool has_outputs() const;                                   ///< files that are written

  /// "alpa-plan MODEL.toml --out PATH [options]"
  std::string usage(const std::string& full_name) const;

  /// purpose, usage, arguments, options, exit statuses, examples. `full_name` begins with the program's name.
  std::string help(const std::string& full_name, const std::vector<const Command*>& subcommands) const;

  int run() const { return body_(); }
  bool has_body() const { return static_cast<bool>(body_); }
  /// The status of a failure of this kind.
  int failure_status(int kind) const { return failure_status_ ? failure_status_ : kind; }

 private:
  Command& described(const std::function<void(OptionsVisitor&)>& list);
  Command& add(Setting setting);
  Command& add_path(Setting setting, std::filesystem::path& value);
  Command& add_paths(Setting setting, std::vector<std::filesystem::path>& values);
  Command& plays(FileRole role, Files files);

  std::string name_, purpose_;
  std::vector<Setting> settings_;
  std::vector<std::pair<std::string, std::string>> examples_;
  std::vector<ErrorKind> kinds_{ErrorKind::run_time, ErrorKind::usage, ErrorKind::input};
  std::vector<std::pair<int, std::string>> exit_meanings_;  ///< empty: done, and those of the kinds
  int failure_status_ = 0;                                  ///< 0: the error's kind
  std::function<int()> body_;
};

/// A command as the command line has it: "alpa-plan explain".
struct NamedCommand {
  std::string full_name;
  const Command* command;
};

}  // namespace alpa
