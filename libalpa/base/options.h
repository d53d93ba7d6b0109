#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/base/toml_document.h"

namespace alpa {

/// What is said of one setting wherever it is read, listed or written.
struct OptionText {
  std::string_view name;
  std::string_view help;  ///< what it sets, with its unit
  Range range = {};       ///< of a number
};

/// A reader or writer of settings. A struct of settings has one list of them, and every reader and writer
/// follows that list:
///
///     void describe(TrainingOptions& o, OptionsVisitor& visit) {
///       visit.field("steps", o.steps, "training steps to run", at_least(1));
///       visit.field("schedule", o.schedule, "course of the learning rate",
///                   {{"constant", Schedule::constant, "the same at every step"}, ...});
///     }
///
/// Counts are std::int64_t. A setting whose value is a word lists all values of its type.
class OptionsVisitor {
 public:
  virtual ~OptionsVisitor() = default;

  void field(std::string_view name, std::int64_t& value, std::string_view help, Range range = any_number()) {
    integer({name, help, range}, value);
  }
  void field(std::string_view name, double& value, std::string_view help, Range range = any_number()) {
    number({name, help, range}, value);
  }
  void field(std::string_view name, bool& value, std::string_view help) { boolean({name, help}, value); }
  void field(std::string_view name, std::string& value, std::string_view help) {
    string({name, help}, value);
  }

  template <class Value>
  requires std::is_enum_v<Value>
  void field(std::string_view name, Value& value, std::string_view help,
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

/// Every setting of `Options` with its default and what it means.
template <class Options>
std::string options_reference() {
  Options defaults;
  OptionsReference writer;
  describe(defaults, writer);
  return writer.text();
}

}  // namespace alpa
