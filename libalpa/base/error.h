#pragma once
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace alpa {

/// Why a command stopped. The value is the exit status of the process (share/doc/exit-codes.md).
enum class ErrorKind {
  run_time = 1,
  usage = 2,
  input = 3,
  infeasible = 4,
  allocation = 5,
  non_finite = 6,
  peer = 7,
  stopped_early = 75,
};

/// A failure in words that a user can act on: what happened, while doing what
/// (innermost step first), and what to try.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string happened, std::string hint = {});

  /// Adds the step that failed, e.g. "reading plan 'gpt.h5'".
  Error& while_doing(std::string step);

  ErrorKind kind() const { return kind_; }
  const std::string& happened() const { return happened_; }
  const std::string& hint() const { return hint_; }

  /// The whole message, printable(): "happened", then "  try: hint", then a "  while ..." line per step.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void compose();

  ErrorKind kind_;
  std::string happened_, hint_, text_;
  std::vector<std::string> steps_;
};

/// Runs `body`; an Error that leaves it carries `step` as context: a text, or what makes it then.
template <class Step, class Body>
decltype(auto) in_step(const Step& step, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    if constexpr (std::is_invocable_v<const Step&>)
      error.while_doing(step());
    else
      error.while_doing(step);
    throw;
  }
}

/// What `wrong` was meant to be of `names`, or "": what other tools call so, else the name that fewest slips
/// of the pen make of it, few for its length; capitals, dashes and underscores make no difference. Used for
/// "did you mean ...".
std::string nearest_name(const std::string& wrong, const std::vector<std::string>& names);

}  // namespace alpa
