#include "libalpa/base/json.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace alpa {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double number) {
  if (!std::isfinite(number)) return "null";
  return fmt::format("{}", number);  // the shortest text that reads back to the same bits
}

}  // namespace

JsonObject& JsonObject::set_raw(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += json_text(name);
  members_ += ':';
  members_ += json;
  return *this;
}

JsonObject& JsonObject::set(std::string_view name, std::string_view text) {
  return set_raw(name, json_text(text));
}
JsonObject& JsonObject::set(std::string_view name, double number) {
  return set_raw(name, json_number(number));
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
JsonArray& JsonArray::add(double number) { return add_raw(json_number(number), ","); }
JsonArray& JsonArray::add(std::string_view text) { return add_raw(json_text(text), ","); }

}  // namespace alpa
