#include "libalpa/base/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace alpa {
namespace {

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

void append_text(std::string& to, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain))
    ((to += '"') += text) += '"';
  else
    to += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_number(std::string& to, double number) {
  if (std::isfinite(number))
    fmt::format_to(std::back_inserter(to), "{}", number);  // the shortest that reads back to the same bits
  else
    to += "null";
}

}  // namespace

void JsonObject::begin_member(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  append_text(text_, name);
  text_ += ':';
}

JsonObject& JsonObject::set_raw(std::string_view name, std::string_view json) {
  begin_member(name);
  text_ += json;
  return *this;
}

JsonObject& JsonObject::set(std::string_view name, std::string_view text) {
  begin_member(name);
  append_text(text_, text);
  return *this;
}
JsonObject& JsonObject::set(std::string_view name, double number) {
  begin_member(name);
  append_number(text_, number);
  return *this;
}
JsonObject& JsonObject::set(std::string_view name, bool truth) {
  return set_raw(name, truth ? "true" : "false");
}
JsonObject& JsonObject::set(std::string_view name, const JsonObject& object) {
  return set_raw(name, object.text());
}
JsonObject& JsonObject::set(std::string_view name, const JsonArray& array) {
  return set_raw(name, array.text());
}

JsonArray& JsonArray::add_raw(std::string_view json, std::string_view separator) {
  if (!items_.empty()) items_ += separator;
  items_ += json;
  return *this;
}

JsonArray& JsonArray::add(const JsonObject& object) { return add_raw(object.text(), ",\n"); }
JsonArray& JsonArray::add(double number) {
  std::string json;
  append_number(json, number);
  return add_raw(json, ",");
}
JsonArray& JsonArray::add(std::string_view text) {
  std::string json;
  append_text(json, text);
  return add_raw(json, ",");
}

}  // namespace alpa
