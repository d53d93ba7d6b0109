#pragma once
// Internal to this module.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace alpa {

/// A regular expression that cuts texts into pieces.
class SplitPattern {
 public:
  /// `pattern` is PCRE2's (pcre2_pattern()). Throws Error(input) where it is none, or matches nothing at all
  /// somewhere, which cuts no piece.
  explicit SplitPattern(const std::string& pattern);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;

  /// Whether matches depend on what is before them.
  bool looks_behind() const;

 private:
  friend class PatternMatches;
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

/// Looks for matches, one thread at a time; the pattern stays.
class PatternMatches {
 public:
  explicit PatternMatches(const SplitPattern&);
  ~PatternMatches();
  PatternMatches(PatternMatches&&) noexcept;
  PatternMatches& operator=(PatternMatches&&) noexcept;

  enum class Found {
    match,
    none,
    more_decides  ///< only where text may follow: what follows decides where a match ends, or whether it is
                  ///< one
  };

  /// The next match in `text`, which is UTF-8, from byte `from` on. Throws Error(input) where the pattern
  /// takes too much memory.
  Found next(std::string_view text, std::size_t from, bool text_may_follow);

  std::size_t begin() const;  ///< of the match found last
  std::size_t end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace alpa
