#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace alpa {

class JsonArray;

/// A JSON object written on one line, its members in the order in which they were set; a name must be set
/// once. Made for a line of metrics and for the events of a trace:
///
///     JsonObject().set("step", 1).set("loss", 2.5).text()  // {"step":1,"loss":2.5}
///
/// Numbers read back to the same bits; NaN and infinities, which JSON lacks, become null. Text that is not
/// UTF-8 is written with replacement characters. One that is cleared and set again takes no new memory for
/// numbers and plain text.
class JsonObject {
 public:
  JsonObject& set(std::string_view name, std::string_view text);
  JsonObject& set(std::string_view name, const char* text) { return set(name, std::string_view(text)); }
  JsonObject& set(std::string_view name, double number);
  JsonObject& set(std::string_view name, const JsonObject& object);
  JsonObject& set(std::string_view name, const JsonArray& array);
  JsonObject& set(std::string_view name, bool truth);
  template <std::integral Integer>
  JsonObject& set(std::string_view name, Integer number) {
    return set_raw(name, std::to_string(number));
  }
  JsonObject& set_null(std::string_view name) { return set_raw(name, "null"); }
  void clear() { text_.resize(1); }
  void reserve(std::size_t bytes) { text_.reserve(bytes); }  ///< so much is set without taking new memory

  /// Appends the object to `to`.
  void write(std::string& to) const { (to += text_) += '}'; }
  std::string text() const { return text_ + "}"; }

 private:
  JsonObject& set_raw(std::string_view name, std::string_view json);
  void begin_member(std::string_view name);

  std::string text_ = "{";  ///< but for the closing brace
};

/// A JSON array, one item per line where it holds objects, so that a trace of many events stays readable.
class JsonArray {
 public:
  JsonArray& add(const JsonObject& object);
  JsonArray& add(double number);
  JsonArray& add(std::string_view text);
  template <std::integral Integer>
  JsonArray& add(Integer number) {
    return add_raw(std::to_string(number), ",");
  }

  std::string text() const { return "[" + items_ + "]"; }

 private:
  JsonArray& add_raw(std::string_view json, std::string_view separator);
  std::string items_;
};

}  // namespace alpa
