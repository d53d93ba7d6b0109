#pragma once
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/base/toml_document.h"

namespace alpa {

/// What is said of one setting wherever it is read, listed or written.
struct OptionText {
  std::string_view name;
  std::string_view help;           ///< what it sets, with its unit
  Range range = {};                ///< of a number
  std::string_view form = "TEXT";  ///< what stands for a free text where its value does
};

/// A reader or writer of settings. A struct of settings has one list of them, and every reader and writer
/// follows that list:
///
///     void describe(TrainingOptions& o, OptionsVisitor& visit) {
///       visit.field("steps", o.steps, "training steps to run", at_least(1));
///       visit.field("schedule", o.schedule, "learning-rate schedule",
///                   {{"constant", Schedule::constant, "the same at every step"}, ...});
///     }
///
/// A setting whose value is a word lists all values of its type or, where it is a string, those of a table.
/// An int has a range that ints hold.
class OptionsVisitor {
 public:
  virtual ~OptionsVisitor() = default;

  void field(std::string_view name, std::int64_t& value, std::string_view help, Range range = any_number()) {
    integer({name, help, range}, value);
  }
  void field(std::string_view name, int& value, std::string_view help, Range range) {
    assert(std::in_range<int>(static_cast<std::int64_t>(range.high)));
    assert(std::in_range<int>(static_cast<std::int64_t>(range.low)));
    std::int64_t wide = value;
    integer({name, help, range}, wide);
    value = static_cast<int>(wide);
  }
  void field(std::string_view name, std::vector<std::int64_t>& values, std::string_view help,
             Range range = any_number()) {
    integers({name, help, range}, values);
  }
  void field(std::string_view name, double& value, std::string_view help, Range range = any_number()) {
    number({name, help, range}, value);
  }
  void field(std::string_view name, bool& value, std::string_view help) { boolean({name, help}, value); }
  void field(std::string_view name, std::string& value, std::string_view help,
             std::string_view form = "TEXT") {
    string({name, help, {}, form}, value);
  }

  template <class Value>
  requires(!std::is_arithmetic_v<Value>) void field(
      std::string_view name, Value& value, std::string_view help,
      const std::type_identity_t<std::vector<Word<Value>>>& words) {
    std::vector<Word<std::size_t>> positions;
    std::size_t chosen = words.size();
    for (std::size_t i = 0; i < words.size(); ++i) {
      positions.push_back({words[i].name, i, words[i].sentence});
      if (words[i].value == value) chosen = i;
    }
    word({name, help}, chosen, positions);
    value = words.at(chosen).value;
  }

 protected:
  virtual void integer(const OptionText&, std::int64_t& value) = 0;
  virtual void integers(const OptionText&, std::vector<std::int64_t>& values) = 0;
  virtual void number(const OptionText&, double& value) = 0;
  virtual void boolean(const OptionText&, bool& value) = 0;
  virtual void string(const OptionText&, std::string& value) = 0;
  /// `chosen` is a position in `words`.
  virtual void word(const OptionText&, std::size_t& chosen, const std::vector<Word<std::size_t>>& words) = 0;
};

/// Reads settings out of a table; keys that are absent keep the value that the struct has. Faults are noted
/// in the table's document.
class OptionsFromToml : public OptionsVisitor {
 public:
  explicit OptionsFromToml(const TomlTable& table) : table_(table) {}

 private:
  void integer(const OptionText&, std::int64_t& value) override;
  void integers(const OptionText&, std::vector<std::int64_t>& values) override;
  void number(const OptionText&, double& value) override;
  void boolean(const OptionText&, bool& value) override;
  void string(const OptionText&, std::string& value) override;
  void word(const OptionText&, std::size_t& chosen, const std::vector<Word<std::size_t>>& words) override;
  TomlTable table_;
};

/// Writes each setting as a line of TOML, `name = value`, floats as the shortest text that reads back to the
/// same bits. Equal settings give equal text.
class OptionsAsToml : public OptionsVisitor {
 public:
  const std::string& text() const { return text_; }

 private:
  void integer(const OptionText&, std::int64_t& value) override;
  void integers(const OptionText&, std::vector<std::int64_t>& values) override;
  void number(const OptionText&, double& value) override;
  void boolean(const OptionText&, bool& value) override;
  void string(const OptionText&, std::string& value) override;
  void word(const OptionText&, std::size_t& chosen, const std::vector<Word<std::size_t>>& words) override;
  void line(const OptionText&, const std::string& value);
  std::string text_;
};

/// Writes the reference of settings: name, value (of a default-made struct: the default), range and help,
/// and under a setting with words each word with its sentence.
class OptionsReference : public OptionsVisitor {
 public:
  const std::string& text() const { return text_; }

 private:
  void integer(const OptionText&, std::int64_t& value) override;
  void integers(const OptionText&, std::vector<std::int64_t>& values) override;
  void number(const OptionText&, double& value) override;
  void boolean(const OptionText&, bool& value) override;
  void string(const OptionText&, std::string& value) override;
  void word(const OptionText&, std::size_t& chosen, const std::vector<Word<std::size_t>>& words) override;
  void line(const OptionText&, const std::string& value);
  std::string text_;
};

/// `value` as a TOML string, in double quotes and escaped.
std::string toml_string(const std::string& value);

/// Fills `options` from a table: read_options(document.root().table("training"), options).
template <class Options>
void read_options(const TomlTable& table, Options& options) {
  OptionsFromToml reader(table);
  describe(options, reader);
}

/// The effective settings as lines of TOML.
template <class Options>
std::string options_text(Options options) {
  OptionsAsToml writer;
  describe(options, writer);
  return writer.text();
}

/// The same in one line, as an inline table of TOML: {steps = 5, course = "cosine"}.
template <class Options>
std::string options_line(Options options) {
  std::string line = options_text(options);
  for (std::size_t end = line.find('\n'); end < line.size(); end = line.find('\n', end))
    line.replace(end, 1, end + 1 < line.size() ? ", " : "");
  return "{" + line + "}";
}

/// Every setting of `Options` with its default and what it means.
template <class Options>
std::string options_reference() {
  Options defaults;
  OptionsReference writer;
  describe(defaults, writer);
  return writer.text();
}

}  // namespace alpa
