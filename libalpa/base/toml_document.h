#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/base/toml_location.h"

namespace alpa {

class TomlTable;
struct TomlContent;
struct TomlNode;

/// A TOML file that is read strictly. Faults (a wrong type, a value out of range, a missing key, a key
/// that nobody asked for) do not stop the reader: getters note them and give a stand-in, and finish()
/// reports all of them at once. What was read may be used only after finish() returned.
///
///     TomlDocument document = read_toml("gpt.toml");
///     TomlTable training = document.root().table("training");
///     const std::int64_t steps = training.integer("steps", 1000, at_least(1));
///     document.finish();
///
/// Tables and values are cursors into the document, cheap to copy and valid as long as it lives (moving
/// the document keeps them valid). Not thread-safe: asking marks a key as known.
class TomlDocument {
 public:
  /// `file_name` is what faults call the file. Throws Error(input) "file:line:column: ..." where the text
  /// is not TOML, is larger than 1 MiB, or nests more than 64 levels.
  static TomlDocument parse(std::string_view text, const std::string& file_name);

  TomlDocument(TomlDocument&&) noexcept;
  TomlDocument& operator=(TomlDocument&&) noexcept;
  ~TomlDocument();

  TomlTable root();
  const std::string& file_name() const;

  /// Notes a fault that a reader found by itself, e.g. a block that names an unknown tensor.
  void fault(TomlLocation, const std::string& text);

  /// Faults noted so far; keys that nobody asked for are not among them. Shows a reader whether what it read
  /// between two calls is sound. Stays at its bound after 1000 faults.
  std::size_t fault_count() const;

  /// Throws one Error(input) with a line "file:line:column: ..." per fault in file order, keys that were
  /// never asked for included (with the nearest name that was); 50 lines at most. Asking for nothing more
  /// after a fault is fine: below a value of the wrong type no key counts as unknown. A file of another
  /// purpose, a cluster where a model was expected, is one fault.
  void finish();

 private:
  explicit TomlDocument(std::unique_ptr<TomlContent>);
  std::unique_ptr<TomlContent> content_;
};

/// Reads a regular file of at most 1 MiB. Throws Error(input) as TomlDocument::parse does, or where the
/// file cannot be read or is empty.
TomlDocument read_toml(const std::filesystem::path&);

/// One value of a document, or none where its key is absent. Getters of an absent value note nothing:
/// whoever required the key has noted it already. The stand-in for an absent or refused value is "", false,
/// an empty list, an empty table, the first word, or the number of the range that is nearest to 0.
class TomlValue {
 public:
  TomlKind kind() const;
  bool exists() const { return kind() != TomlKind::absent; }
  TomlLocation location() const;
  std::string where() const;  ///< "file:line:column"
  void fault(const std::string& text) const;

  std::string string() const;
  std::string name() const;  ///< a string that is_name(), "" after a fault
  std::int64_t integer(Range = any_number()) const;
  double number(Range = any_number()) const;  ///< an integer or a finite float
  bool boolean() const;
  TomlTable table() const;
  std::vector<TomlValue> items() const;  ///< of an array

  /// The position in `words` of a string that must be one of them; 0 after a fault. `words` is not empty.
  std::size_t word(std::span<const std::string_view> words) const;

  /// Declares everything below this value as known, for a reader that leaves it to others.
  void skip() const;

 private:
  friend class TomlTable;
  TomlValue(TomlContent* content, TomlNode* node) : content_(content), node_(node) {}
  void refuse(const std::string& expected) const;
  bool is(TomlKind wanted, const std::string& expected) const;
  TomlContent* content_;
  TomlNode* node_;
};

struct TomlEntry;

/// A table of a document. A getter without a default requires its key and notes a fault where it is
/// missing. The table behind an absent key is empty, and getters on it note nothing.
class TomlTable {
 public:
  bool has(std::string_view key) const;
  TomlLocation location() const;
  std::string where() const;  ///< "file:line:column"
  void fault(const std::string& text) const;

  std::string string(std::string_view key) const { return value(key, "a string").string(); }
  std::string string(std::string_view key, std::string_view default_value) const;
  std::string name(std::string_view key) const { return value(key, "a name").name(); }
  std::int64_t integer(std::string_view key, Range range = any_number()) const;
  std::int64_t integer(std::string_view key, std::int64_t default_value, Range range = any_number()) const;
  double number(std::string_view key, Range range = any_number()) const;
  double number(std::string_view key, double default_value, Range range = any_number()) const;
  bool boolean(std::string_view key) const { return value(key, "true or false").boolean(); }
  bool boolean(std::string_view key, bool default_value) const;

  /// Lists; empty where the key is absent.
  std::vector<std::string> strings(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key, Range range = any_number()) const;
  std::vector<double> numbers(std::string_view key, Range range = any_number()) const;

  TomlTable table(std::string_view key) const;
  std::optional<TomlTable> optional_table(std::string_view key) const;
  /// An array of tables, `[[key]]`; empty where the key is absent.
  std::vector<TomlTable> tables(std::string_view key) const;

  /// A word out of a list: word<Schedule>("schedule", {{"cosine", Schedule::cosine}, ...}), or with a default
  /// word("schedule", Schedule::cosine, {...}).
  template <class Value>
  Value word(std::string_view key, const std::vector<Word<Value>>& words) const {
    return chosen(value(key, "a word"), words);
  }
  template <class Value>
  Value word(std::string_view key, Value default_value,
             const std::type_identity_t<std::vector<Word<Value>>>& words) const {
    const TomlValue given = value(key);
    return given.exists() ? chosen(given, words) : default_value;
  }

  /// The value as it stands, absent or of whatever kind. For values of several kinds, e.g. dimensions,
  /// which are an integer or an expression.
  TomlValue value(std::string_view key) const;
  /// The same for a key that must be there; `expected` ends the fault "missing key 'key', expected ...".
  TomlValue value(std::string_view key, std::string_view expected) const;

  /// All keys and values in file order, for tables whose keys are names that users choose. They all count
  /// as known.
  std::vector<TomlEntry> entries() const;

  /// Declares everything in this table as known, for a reader that leaves it to others.
  void skip() const;

 private:
  friend class TomlDocument;
  friend class TomlValue;
  TomlTable(TomlContent* content, TomlNode* node) : content_(content), node_(node) {}

  template <class Value>
  static Value chosen(const TomlValue& given, const std::vector<Word<Value>>& words) {
    std::vector<std::string_view> names;
    for (const Word<Value>& word : words) names.push_back(word.name);
    return words[given.word(names)].value;
  }

  TomlContent* content_;
  TomlNode* node_;  ///< null for an absent table
};

struct TomlEntry {
  std::string key;
  TomlLocation key_location;
  TomlValue value;
};

}  // namespace alpa
